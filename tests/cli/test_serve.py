"""khub serve from outside: what it refuses, what it withstands, how it ends."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from serving import KHUB, ask, eventually, serving

SANITIZE = os.environ["KHUB_SANITIZE"] == "1"
SECRET = b"nobody outside may read this"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """DIR with a model and a kernel; beside it a secret, with links of every kind that lead there."""
    top = tmp_path_factory.mktemp("serve")
    (top / "secret").write_bytes(SECRET)
    (top / "outside" / "main").mkdir(parents=True)
    (top / "outside" / "main" / "secret").write_bytes(SECRET)
    model = top / "dir" / "models" / "org" / "m" / "main"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"a": 1}')
    (model / "large.bin").write_bytes(bytes(range(256)) * 4096)
    (model / "empty").write_text("")
    (model / "inside").symlink_to("config.json")
    (model / "inside absolute").symlink_to(model / "config.json")
    (model / "out").symlink_to("../../../../../secret")
    (model / "out absolute").symlink_to(top / "secret")
    (model / "out folder").symlink_to(top / "outside")
    (model / "proc").symlink_to("/proc/self/environ")
    (model / "circle").symlink_to(".")
    (model / "nowhere").symlink_to("nosuch")
    os.mkfifo(model / "pipe")
    (model / "not\nprintable").write_text("x")
    (model / "not utf8 \udcff").write_text("x")
    (model / ".git").mkdir()
    (model / ".git" / "config").write_text("x")
    (top / "dir" / "models" / "org" / "away").symlink_to(top / "outside")
    (top / "dir" / "models" / "org" / "linked").symlink_to("m")
    (top / "dir" / "models" / "gone").symlink_to(top / "outside")
    return top / "dir"


@pytest.fixture(scope="module")
def hub(folder):
    with serving(folder, "--timeout", "3") as running:
        yield running


def port_of(hub):
    return int(hub.url.rsplit(":", 1)[1])


def raw(hub, data, wait=10):
    """Sends bytes as they are; returns all that comes until the server closes or `wait` seconds are silent."""
    with socket.create_connection(("127.0.0.1", port_of(hub)), timeout=wait) as connection:
        got = b""
        try:
            connection.sendall(data)
            while piece := connection.recv(65536):
                got += piece
        except (TimeoutError, ConnectionError):
            pass
        return got


def get(hub, target, *headers, method=b"GET"):
    """One request with a target as it is; returns (status, body)."""
    head = b"".join(b"%s\r\n" % h for h in headers)
    got = raw(hub, b"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n" % (method, target, head))
    start, _, body = got.partition(b"\r\n\r\n")
    return (int(start.split()[1]) if start.startswith(b"HTTP/1.1 ") else 0), body


# ---- paths ----


CLIMBS = [b"/org/m/resolve/main/" + name for name in (
    b"../../../../../secret", b"..%2f..%2f..%2f..%2f..%2fsecret", b"%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret",
    b"%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fsecret", b"..%252f..%252fsecret", b"..%c0%af..%c0%afsecret",
    b"%c0%ae%c0%ae/secret", b"%e0%80%ae%e0%80%ae/secret", b"..\\..\\secret", b"..%5c..%5csecret", b"/etc/passwd", b"%2fetc%2fpasswd",
    b"config.json%00", b"config.json%00.png", b"./config.json", b"%2e/config.json", b"out", b"out%20absolute",
    b"out%20folder/main/secret", b"proc", b"nowhere", b"pipe", b".git/config", b"not%0aprintable", b"not%20utf8%20%ff", b"",
    b"%", b"%2", b"%zz", b"config.json/", b"a//b", b"config.json/x", b"%ed%a0%80", b"%f5%80%80%80", b"x" * 3000, b"a/" * 600 + b"a")]
CLIMBS += [b"/org/..%2f..%2fresolve/main/secret", b"/..%2f/m/resolve/main/secret", b"/../outside/resolve/main/secret",
           b"/org/away/resolve/main/secret", b"/gone/main/resolve/main/secret", b"/org/m/resolve/..%2f..%2f..%2f..%2foutside/secret",
           b"/org/m/resolve/../secret", b"//org/m/resolve/main/config.json", b"/org//m/resolve/main/config.json",
           b"/models/org/resolve/m/main/config.json", b"/kernels/models/org/resolve/m/main/config.json", b"/org/m/raw/main/config.json",
           b"/api/models/org/m/tree/main/..", b"/api/models/org/m/tree/main/%2e%2e%2f%2e%2e", b"/api/models/org/m/tree/..%2fmain",
           b"/api/models/../../etc", b"/api/models/org%2fm/refs", b"/api/organizations/..", b"/api/organizations/../overview",
           b"/api/organizations/%2e%2e/overview", b"/api/nosuch", b"/api", b"/metrics/x", b"*", b"http://x/../secret",
           b"/org/m--x/resolve/main/config.json", b"/.git/config", b"/%00", b"/?%00"]


@pytest.mark.parametrize("target", CLIMBS, ids=lambda t: t[:60].decode("latin1"))
def test_nothing_outside_is_reached(hub, target):
    status, body = get(hub, target)
    assert SECRET not in body and b"root:" not in body
    assert status in (400, 404, 414) or (status, target) == (200, b"/?%00")


def test_links_inside_are_followed(hub):
    for name in (b"inside", b"inside%20absolute"):
        assert get(hub, b"/org/m/resolve/main/" + name) == (200, b'{"a": 1}')
    assert get(hub, b"/org/linked/resolve/main/config.json") == (200, b'{"a": 1}')


def test_what_is_listed(hub):
    listed = {e["path"] for e in json.loads(ask(hub, "/api/models/org/m/tree/main?recursive=true").body)}
    assert listed == {"config.json", "large.bin", "empty", "inside", "inside absolute"}


def test_a_link_set_while_it_is_served(folder, tmp_path):
    """A listed file that becomes a link out of DIR isn't followed."""
    shutil.copytree(folder / "models/org/m/main", tmp_path / "dir/models/org/m/main", symlinks=True,
                    ignore=lambda *_: ["pipe"])
    (tmp_path / "secret").write_bytes(SECRET)
    with serving(tmp_path / "dir") as hub:
        assert ask(hub, "/org/m/resolve/main/large.bin").status == 200
        file = tmp_path / "dir/models/org/m/main/large.bin"
        file.unlink()
        file.symlink_to(tmp_path / "secret")
        for _ in range(20):
            got = ask(hub, "/org/m/resolve/main/large.bin")
            assert got.status in (404, 503) and SECRET not in got.body
            time.sleep(0.02)


