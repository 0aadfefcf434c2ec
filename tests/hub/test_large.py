"""A large file: in ranges over a few connections, in order for the sink, and whatever a server makes of ranges."""
import hashlib

import pytest
from hub import COMMIT, Hub, head, one_file, sha256

MB = 1 << 20
CHUNK = 4 * MB
DATA = hashlib.shake_128(b"large").digest(70 * MB + 5)
ARGUMENT = one_file(DATA, etag=sha256(DATA))


def fetch(hub, *options, **environment):
    return hub.ask(*options, "fetch", "o/n", COMMIT, ARGUMENT, **environment)


def whole(got):
    assert got["status"] == "KHUB_OK", got["message"]
    assert got["files"]["f"]["bytes"] == len(DATA) and got["files"]["f"]["calls"][-1] == "finish"
    assert got["progress"]["bytes_done"] == got["progress"]["bytes_total"] == len(DATA)
    return got


def test_comes_in_ranges():
    with Hub(lambda r, c: c.content(r, DATA)) as hub:
        whole(fetch(hub))
        ranges = sorted(r.range(len(DATA)) for r in hub.requests)
        assert ranges == [(at, min(at + CHUNK, len(DATA)) - 1) for at in range(0, len(DATA), CHUNK)]
        assert 2 <= hub.connections <= 4


def test_goes_on_with_what_is_there(tmp_path):
    (tmp_path / "have").write_bytes(DATA)
    with Hub(lambda r, c: c.content(r, DATA)) as hub:
        whole(fetch(hub, "--have", tmp_path / "have", "--have-bytes", 1234567))
        assert min(r.range(len(DATA))[0] for r in hub.requests) == 1234567


def test_what_is_there_is_of_another_file(tmp_path):
    (tmp_path / "have").write_bytes(bytes(2 * MB))
    with Hub(lambda r, c: c.content(r, DATA)) as hub:
        got = whole(fetch(hub, "--have", tmp_path / "have", "--have-bytes", 2 * MB))
        assert sorted(r.range(len(DATA))[0] for r in hub.requests)[:2] == [0, 2 * MB]
    assert got["files"]["f"]["calls"] == ["begin", "finish", "finish"]


def test_no_ranges():
    with Hub(lambda r, c: c.answer(DATA)) as hub:
        got = whole(fetch(hub))
        assert len(hub.requests) == 1
    assert got["files"]["f"]["calls"] == ["begin", "finish"]


def test_no_ranges_and_some_is_there(tmp_path):
    (tmp_path / "have").write_bytes(DATA)
    with Hub(lambda r, c: c.answer(DATA)) as hub:
        got = whole(fetch(hub, "--have", tmp_path / "have", "--have-bytes", 1234567))
    assert got["files"]["f"]["calls"] == ["begin", "restart", "finish"]


def test_ranges_only_at_first():
    def handle(request, connection):
        if len(hub.requests) <= 3:
            connection.content(request, DATA)
        else:
            connection.answer(DATA)

    with Hub(handle) as hub:
        got = whole(fetch(hub))
    assert got["files"]["f"]["calls"] == ["begin", "restart", "finish"]


def test_the_sink_is_slow():
    with Hub(lambda r, c: c.answer(DATA)) as hub:
        got = whole(fetch(hub, "--slow", 2000))
    assert got["longest_tick_ms"] < 1000


def test_connections_break():
    """Each answer stops in the middle: the rest is asked for."""
    def handle(request, connection):
        start, end = request.range(len(DATA))
        connection.send(head(206, end - start + 1, Content_Range=f"bytes {start}-{end}/{len(DATA)}"))
        if len(hub.requests) % 3 == 0:
            end -= (end - start) // 2 + 1
            connection.close()
        connection.send(DATA[start : end + 1])

    with Hub(handle) as hub:
        got = whole(fetch(hub))
        assert len(hub.requests) > len(DATA) // CHUNK + 3
    assert got["files"]["f"]["calls"] == ["begin", "finish"]


def test_a_stream_breaks():
    def handle(request, connection):
        part = request.range(len(DATA))
        if len(hub.requests) == 1:
            connection.send(head(200, len(DATA)) + DATA[: 30 * MB])
            return connection.close()
        assert part == (30 * MB, len(DATA) - 1)
        connection.content(request, DATA)

    with Hub(handle) as hub:
        got = whole(fetch(hub))
    assert got["waits"] == [1000] and got["requests"] == 2


def test_download_addresses_expire():
    """Ranges go where the first redirect led, without asking the Hub each time, until that is refused."""
    def handle(request, connection):
        if request.path.startswith("/kernels/"):
            connection.redirect(f"/store/{len(hub.requests)}?signature=x")
        elif len([r for r in hub.requests if r.path == request.path]) > 6:
            connection.answer(b"expired", 403)
        else:
            connection.content(request, DATA)

    with Hub(handle) as hub:
        whole(fetch(hub))
        asked = [p for p in hub.paths() if p.startswith("/kernels/")]
        assert 2 <= len(asked) <= 12


def test_another_size():
    with Hub(lambda r, c: c.content(r, DATA[:-1])) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_FORMAT" and str(len(DATA)) in got["message"] and str(len(DATA) - 1) in got["message"]


def test_a_changed_byte():
    wrong = DATA[: 50 * MB] + b"?" + DATA[50 * MB + 1 :]
    with Hub(lambda r, c: c.content(r, wrong)) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_UNTRUSTED" and sha256(DATA) in got["message"]
    assert got["files"]["f"]["calls"] == ["begin", "finish"]


def test_a_range_that_is_another():
    def handle(request, connection):
        start, end = request.range(len(DATA))
        connection.send(head(206, end - start + 1, Content_Range=f"bytes {start + 1}-{end + 1}/{len(DATA)}") + DATA[start : end + 1])

    with Hub(handle) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_FORMAT"


def test_a_range_is_refused():
    with Hub(lambda r, c: c.answer(b"", 416)) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_FORMAT" and len(hub.requests) <= 3


@pytest.mark.parametrize("options", [(), ("--slow", 3000)])
def test_cancel(options):
    def handle(request, connection):
        connection.send(head(200, len(DATA)) + DATA[: 20 * MB])
        hub.stopped.wait(10)

    with Hub(handle) as hub:
        got = fetch(hub, "--cancel", 300, *options)
    assert got["status"] == "KHUB_E_CANCELED" and got["files"]["f"]["calls"] == ["begin", "abandon, keep"]


def test_two_at_once():
    """One after the other, the small files meanwhile."""
    with Hub(lambda r, c: c.content(r, b"small" if r.path.endswith("small") else DATA)) as hub:
        got = hub.ask("fetch", "o/n", COMMIT, one_file(DATA, "a", etag=sha256(DATA)), one_file(DATA, "b", etag=sha256(DATA)), one_file(b"small", "small"))
    assert got["status"] == "KHUB_OK", got["message"]
    assert got["progress"]["files_done"] == 3


def test_the_disk_is_full():
    with Hub(lambda r, c: c.content(r, DATA)) as hub:
        got = fetch(hub, "--full", 20 * MB)
        assert len(hub.requests) <= 12
    assert got["status"] == "KHUB_E_NOSPACE" and got["message"] == "f: the disk is full"
    assert got["files"]["f"]["calls"] == ["begin", "abandon"] and got["waits"] == []
