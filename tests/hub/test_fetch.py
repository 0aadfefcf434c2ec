"""Files: side by side, in order, whole, and by the right name or not at all."""
import json
import os
import subprocess
import threading

import pytest
from hub import COMMIT, DRIVER, Hub, git_blob, one_file, sha256

FILE = bytes(range(256)) * 200


def files(**contents):
    """A Hub that has these files, by path."""
    def handle(request, connection):
        connection.content(request, contents[request.path.rpartition("/")[2]], ETag=f'"{git_blob(contents[request.path.rpartition("/")[2]])}"')

    return Hub(handle)


def test_many_small_files():
    contents = {f"f{i}": b"%d" % i * (i + 1) for i in range(100)}
    with files(**contents) as hub:
        got = hub.ask("fetch", "o/n", COMMIT, *(one_file(data, path) for path, data in contents.items()))
        assert got["status"] == "KHUB_OK", got
        assert sorted(hub.paths()) == sorted(f"/kernels/o/n/resolve/{COMMIT}/{path}" for path in contents)
        assert hub.connections <= 8
    assert got["requests"] == 100 and got["progress"]["files_done"] == 100
    assert got["progress"]["bytes_done"] == got["progress"]["bytes_total"] == sum(map(len, contents.values()))
    assert all(f["calls"] == ["begin", "finish"] for f in got["files"].values())


def test_many_small_files_over_tls(certificate):
    """HTTP/1.1 after all: libcurl asks for HTTP/2 and must not wait for what isn't agreed on."""
    contents = {f"f{i}": b"%d" % i for i in range(60)}
    second = threading.Event()

    def handle(request, connection):
        second.set() if hub.connections > 1 else second.wait(20) # the first answer comes when others ask beside it
        connection.content(request, contents[request.path.rpartition("/")[2]])

    with Hub(handle, tls=certificate[0]) as hub:
        got = hub.ask("fetch", "o/n", COMMIT, *(one_file(data, path) for path, data in contents.items()), SSL_CERT_FILE=certificate[1], HF_HUB_DOWNLOAD_TIMEOUT="30")
        assert got["status"] == "KHUB_OK", got
        assert 1 < hub.connections <= 8


def test_one_content_twice():
    """The sink of the second is busy until the first is done; here each has its own."""
    with files(a=FILE, b=FILE, c=b"", d=b"") as hub:
        got = hub.ask("fetch", "o/n", COMMIT, *(one_file(data, path) for path, data in (("a", FILE), ("b", FILE), ("c", b""), ("d", b""))))
        assert sorted(hub.paths()) == [f"/kernels/o/n/resolve/{COMMIT}/{name}" for name in "ab"] # of nothing, nothing is asked
    assert got["status"] == "KHUB_OK" and got["progress"]["files_done"] == 4


@pytest.mark.parametrize("name", ["f,{size}", "f,,{etag}", "f"])
def test_what_the_tree_does_not_say(name):
    with files(f=FILE) as hub:
        got = hub.ask("fetch", "o/n", COMMIT, name.format(size=len(FILE), etag=git_blob(FILE)))
    assert got["status"] == "KHUB_OK", got
    assert got["files"]["f"] == {"etag": git_blob(FILE), "size": len(FILE), "bytes": len(FILE), "calls": ["begin", "finish"]}


def test_goes_on_with_what_is_there(tmp_path):
    (tmp_path / "have").write_bytes(FILE)
    with files(f=FILE) as hub:
        got = hub.ask("--have", tmp_path / "have", "--have-bytes", 1000, "fetch", "o/n", COMMIT, one_file(FILE))
        assert hub.requests[0].headers["range"] == "bytes=1000-"
    assert got["status"] == "KHUB_OK", got
    assert got["files"]["f"]["calls"] == ["begin", "finish"]


def test_all_is_there(tmp_path):
    (tmp_path / "have").write_bytes(FILE)
    with files(f=FILE) as hub:
        got = hub.ask("--have", tmp_path / "have", "--have-bytes", len(FILE), "fetch", "o/n", COMMIT, one_file(FILE))
        assert hub.requests == []
    assert got["status"] == "KHUB_OK", got


