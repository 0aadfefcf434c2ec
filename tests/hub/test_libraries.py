"""libcurl is opened when it is needed: another one, an old one, one without TLS, none."""
import os
import subprocess

import pytest
from hub import COMMIT, Hub, ask
from small_hub import KHUB

SHIM = r"""
#include <curl/curl.h>
#include <dlfcn.h>
curl_version_info_data *curl_version_info(CURLversion version)
{
    static curl_version_info_data data;
    data = *((curl_version_info_data * (*)(CURLversion)) dlsym(RTLD_NEXT, "curl_version_info"))(version);
    CHANGE;
    return &data;
}
"""


@pytest.fixture
def shim(tmp_path):
    """Makes a libcurl.so.4 that is the other flavour with another word about itself."""
    def make(change):
        (tmp_path / "shim.c").write_text(SHIM)
        subprocess.run(["cc", "-D_GNU_SOURCE", f"-DCHANGE={change}", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", tmp_path / "libcurl.so.4", tmp_path / "shim.c",
                        "-ldl", "-l:libcurl-gnutls.so.4"], check=True)
        return {"LD_LIBRARY_PATH": str(tmp_path)}

    return make


def test_without_tls(shim):
    environment = shim("data.features &= ~CURL_VERSION_SSL")
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        assert hub.ask("commit", "o/n", "v1", **environment)["status"] == "KHUB_OK"
    got = ask("https://hub.example", "commit", "o/n", "v1", **environment)
    assert got["status"] == "KHUB_E_NETWORK" and got["waits"] == []
    assert got["message"] == "https://hub.example: this libcurl was built without TLS, https can't be spoken"


def test_the_command_says_so(shim):
    run = subprocess.run([KHUB, "platform", "-v"], env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **shim("data.features &= ~CURL_VERSION_SSL")},
                         capture_output=True, text=True)
    assert "\n  TLS         not there: this libcurl can't speak https\n" in run.stdout and "trusts" not in run.stdout, run.stdout + run.stderr


def test_too_old(shim):
    got = ask("http://127.0.0.1:1", "commit", "o/n", "v1", **shim('data.version_num = 0x074000, data.version = "7.64.0"'))
    assert got["status"] == "KHUB_E_NETWORK" and "7.64.0 is too old" in got["message"] and got["waits"] == []


def test_the_other_flavour(tmp_path):
    (tmp_path / "libcurl.so.4").write_text("not a library")
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        got = hub.ask("commit", "o/n", "v1", LD_LIBRARY_PATH=str(tmp_path))
    assert got["status"] == "KHUB_OK", got["message"]


def test_none(tmp_path):
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_text("not a library")
    got = ask("http://127.0.0.1:1", "commit", "o/n", "v1", LD_LIBRARY_PATH=str(tmp_path))
    assert got["status"] == "KHUB_E_NETWORK" and "without libcurl" in got["message"] and got["waits"] == []