# ---- requests that aren't ----


NONSENSE = [b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"\x00" * 100, b"\xff" * 5000, b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100_000 + b"\r\n\r\n", b"G" * 100_000, b"GET / HTTP/1.1\r\n : x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]


@pytest.mark.parametrize("data", NONSENSE, ids=lambda d: repr(d[:30]))
def test_nonsense_is_refused(hub, data):
    got = raw(hub, data)
    assert not got.startswith(b"HTTP/1.1 2") and not got.startswith(b"HTTP/1.0 2"), got[:100]
    assert ask(hub, "/").status == 200


def test_a_body_cannot_hide_a_request(hub):
    inner = b"GET /org/m/resolve/main/config.json HTTP/1.1\r\nHost: x\r\n\r\n"
    for head in (b"Content-Length: %d" % len(inner), b"Transfer-Encoding: chunked"):
        got = raw(hub, b"GET / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n" % head + inner)
        assert got.count(b"HTTP/1.1 ") == 1 and b'{"a": 1}' not in got


@pytest.mark.parametrize("method", [b"POST /api/models/org/m/paths-info/main", b"GET /"])
@pytest.mark.parametrize("said", [["Content-Length: 6", "Content-Length: %d"], ["Content-Length: 6", "Content-Length: 6"], ["Content-Length: 0", "Content-Length: %d"],
                                  ["Content-Length: 6", "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked", "Content-Length: %d"],
                                  ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], ["Transfer-Encoding: gzip"], ["Transfer-Encoding: gzip, chunked"]])
def test_a_body_with_two_ends(hub, method, said):
    """Who reads the one isn't to see a request where who reads the other sees a part of the body."""
    inner = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    head = "".join(f"{line}\r\n" for line in said).replace("%d", str(6 + len(inner))).encode()
    for body in (b"paths=", b"6\r\npaths=\r\n0\r\n\r\n"):
        got = raw(hub, b"%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n%s\r\n" % (method, head) + body + inner)
        assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1 and b"connection: close" in got.lower(), got