@pytest.mark.parametrize("have", [1000, len(FILE)])
def test_what_is_there_is_of_another_file(tmp_path, have):
    """Seen only at the end: then all of it comes again."""
    (tmp_path / "have").write_bytes(bytes(len(FILE)))
    with files(f=FILE) as hub:
        got = hub.ask("--have", tmp_path / "have", "--have-bytes", have, "fetch", "o/n", COMMIT, one_file(FILE))
        assert "range" not in hub.requests[-1].headers
    assert got["status"] == "KHUB_OK", got
    assert got["files"]["f"]["calls"] == ["begin", "finish", "finish"] and got["progress"]["bytes_done"] == len(FILE)


def test_connections_are_not_inherited(tmp_path):
    """By the children of a program that uses the library."""
    def handle(request, connection):
        ends = ["0100007F:%04X" % end[1] for end in (connection.sock.getpeername(), connection.sock.getsockname())]
        inode = next(line.split()[9] for line in open("/proc/net/tcp") if line.split()[1:3] == ends)
        started.wait(60)
        for number in os.listdir(f"/proc/{run.pid}/fd"):
            if os.readlink(f"/proc/{run.pid}/fd/{number}") == f"socket:[{inode}]":
                flags.append(next(line.split()[1] for line in open(f"/proc/{run.pid}/fdinfo/{number}") if line.startswith("flags:")))
        connection.content(request, FILE)

    flags, started = [], threading.Event()
    with Hub(handle) as hub:
        environment = {**os.environ, "HOME": str(tmp_path), "HF_ENDPOINT": hub.url}
        run = subprocess.Popen([DRIVER, "fetch", "o/n", COMMIT, one_file(FILE)], env=environment, stdout=subprocess.DEVNULL)
        started.set()
        assert run.wait(60) == 0
    assert len(flags) == 1 and int(flags[0], 8) & os.O_CLOEXEC


def test_no_open_file_for_a_connection():
    """How many libcurl has for itself is its own affair: one of these is one too few."""
    said = []
    leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}  # who looks for them opens files
    with Hub(lambda r, c: c.content(r, FILE)) as hub:
        for most in range(4, 9):
            run = subprocess.run(["prlimit", f"--nofile={most}", DRIVER, "fetch", "o/n", COMMIT, one_file(FILE)], capture_output=True, timeout=60,
                                 env={**os.environ, "HOME": "/nonexistent", "HF_ENDPOINT": hub.url, "KHUB_RETRIES": "1"} | leaks)
            said.append(json.loads(run.stdout))
    words = [got for got in said if got["message"].endswith("f: too many files are open for another connection")]
    assert words and words[0]["status"] == "KHUB_E_NETWORK" and said[-1]["status"] == "KHUB_OK", said


def test_a_hub_that_asks_to_wait_isnt_asked_for_all_the_rest():
    """Each file is refused once: few are begun and wait, whose files are open."""
    def handle(request, connection):
        path = request.path.rsplit("/", 1)[1]
        if path not in refused:
            refused.add(path)
            most.append(len(refused) - len(served))
            return connection.answer(b"", 429, Retry_After="5")
        served.add(path)
        connection.content(request, path.encode())

    refused, served, most = set(), set(), []
    with Hub(handle) as hub:
        got = hub.ask("fetch", "o/n", COMMIT, *(one_file(b"%d" % i, str(i)) for i in range(40)))
    assert got["status"] == "KHUB_OK" and len(served) == 40
    assert 1 < max(most) <= 8


def test_asks_again_while_the_sink_is_busy():
    with files(f=FILE) as hub:
        got = hub.ask("--busy", 3, "fetch", "o/n", COMMIT, one_file(FILE))
    assert got["status"] == "KHUB_OK", got
    assert got["files"]["f"]["calls"] == ["busy"] * 3 + ["begin", "finish"]
