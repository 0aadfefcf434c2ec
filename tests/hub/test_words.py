"""What is said when something is written wrong: a revision, a cache's place; and what doesn't wait."""

import os
import pty
import subprocess

import pytest
from small_hub import KHUB, Hub, fake, khub


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/good"] = {"main": fake(), "v1": fake(), "v3": fake(), "vnext": fake()}
    yield hub
    hub.close()


def test_the_beginning_of_a_commit(hub, cache):
    for revision in ("abcdef1", "a" * 39, "1234567"):
        run = khub(hub, cache, "get", f"org/good@{revision}")
        assert run.returncode == 1 and "; a commit has 40 digits" in run.stderr, run.stderr
        run = khub(hub, cache, "get", f"org/good@{revision}", "--offline")
        assert run.returncode == 5 and "; a commit has 40 digits" in run.stderr, run.stderr
    for revision in ("abcdef", "a" * 40, "feature"):
        run = khub(hub, cache, "get", f"org/good@{revision}")
        assert run.returncode == 1 and "40 digits" not in run.stderr, run.stderr


@pytest.mark.parametrize("revision", ["v", "vv", "v1x", "V1", "1.0", "v1.0", "1x"])
def test_a_version_that_is_written_wrong(hub, cache, revision):
    run = khub(hub, cache, "get", f"org/good@{revision}")
    assert run.returncode == 1 and run.stderr == f'khub: org/good: there is no version, branch or tag "{revision}"; its versions: 1, 3\n'
    assert hub.paths() == ["GET /api/kernels/org/good/refs"]


def test_a_branch_that_looks_like_a_version(hub, cache):
    run = khub(hub, cache, "get", "org/good@vnext")
    assert (run.returncode, run.stderr) == (0, "")
    assert hub.paths()[0] == "GET /api/kernels/org/good/refs"


def test_a_cache_that_cant_be(hub, tmp_path):
    """Said before anything is asked, and as what it is: a wrong place, not a missing file."""
    (tmp_path / "file").write_text("")
    for place, words in (("file", "is a file, a folder is needed"), ("file/below", "can't be made beneath a file")):
        for arguments in (["get", "org/good@v1"], ["get", "org/good@v1", "--offline"], ["download", "org/good@v1"]):
            run = khub(hub, tmp_path / place, *arguments)
            assert run.returncode == 1 and run.stderr == f"khub: the cache {tmp_path / place} {words}; HF_HUB_CACHE or --cache-dir names another\n"
    run = khub(hub, tmp_path / "file", "get", "org/good@v1", env={"KERNELS_CACHE": str(tmp_path / "file")})
    assert "; KERNELS_CACHE or --cache-dir names another" in run.stderr
    assert hub.paths() == []
    run = khub(hub, "/proc/none", "get", "org/good@v1")
    assert run.returncode == 1 and "khub: the cache /proc/none can't be made: No such file or directory; HF_HUB_CACHE or" in run.stderr


def test_without_waiting(cache):
    """An option and a variable; the notices of waits are counted."""
    assert khub(None, cache, "get", "org/good@v1", "--no-retry").stderr.count("tries again") == 0
    for arguments in (["versions", "org/good"], ["download", "org/good@v1"], ["get", "org/good@v1"]):
        run = khub(None, cache, *arguments, env={"KHUB_RETRIES": "0"})
        assert run.returncode == 6 and "tries again" not in run.stderr and "can't connect" in run.stderr.lower().replace("couldn't", "can't")


def test_whose_kernels_in_the_words_of_the_command(hub, cache):
    hub.trusted["org"] = False
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 4 and "vouch for it: --trust org/good" in run.stderr and "khub_hub_options" not in run.stderr
    run = khub(hub, cache, "info", "org/good@v1")
    assert "--trust org/good" in run.stdout and "khub_hub_options" not in run.stdout


@pytest.mark.parametrize("value, drawn", [("OFF", True), ("tomorrow", True), ("on", False)])
def test_the_variable_that_takes_the_bar_away(hub, cache, value, drawn):
    hub.repos["models/org/model"] = {"main": {"a": b"x" * (6 << 16)}}
    hub.pause = 0.1
    ours, theirs = pty.openpty()
    child = subprocess.Popen([KHUB, "download", "--model", "org/model"], stdout=subprocess.DEVNULL, stderr=theirs,
                             env={"PATH": os.environ["PATH"], "HOME": str(cache), "HF_HUB_CACHE": str(cache), "HF_ENDPOINT": hub.endpoint, "HF_HUB_DISABLE_PROGRESS_BARS": value})
    assert child.wait(60) == 0
    os.write(theirs, b"|")
    shown = os.read(ours, 1 << 16)
    os.close(ours), os.close(theirs)
    assert (b"org/model@main [" in shown) is drawn, shown


def test_without_a_network_it_is_short_and_says_the_way_out(tmp_path):
    """A name that nobody resolves is asked for twice; the first notice and the error name the options that spare it."""
    nowhere = {"HF_ENDPOINT": "http://nowhere.invalid", "HF_HUB_CACHE": str(tmp_path), "NO_PROXY": "*"}
    run = khub(None, tmp_path, "versions", "org/good", env=nowhere)
    *notices, error = run.stderr.splitlines()
    assert run.returncode == 6 and len(notices) == 1 and "tries again in 1 s (2 of 2)" in notices[0], run.stderr
    for line in notices[0], error:
        assert "without a network, --offline (HF_HUB_OFFLINE=1)" in line and "--no-retry (KHUB_RETRIES=0)" in line
    once = khub(None, tmp_path, "versions", "org/good", "--no-retry", env=nowhere)
    assert once.returncode == 6 and once.stderr.splitlines() == [error]  # and no cache that answers


def test_no_version_and_no_network(tmp_path):
    """What is wrong with the name is said though nobody can say which versions there are."""
    run = khub(None, tmp_path, "get", "org/good", "--no-retry")
    assert run.returncode == 6 and "org/good: which version? One is named as org/good@v1" in run.stderr