@pytest.mark.parametrize("target", [b"/\0nowhere", b"/\0", b"\0/", b"/\0?a=b", b"/org/m/resolve/main/config.json\0", b"/org/m/resolve/main/config.json\0.png",
                                    b"/api/models/org/m/tree/main?recursive=true\0"])
def test_an_address_with_a_nul(hub, target):
    """Not the one before it."""
    assert get(hub, target)[0] == 400
    assert get(hub, target.partition(b"\0")[0] or b"/")[0] == 200


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"FOO", b"get"])
def test_it_is_only_read(hub, method):
    status, body = get(hub, b"/org/m/resolve/main/config.json", method=method)
    assert status == 405 and b"only read" in body


@pytest.mark.parametrize("host", [b"a b", b"x\"><", b"a" * 5000, b"x/../y", b"<>"])
def test_any_host(hub, host):
    got = raw(hub, b"GET /api/models/org/m/tree/main HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host)
    assert got[:9] == b"HTTP/1.1 " and got[9:10] in b"24"


# ---- ranges and conditions ----


LARGE = bytes(range(256)) * 4096


@pytest.mark.parametrize("header, status, first, end", [
    ("bytes=0-9", 206, 0, 10), ("bytes=10-", 206, 10, None), ("bytes=-5", 206, -5, None), ("bytes=0-99999999999", 206, 0, None),
    ("bytes=1048575-1048575", 206, -1, None), ("bytes=1048576-", 416, 0, 0), ("bytes=-0", 416, 0, 0),
    ("bytes=5-4", 200, 0, None), ("bytes=a-b", 200, 0, None), ("bytes=", 200, 0, None), ("bytes=0-1,5-6", 200, 0, None),
    ("lines=0-1", 200, 0, None), ("bytes=99999999999999999999-", 200, 0, None), ("bytes=-99999999", 206, 0, None)])
def test_ranges(hub, header, status, first, end):
    got = ask(hub, "/org/m/resolve/main/large.bin", Range=header)
    assert got.status == status
    if status == 416:
        assert got.headers["Content-Range"] == "bytes */1048576"
        return
    assert got.body == LARGE[first:end]
    assert int(got.headers["Content-Length"]) == len(got.body)
    if status == 206:
        start = first % len(LARGE)
        assert got.headers["Content-Range"] == f"bytes {start}-{start + len(got.body) - 1}/1048576"
    head = ask(hub, "/org/m/resolve/main/large.bin", "HEAD", Range=header)
    assert head.status == status and head.body == b"" and head.headers["Content-Length"] == got.headers["Content-Length"]


def test_conditions(hub):
    path = "/org/m/resolve/main/large.bin"
    name = hashlib.sha256(LARGE).hexdigest()
    for header in (f'"{name}"', f'W/"{name}"', f'"x", "{name}"', "*"):
        got = ask(hub, path, If_None_Match=header)
        assert (got.status, got.body, got.headers["ETag"]) == (304, b"", f'"{name}"')
    assert ask(hub, path, If_None_Match='"x"').body == LARGE
    assert ask(hub, path, Range="bytes=0-1", If_Range=f'"{name}"').status == 206
    assert ask(hub, path, Range="bytes=0-1", If_Range='"x"').body == LARGE


@pytest.mark.parametrize("path", ["/api/models/org/m", "/api/models/org/m/refs", "/api/models/org/m/tree/main?recursive=true",
                                  "/api/organizations/org/overview"])
def test_conditions_of_the_api(hub, path):
    first = ask(hub, path)
    etag = first.headers["ETag"]
    assert first.status == 200 and ask(hub, path).headers["ETag"] == etag
    for method in ("GET", "HEAD"):
        got = ask(hub, path, method, If_None_Match=f'"x", W/{etag}')
        assert (got.status, got.body, got.headers["ETag"]) == (304, b"", etag)
        assert got.headers["X-Repo-Commit"] == first.headers["X-Repo-Commit"]
    assert ask(hub, path, If_None_Match='"x"').body == first.body
    assert "ETag" not in ask(hub, "/api/models/org/nosuch").headers and ask(hub, "/api/models/org/nosuch", If_None_Match="*").status == 404


def test_a_change_is_another_etag(tmp_path):
    model = tmp_path / "dir/models/org/m"
    for branch in ("main", "next"):
        (model / branch).mkdir(parents=True)
        (model / branch / "a").write_text(branch)
    with serving(tmp_path / "dir") as hub:
        def of(path, tag="x"):
            got = ask(hub, path, If_None_Match=tag)
            return got.status, got.headers["ETag"]

        tree, refs = "/api/models/org/m/tree/main", "/api/models/org/m/refs"
        before = of(tree), of(refs)
        assert before[0] != of("/api/models/org/m/tree/next")
        (model / "main/a").write_text("later")
        assert eventually(lambda: of(tree, before[0][1]), lambda got: got[0] == 200)[1] != before[0][1]
        assert of(refs, before[1][1])[0] == 200


# ---- what is asked with a form ----


FORM = {"Content_Type": "application/x-www-form-urlencoded"}
PATHS = "/api/models/org/m/paths-info/main"


def test_paths(hub):
    got = ask(hub, PATHS, "POST", b"paths=empty&paths=nosuch&paths=inside+absolute&expand=False", **FORM)
    assert [e["path"] for e in json.loads(got.body)] == ["empty", "inside absolute"]
    listed = {e["path"]: e for e in json.loads(ask(hub, "/api/models/org/m/tree/main").body)}
    assert json.loads(got.body) == [listed["empty"], listed["inside absolute"]]
    assert got.headers["X-Repo-Commit"] == ask(hub, "/api/models/org/m").headers["X-Repo-Commit"]
    assert json.loads(ask(hub, PATHS, "POST", b"", **FORM).body) == []
    assert ask(hub, PATHS, "POST", b"paths=empty", If_None_Match="*", **FORM).status == 200
    chunked = raw(hub, b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: application/"
                  b"x-www-form-urlencoded\r\n\r\n4\r\npath\r\n7\r\ns=empty\r\n0\r\n\r\n" % PATHS.encode())
    assert chunked.startswith(b"HTTP/1.1 200") and chunked.endswith(b'"path":"empty"}]')


def test_forms_that_are_refused(hub, folder):
    many = b"&".join([b"paths=a"] * 1001)
    for body, headers, status in ((many, FORM, 400), (b"paths=%2", FORM, 400), (b"paths=" + b"a" * (1 << 20), FORM, 413),
                                  (b"{}", {"Content_Type": "application/json"}, 415)):
        assert ask(hub, PATHS, "POST", body, **headers).status == status
    for path in (b"..%2f..%2fsecret", b"out", b"out+absolute", b"/etc/passwd", b"proc"):
        assert ask(hub, PATHS, "POST", b"paths=" + path, **FORM).body == b"[]"
    for method in ("GET", "HEAD", "PUT"):
        got = ask(hub, PATHS, method)
        assert got.status == 405 and got.headers["Allow"] == "POST"
    assert ask(hub, "/api/models/org/m/tree/main", "POST", b"paths=a", **FORM).headers["Allow"] == "GET, HEAD"
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" % PATHS.encode()
    inner = b"GET /org/m/resolve/main/config.json HTTP/1.1\r\nHost: x\r\n\r\n"
    assert raw(hub, head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(inner) + inner).count(b"HTTP/1.1 ") == 1
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port_of(hub)), timeout=30) as slow:  # --timeout 3
        slow.sendall(head + b"Content-Length: 1000\r\n\r\n")
        with pytest.raises(ConnectionError):
            while time.monotonic() - begun < 25:
                slow.sendall(b"x")
                time.sleep(0.2)


