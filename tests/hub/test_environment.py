"""Settings of the environment as the Hugging Face tools have them (C7, C8)."""
import os
import subprocess

import pytest
from hub import COMMIT, Hub, ask


def settings(*options, **environment):
    return ask("http://127.0.0.1:1", *options, "settings", **environment)


def good(*options, **environment):
    got = settings(*options, **environment)
    assert got["status"] == "KHUB_OK", got["message"]
    return got["settings"]


@pytest.mark.parametrize("given, endpoint", [("", "https://huggingface.co"), ("  ", "https://huggingface.co"), ("http://h/", "http://h"), (" http://h:80/p/q// ", "http://h:80/p/q"),
                                             ("HTTPS://Hub.example", "https://Hub.example"), ("http://[::1]:8080", "http://[::1]:8080")])
def test_endpoint(given, endpoint):
    assert good(HF_ENDPOINT=given)["endpoint"] == endpoint


@pytest.mark.parametrize("given", ["huggingface.co", "ftp://h", "file:///x", "http://", "http:///x", "http://u:p@h", "http://h?x", "http://h#x", "http://h h", "http://h:0", "http://h:70000", "http://[::1"])
def test_endpoint_that_is_none(given):
    got = settings(HF_ENDPOINT=given)
    assert got["status"] == "KHUB_E_INVAL" and "HF_ENDPOINT" in got["message"]


@pytest.mark.parametrize("value", ["", "  ", "\n", "\t \r\n"])
def test_blank_token_is_none(value):
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        assert hub.ask("commit", "o/n", "v1", HF_TOKEN=value)["status"] == "KHUB_OK"
        assert "authorization" not in hub.requests[0].headers


@pytest.mark.parametrize("value", ["hf_x\n", "  hf_x", "hf_x\r\n", "\thf_x "])
def test_token_is_trimmed(value):
    assert good(HF_TOKEN=value)["token"] == "hf_x"


@pytest.mark.parametrize("value", ["sec\nret", "sec ret", "sec\x01ret", "secrät", "secre\x7f"])
@pytest.mark.parametrize("source", ["HF_TOKEN", "file"])
def test_dirty_token(value, source, tmp_path):
    (tmp_path / "token").write_text(value)
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        got = hub.ask("commit", "o/n", "v1", **({"HF_TOKEN": value} if source == "HF_TOKEN" else {"HF_TOKEN_PATH": str(tmp_path / "token")}))
        assert hub.connections == 0
    assert got["status"] == "KHUB_E_INVAL" and (source if source == "HF_TOKEN" else str(tmp_path)) in got["message"]
    assert "sec" not in got["message"].replace(str(tmp_path), "")


def test_order_of_tokens(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text("of_home\n")
    (tmp_path / "own").write_text("of_path\n")
    home, path = {"HF_HOME": str(tmp_path / "home")}, {"HF_TOKEN_PATH": str(tmp_path / "own")}
    old, new = {"HUGGING_FACE_HUB_TOKEN": "old"}, {"HF_TOKEN": "new"}
    assert good("--token", "given", **new, **old, **path, **home)["token"] == "given"
    assert good(**new, **old, **path, **home)["token"] == "new"
    assert good(**old, **path, **home)["token"] == "old"
    assert good(**path, **home)["token"] == "of_path"
    assert good(**home)["token"] == "of_home"
    assert good(**home, HF_TOKEN=" ")["token"] == "of_home"
    assert good("--token", "", **new, **home)["token"] is None
    assert good(**new, **home, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")["token"] is None
    assert good("--token", "given", HF_HUB_DISABLE_IMPLICIT_TOKEN="true")["token"] == "given"
    assert good(HF_HOME="$SOMEWHERE/home", SOMEWHERE=str(tmp_path))["token"] == "of_home"
    assert good(HF_HOME="~/home", HOME=str(tmp_path))["token"] == "of_home"


@pytest.mark.parametrize("variable", ["HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK"])
def test_user_agent(variable):
    agent = good()["agent"]
    assert agent.startswith("khub/") and "; platform/" in agent
    assert good(**{variable: "1"})["agent"] == agent.partition(";")[0]
    assert good(**{variable: "0"})["agent"] == agent
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        hub.ask("commit", "o/n", "v1")
        assert hub.requests[0].headers["user-agent"] == agent


@pytest.mark.parametrize("value, retries", [("0", 0), ("2", 2), ("many", 5), ("-1", 5), ("", 5), ("1000", 100)])
def test_retries(value, retries):
    got = ask("http://127.0.0.1:1", "commit", "o/n", "v1", KHUB_RETRIES=value)
    assert got["status"] == "KHUB_E_NETWORK" and len(got["waits"]) == retries


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "all_proxy"])
def test_proxy(variable):
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        got = ask("http://hub.example", "commit", "o/n", "v1", **{variable: hub.url})
        assert hub.requests[0].target == "http://hub.example/api/kernels/o/n/revision/v1"
    assert got["status"] == "KHUB_OK"


