"""Long listings, and names that aren't paths inside a repository."""
import json

import pytest
from hub import COMMIT, Hub, git_blob, head

OID = git_blob(b"x")


def entry(path):
    return {"type": "file", "path": path, "size": 1, "oid": OID}


def paged(pages, link=lambda hub, i: f"{hub.url}/api/kernels/o/n/tree/{COMMIT}?recursive=true&cursor={i}"):
    """A Hub that gives these pages; `link` says how page i is named."""
    bodies = [json.dumps(page).encode() for page in pages]

    def handle(request, connection):
        i = int(request.query.rpartition("cursor=")[2]) if "cursor=" in request.query else 0
        more = {"Link": f'<{link(hub, i + 1)}>; rel="next"'} if i + 1 < len(pages) else {}
        connection.answer(bodies[i], **more)

    hub = Hub(handle)
    return hub


PAGES = [[entry(f"{i:05}") for i in range(start, min(start + 1000, 2500))] for start in (0, 1000, 2000)]


def all_are_there(got):
    assert got["status"] == "KHUB_OK", got["message"]
    assert [f["path"] for f in got["tree"]] == [f"{i:05}" for i in range(2500)]


@pytest.mark.parametrize("link", [
    lambda hub, i: f"{hub.url}/api/kernels/o/n/tree/{COMMIT}?recursive=true&cursor={i}",
    lambda hub, i: f"/api/kernels/o/n/tree/{COMMIT}?recursive=true&cursor={i}",
    lambda hub, i: f"?recursive=true&cursor={i}",
    lambda hub, i: f"https://huggingface.co/api/kernels/o/n/tree/{COMMIT}?recursive=true&cursor={i}",
    lambda hub, i: f"http://127.0.0.1:1/api/kernels/o/n/tree/{COMMIT}?recursive=true&cursor={i}",
], ids=["absolute", "path", "query", "huggingface.co", "another port"])
def test_three_pages(link):
    """C3: the next page is asked at the endpoint, whatever its address names, and with the token."""
    with paged(PAGES, link) as hub:
        all_are_there(hub.ask("tree", "o/n", COMMIT, HF_TOKEN="hf_x"))
        assert [r.headers["authorization"] for r in hub.requests] == ["Bearer hf_x"] * 3


@pytest.mark.parametrize("prefix", ["/hub", ""])
def test_pages_behind_a_path(prefix):
    """A mirror under a path of its host passes on the links of the real one, or rewrites them."""
    with paged(PAGES, lambda hub, i: f"https://huggingface.co{prefix}/api/kernels/o/n/tree/{COMMIT}?cursor={i}") as hub:
        all_are_there(hub.ask("tree", "o/n", COMMIT, HF_ENDPOINT=hub.url + "/hub/"))
        assert all(p.startswith("/hub/api/") for p in hub.paths())


def test_a_full_page_without_a_link():
    with paged(PAGES[:1]) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
        assert len(hub.requests) == 1
    assert got["count"] == 1000


@pytest.mark.parametrize("value", ['<{url}>; rel="prev", <{url}>; rel="first"', '<{url}>', "", "<", "<>; rel=next", 'rel="next"', "<{url}; rel=next", '<{url}>; title="rel=next"'])
def test_links_that_name_no_next_page(value):
    with Hub(lambda r, c: c.json([entry("a")], Link=value.format(url=hub.url))) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
        assert len(hub.requests) == 1
    assert got["status"] == "KHUB_OK" and got["count"] == 1


def test_link_beside_others():
    link = lambda hub, i: f'{hub.url}/prev>; rel="prev"; title="a, <b>", <{hub.url}/api?cursor={i}'
    with paged(PAGES, link) as hub:
        all_are_there(hub.ask("tree", "o/n", COMMIT))


@pytest.mark.parametrize("circle", [1, 3])
def test_pages_in_a_circle(circle):
    def handle(request, connection):
        i = len(hub.requests)
        connection.json([entry(f"f{i}")], Link=f'<{hub.url}/page?cursor={i % circle}>; rel="next"')

    with Hub(handle) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
        assert len(hub.requests) <= circle + 2
    assert got["status"] == "KHUB_E_FORMAT" and "page" in got["message"]


def test_pages_without_end():
    def handle(request, connection):
        connection.json([], Link=f'<{hub.url}/page?cursor={len(hub.requests)}>; rel="next"')

    with Hub(handle) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
        assert len(hub.requests) == 4000
    assert got["status"] == "KHUB_E_FORMAT" and "4000 pages" in got["message"]


def test_a_million_entries_in_one_page():
    """Beyond the bytes that a page may have; the limit in files is in the unit tests."""
    piece = b",".join([json.dumps(entry("a")).encode()] * 1000) + b","

    def handle(request, connection):
        connection.send(head(200, 1000 * len(piece) + 2) if announced else head(200, Transfer_Encoding="chunked"))
        for _ in range(1000):
            connection.send(piece if announced else b"%x\r\n%s\r\n" % (len(piece), piece))

    for announced in (True, False):
        with Hub(handle) as hub:
            got = hub.ask("tree", "o/n", COMMIT)
        assert got["status"] == "KHUB_E_FORMAT" and "32" in got["message"]


BAD_NAMES = ["../x", "a/../../x", "a/..", "..", ".", "./a", "/etc/passwd", "a//b", "a/", "", "a\\b", "..\\x", "C:/x", "c:x", "a\nb", "a\x7f", "a\x01b",
             "x" * 5000, "a/" + "x" * 256, "/".join(["dir"] * 400), "\u0085"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_names_that_climb(name):
    with Hub(lambda r, c: c.json([entry("good"), entry(name)])) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
    assert got["status"] == "KHUB_E_FORMAT" and got["count"] == 0
    assert len(got["message"]) < 400


@pytest.mark.parametrize("raw", [b'"a\\u0000b"', b'"a\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b"7", b"null", b"[]"])
def test_names_that_are_not_text(raw):
    with Hub(lambda r, c: c.answer(b'[{"type":"file","size":1,"oid":"%s","path":%s}]' % (OID.encode(), raw))) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
    assert got["status"] == "KHUB_E_FORMAT" and got["count"] == 0


@pytest.mark.parametrize("name", ["a b", "ä/ö", "日本", "ab:c", "...", "..a", "a..", ".gitattributes", "a?b#c%20"])
def test_names_that_are_paths(name):
    with Hub(lambda r, c: c.json([entry(name)])) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
    assert [f["path"] for f in got["tree"]] == [name]


@pytest.mark.parametrize("names", [["a", "a"], ["a", "a/b"], ["x/y", "a", "x/y/z/w"], ["a-b", "a", "a/b"]])
def test_names_that_collide(names):
    with Hub(lambda r, c: c.json([entry(n) for n in names])) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
    assert got["status"] == "KHUB_E_FORMAT" and got["count"] == 0


@pytest.mark.parametrize("change", [{"size": -1}, {"size": 1.5}, {"size": None}, {"size": "1"}, {"size": 2**64}, {"oid": "../x"}, {"oid": OID.upper()}, {"oid": 5},
                                    {"lfs": {"oid": "x" * 64}}, {"lfs": {"oid": OID}}, {"lfs": []}, {"type": None}, {"type": 1}, {"path": None}])
def test_entries_that_are_wrong(change):
    with Hub(lambda r, c: c.json([entry("a") | change])) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
    assert got["status"] == "KHUB_E_FORMAT"