def test_an_empty_file(hub):
    got = ask(hub, "/org/m/resolve/main/empty")
    assert (got.status, got.body, got.headers["ETag"]) == (200, b"", '"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"')
    assert ask(hub, "/org/m/resolve/main/empty", Range="bytes=0-").status == 416


# ---- many, slow, and gone clients ----


def test_a_thousand_connections(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    request = b"GET /org/m/resolve/main/config.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving(folder, "-q") as hub:
        open_ones = [socket.create_connection(("127.0.0.1", port_of(hub)), timeout=20) for _ in range(1000)]
        for round in range(2):
            for each in open_ones:
                each.sendall(request)
            for each in open_ones:
                got = b""
                while not got.endswith(b'{"a": 1}'):
                    piece = each.recv(4096)
                    assert piece, "closed"
                    got += piece
                assert got.startswith(b"HTTP/1.1 200")
        wanted = "khub_serve_connections 1001"  # and the one that asks
        assert wanted in metrics_with(hub, wanted).splitlines()
        for each in open_ones:
            each.close()


def test_few_descriptors(folder, tmp_path):
    """With 300 files allowed, 500 clients of a large file all get it, some a little later."""
    with serving(folder, "-q", log=tmp_path / "log",
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))) as hub:
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            answers = list(pool.map(lambda _: ask(hub, "/org/m/resolve/main/large.bin"), range(500)))
        assert all(a.status == 200 and a.body == LARGE for a in answers)
        assert "connections at once" in hub.log()