@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_no_proxy(variable):
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub, Hub(lambda r, c: c.answer(status=500)) as proxy:
        got = hub.ask("commit", "o/n", "v1", HTTP_PROXY=proxy.url, **{variable: "127.0.0.1,localhost"})
        assert proxy.connections == 0
    assert got["status"] == "KHUB_OK"


def test_proxy_of_a_web_servers_child():
    """HTTP_PROXY may be a header of a request then."""
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub, Hub(lambda r, c: c.answer(status=500)) as proxy:
        assert hub.ask("commit", "o/n", "v1", HTTP_PROXY=proxy.url, REQUEST_METHOD="GET")["status"] == "KHUB_OK"
        assert proxy.connections == 0


@pytest.mark.parametrize("proxy", ["nothing://me:secret@h:1", "http://me:sec ret@h:1", "http://me:secret@127.0.0.1:99999", "me:secret@[::1",
                                   "http://me:" + 200 * "secret" + "@h:x"])
def test_a_proxys_password_is_not_told(proxy):
    got = ask("http://hub.example", "commit", "o/n", "v1", KHUB_RETRIES="0", HTTP_PROXY=proxy)
    assert got["status"] == "KHUB_E_NETWORK" and "proxy" in got["message"]
    assert "sec" not in got["text"]


@pytest.fixture(scope="module")
def resolver_spy(tmp_path_factory):
    """A library to preload that writes each name that is looked up to the file SPY names."""
    folder = tmp_path_factory.mktemp("spy")
    (folder / "spy.c").write_text(r"""
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    FILE *file = fopen(getenv("SPY"), "a");
    fprintf(file, "%s\n", name);
    fclose(file);
    return real(name, service, hints, out);
}
""")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", folder / "spy.so", folder / "spy.c", "-ldl"], check=True)
    return str(folder / "spy.so")


def test_no_other_host_is_looked_up(resolver_spy, tmp_path):
    def handle(request, connection):
        if "/tree/" in request.path and "cursor" not in request.query:
            return connection.json([], Link='<https://huggingface.co/api/x?cursor=1>; rel="next"')
        connection.json([] if "cursor" in request.query else {"branches": []})

    spied = {"LD_PRELOAD": resolver_spy, "SPY": str(tmp_path / "names")}
    with Hub(handle) as hub:
        for arguments in (("refs", "o/n"), ("tree", "o/n", COMMIT), ("publisher", "o")):
            assert hub.ask(*arguments, **spied)["status"] == "KHUB_OK"
    assert not (tmp_path / "names").exists()
    ask("http://nowhere.invalid", "--hurry", "refs", "o/n", **spied)
    assert set((tmp_path / "names").read_text().split()) == {"nowhere.invalid"}


def test_proxy_for_https_is_asked_to_connect():
    with Hub(lambda r, c: c.answer(status=403)) as proxy:
        got = ask("https://hub.example", "--hurry", "commit", "o/n", "v1", HTTPS_PROXY=proxy.url, HF_TOKEN="hf_secret")
        assert (proxy.requests[0].method, proxy.requests[0].target) == ("CONNECT", "hub.example:443")
        assert "authorization" not in proxy.requests[0].headers
    assert got["status"] == "KHUB_E_NETWORK"