def test_a_trickled_request_ends(folder, tmp_path):
    with serving(folder, "--timeout", "1", log=tmp_path / "log") as hub, \
            socket.create_connection(("127.0.0.1", port_of(hub)), timeout=20) as slow:
        sent = 0
        with pytest.raises((ConnectionError, BrokenPipeError)):
            for byte in b"GET / HTTP/1.1\r\nHost: " + b"x" * 60:
                slow.sendall(bytes([byte]))
                sent += 1
                time.sleep(0.2)
        assert sent < 50


def test_clients_that_go(hub):
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", port_of(hub))) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close is a reset
            client.sendall(b"GET /org/m/resolve/main/large.bin HTTP/1.1\r\nHost: x\r\n\r\n")
            client.recv(10)
    assert ask(hub, "/org/m/resolve/main/large.bin").body == LARGE


# ---- the end ----


def one_large_file(tmp_path, size):
    """A folder to serve with org/m, which is main/big.bin, of zeros that take no room."""
    state = tmp_path / "dir/models/org/m/main"
    state.mkdir(parents=True)
    with open(state / "big.bin", "wb") as big:
        big.truncate(size)
    return tmp_path / "dir"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_download_goes_on_after_a_signal(tmp_path, number):
    with serving(one_large_file(tmp_path, 200_000_000)) as hub:
        with socket.create_connection(("127.0.0.1", port_of(hub)), timeout=60) as client:
            client.sendall(b"GET /org/m/resolve/main/big.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = len(client.recv(1000).partition(b"\r\n\r\n")[2])
            hub.process.send_signal(number)
            time.sleep(0.5)
            assert hub.process.poll() is None
            with pytest.raises(ConnectionError):
                socket.create_connection(("127.0.0.1", port_of(hub)), timeout=5)
            while piece := client.recv(1 << 20):
                got += len(piece)
        assert got == 200_000_000
        assert hub.process.wait(30) == 0


def test_a_second_signal_ends_downloads(tmp_path):
    with serving(one_large_file(tmp_path, 200_000_000)) as hub:
        with socket.create_connection(("127.0.0.1", port_of(hub)), timeout=60) as client:
            client.sendall(b"GET /org/m/resolve/main/big.bin HTTP/1.1\r\nHost: x\r\n\r\n")
            client.recv(1000)
            hub.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert hub.stop() == 0


def test_stop_while_it_hashes(tmp_path):
    """Hashing 20 GB takes longer than anyone waits: the end doesn't wait for it."""
    with serving(one_large_file(tmp_path, 20_000_000_000), "--grace", "0") as hub:
        with socket.create_connection(("127.0.0.1", port_of(hub)), timeout=60) as client:
            client.sendall(b"GET /api/models/org/m HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.3)
            assert ask(hub, "/").status == 200  # others are answered meanwhile
            assert hub.stop(within=20) == 0


def test_one_slow_repository_holds_up_no_other(tmp_path):
    """More clients than threads wait for a repository whose hashing takes minutes; another, never asked for, is answered."""
    for name in ("slow", "other", "third"):
        (tmp_path / "dir/models/org" / name / "main").mkdir(parents=True)
        (tmp_path / "dir/models/org" / name / "main/a").write_text("a")
    with open(tmp_path / "dir/models/org/slow/main/big.bin", "wb") as big:
        big.truncate(500_000_000_000)
    with serving(tmp_path / "dir", "--grace", "0") as hub:
        clients = [socket.create_connection(("127.0.0.1", port_of(hub)), timeout=60) for _ in range(20)]
        for client in clients:
            client.sendall(b"GET /api/models/org/slow HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.3)
        assert ask(hub, "/org/other/resolve/main/a").body == b"a"
        assert ask(hub, "/org/third/resolve/main/a").body == b"a"
        for client in clients:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(1)
        assert hub.stop() == 0
        for client in clients:
            client.close()


# ---- options ----


@pytest.mark.parametrize("arguments, words", [
    ([], "which folder"), (["a", "b"], "one folder"), (["a", "--nosuch"], "--nosuch"), (["a", "--port"], "--port needs"),
    (["a", "--grace", "x"], "--grace x"), (["a", "--port", "80000"], "--port 80000: is no number from 0 to 65535"),
    (["a", "--port", "abc"], "--port abc: is no number"), (["a", "--port=-1"], "--port -1: is no number"), (["a", "--port", ""], "is no number"),
    (["a", "--port", "4294967296"], "is no number"), (["a", "--connections", "0"], "--connections 0: is no number from 1 to"),
    (["a", "--per-address", "0"], "--per-address 0: is no number from 1 to"), (["a", "--timeout", "0"], "--timeout 0: is no number from 1 to"), (["a", "--cert", "x"], "--cert and --key"), (["a", "--token", "x", "--token-file", "y"], "either")])
def test_wrong_usage(arguments, words):
    done = subprocess.run([KHUB, "serve", *arguments], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr


@pytest.mark.parametrize("arguments, words", [
    (["nosuch"], "nosuch"), (["/etc/passwd"], "/etc/passwd"), ([".", "--token-file", "nosuch"], "nosuch"),
    ([".", "--host", "192.0.2.1"], "192.0.2.1"), ([".", "--cert", "/etc/passwd", "--key", "/etc/passwd"], "PEM")])
def test_failures(arguments, words, tmp_path):
    done = subprocess.run([KHUB, "serve", *arguments, "--port", "0"], capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "") and words in done.stderr


def test_help_has_an_example_first():
    done = subprocess.run([KHUB, "serve", "--help"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "khub serve /srv/hub" in done.stdout.splitlines()[2]


def test_token(folder, tmp_path):
    with serving(folder, "--token", "right", log=tmp_path / "log") as hub:
        path = "/org/m/resolve/main/config.json"
        for target in (path, "/", "/metrics", "/api/models/org/m", "/api/nosuch", "/x"):
            assert ask(hub, target).status == 401
            assert ask(hub, target, Authorization="Bearer wrong").headers["X-Error-Message"] == "Invalid credentials in Authorization header"
            assert ask(hub, target, Authorization="Basic cmlnaHQ6").status == 401
        early = b"POST /api/models/org/m/paths-info/main HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        assert raw(hub, early).startswith(b"HTTP/1.1 401")  # before the body
        assert ask(hub, path, Authorization="Bearer right").body == b'{"a": 1}'
        assert ask(hub, path).headers["X-Error-Code"] == "RepoNotFound"
        assert "right" not in hub.log() and "wrong" not in hub.log()


def test_tls(folder, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True, timeout=60)
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", other],
                   check=True, capture_output=True, timeout=60)
    for pair, named in (((cert, other), [cert, other]), ((key, key), [key]), ((cert, cert), [cert])):
        done = subprocess.run([KHUB, "serve", folder, "--port", "0", "--cert", pair[0], "--key", pair[1]], capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and all(str(path) in done.stderr for path in named)
    with serving(folder, "--cert", cert, "--key", key, log=tmp_path / "log") as hub:
        assert hub.url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=cert)
        with socket.create_connection(("127.0.0.1", port_of(hub)), timeout=30) as plain, \
                context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.sendall(b"GET /org/m/resolve/main/large.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = b""
            while piece := client.recv(1 << 16):
                got += piece
        assert got.partition(b"\r\n\r\n")[2] == LARGE


def test_next_page_is_at_the_address_that_was_asked(tmp_path):
    state = tmp_path / "dir/models/org/m/main"
    state.mkdir(parents=True)
    for i in range(1001):
        (state / f"{i}").write_text("")
    with serving(tmp_path / "dir") as hub:
        got = ask(hub, "/api/models/org/m/tree/main", Host="room:80")
        sha = got.headers["X-Repo-Commit"]
        assert got.headers["Link"] == f'<http://room:80/api/models/org/m/tree/{sha}?recursive=false&cursor=1000>; rel="next"'
        page = ask(hub, f"/api/models/org/m/tree/{sha}?recursive=false&cursor=1000")
        assert len(json.loads(page.body)) == 1 and "Link" not in page.headers
        assert json.loads(ask(hub, f"/api/models/org/m/tree/{sha}?cursor=99999999999999999999").body) == []
    with serving(tmp_path / "dir", "--url", "https://hub.room") as hub:
        assert ask(hub, "/api/models/org/m/tree/main").headers["Link"].startswith("<https://hub.room/api/models/")


def metrics_with(hub, *wanted):
    """The metrics once they have these lines: a request is counted a moment after its client has the answer."""
    for _ in range(200):
        text = ask(hub, "/metrics").body.decode()
        if set(wanted) <= set(text.splitlines()):
            break
        time.sleep(0.05)
    return text


def test_log_and_metrics(folder, tmp_path):
    with serving(folder, log=tmp_path / "log") as hub:
        ask(hub, "/org/m/resolve/main/config.json", User_Agent="evil one\x1b[31m")
        ask(hub, "/nosuch?token=secret")
        ask(hub, "/org/m/resolve/main/config.json", "HEAD")
        text = metrics_with(hub, 'khub_serve_requests_total{code="404"} 1', "khub_serve_connections 1")
        hub.stop()
        lines = {tuple(line.split()[2:5]): line for line in hub.log().splitlines()}
    assert re.fullmatch(r"\S+Z 127\.0\.0\.1 GET /org/m/resolve/main/config\.json 200 8 [\d.]+ms \"evil one\?\[31m\"",
                        lines["GET", "/org/m/resolve/main/config.json", "200"])
    assert re.search(r" 200 0 [\d.]+ms ", lines["HEAD", "/org/m/resolve/main/config.json", "200"])
    assert ("GET", "/nosuch", "404") in lines and "secret" not in str(lines)
    assert 'khub_serve_requests_total{code="404"} 1\n' in text and 'khub_serve_requests_total{code="200"} ' in text
    assert "khub_serve_hashed_bytes_total" in text and "khub_serve_connections 1\n" in text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) khub_serve_\w+ .+|khub_serve_\w+(\{code=\"\d+\"\})? \d+", line)


def test_everything_is_hashed_before_anyone_asks(tmp_path):
    sizes = {"org/a/v1/x.so": 1000, "models/org/m/main/y": 200, "models/gpt0/config.json": 30, "org/b/build/z": 4}
    for path, size in sizes.items():
        (tmp_path / "dir" / path).parent.mkdir(parents=True)
        (tmp_path / "dir" / path).write_bytes(b"x" * size)
    with serving(tmp_path / "dir") as hub:
        wanted = "khub_serve_hashed_bytes_total 1234"
        assert wanted in metrics_with(hub, wanted).splitlines()


def test_quiet(folder, tmp_path):
    with serving(folder, "-q", log=tmp_path / "log") as hub:
        ask(hub, "/org/m/resolve/main/config.json")
        hub.stop()
        assert hub.log() == ""


def test_files_that_may_not_be_read():
    with tempfile.TemporaryDirectory() as top:
        state = pathlib.Path(top, "dir/models/org/m/main")
        (state / "shut").mkdir(parents=True)
        for name in ("a", "b", "shut/c"):
            (state / name).write_text(name)
        (state / "b").chmod(0)
        (state / "shut").chmod(0)
        os.chmod(top, 0o755)
        nobody = (lambda: os.setuid(65534)) if os.geteuid() == 0 else None # root may read everything
        with serving(pathlib.Path(top, "dir"), preexec_fn=nobody) as hub:
            listed = [e["path"] for e in json.loads(ask(hub, "/api/models/org/m/tree/main?recursive=1").body)]
        (state / "shut").chmod(0o755)
    assert listed == ["a"]
