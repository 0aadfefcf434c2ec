"""Servers that misbehave: each ends in the right status and words, or well after a new try."""
import gzip
import os
import socket
import ssl
import time

import pytest
from hub import COMMIT, Hub, ask, git_blob, head, one_file, sha256

FILE = bytes(range(256)) * 400


def fetch(hub, *options, argument=None, **environment):
    return hub.ask(*options, "fetch", "o/n", COMMIT, argument or one_file(FILE), **environment)


def calls(got):
    return got["files"]["f"]["calls"]


def test_closes_early():
    def handle(request, connection):
        start = (request.range(len(FILE)) or (0,))[0]
        if len(hub.requests) < 4:
            connection.send(head(206 if start else 200, len(FILE) - start, Content_Range=f"bytes {start}-{len(FILE) - 1}/{len(FILE)}"))
            connection.send(FILE[start : start + 10000])
            return connection.close()
        connection.content(request, FILE)

    with Hub(handle) as hub:
        got = fetch(hub)
        assert [r.headers.get("range") for r in hub.requests] == [None, "bytes=10000-", "bytes=20000-", "bytes=30000-"]
    assert got["status"] == "KHUB_OK" and got["waits"] == [1000, 2000, 4000] and calls(got) == ["begin", "finish"]


def test_closes_early_for_ever():
    def handle(request, connection):
        connection.send(head(200, len(FILE)) + FILE[:1])
        connection.close()

    with Hub(handle) as hub:
        got = fetch(hub)
        assert len(hub.requests) <= 6
    assert got["status"] in ("KHUB_E_NETWORK", "KHUB_E_FORMAT") and "abandon" in calls(got)[-1]


def test_closes_without_an_answer():
    with Hub(lambda r, c: c.close()) as hub:
        got = fetch(hub)
        assert len(hub.requests) == 6
    assert got["status"] == "KHUB_E_NETWORK" and got["waits"] == [1000, 2000, 4000, 8000, 8000]
    assert calls(got) == ["begin", "abandon, keep"]


@pytest.mark.parametrize("sent", [FILE[:-1], FILE + b"x", b""])
def test_announces_another_size(sent):
    with Hub(lambda r, c: c.content(r, sent)) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_FORMAT", got
    assert str(len(FILE)) in got["message"] and str(len(sent)) in got["message"] and "finish" not in calls(got)


def test_more_bytes_without_a_length():
    def handle(request, connection):
        connection.send(head(200, Transfer_Encoding="chunked"))
        connection.send(b"%x\r\n%s\r\n" % (len(FILE), FILE) + b"1\r\nx\r\n0\r\n\r\n")

    with Hub(handle) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_FORMAT" and "more" in got["message"] and calls(got) == ["begin", "abandon"]


def test_no_length():
    def handle(request, connection):
        connection.send(head(200, Transfer_Encoding="chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(FILE), FILE))

    with Hub(handle) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_OK"


def test_no_length_ends_early():
    """The end of the connection is the end of the file, and comes too early."""
    def handle(request, connection):
        if request.range(len(FILE)):
            return connection.content(request, FILE)
        connection.send(head(200) + FILE[:500])
        connection.close()

    with Hub(handle) as hub:
        got = fetch(hub)
        assert hub.requests[1].headers["range"] == "bytes=500-"
    assert got["status"] == "KHUB_OK"


def test_nobody_knows_the_size():
    with Hub(lambda r, c: c.send(head(200, Transfer_Encoding="chunked", ETag=git_blob(FILE)) + b"1\r\nx\r\n0\r\n\r\n")) as hub:
        got = fetch(hub, argument="f")
    assert got["status"] == "KHUB_E_FORMAT" and "how long" in got["message"]


def test_stalls():
    def handle(request, connection):
        connection.send(head(200, len(FILE)) + FILE[:10])
        hub.stopped.wait(20)

    with Hub(handle) as hub:
        got = fetch(hub, "--stall", 150)
    assert got["status"] == "KHUB_E_NETWORK" and "0.15 s" in got["message"] and len(got["waits"]) == 5
    assert got["ended_at_ms"] < 10000


def test_never_answers():
    with Hub(lambda r, c: hub.stopped.wait(20)) as hub:
        got = hub.ask("--stall", 100, "--connect", 50, "--hurry", "refs", "o/n")
    assert got["status"] == "KHUB_E_NETWORK" and got["requests"] == 1


def test_a_hurried_question_is_given_up_soon():
    """D3: a Hub that doesn't answer costs less than 3 s when the cache has an answer."""
    with Hub(lambda r, c: hub.stopped.wait(20)) as hub:
        got = hub.ask("--hurry", "refs", "o/n")
        assert len(hub.requests) == 1
    assert got["status"] == "KHUB_E_NETWORK" and "2.5 s" in got["message"]


def test_trickles():
    """Slow isn't stalled: there is no limit for the whole."""
    def handle(request, connection):
        connection.send(head(200, 12))
        for i in range(12):
            connection.send(b"x")
            time.sleep(0.05)

    with Hub(handle) as hub:
        got = fetch(hub, "--stall", 300, argument=one_file(b"x" * 12))
    assert got["status"] == "KHUB_OK" and got["requests"] == 1


def trickle(connection, piece, outlasted):
    """Sends `piece` again and again for 3 s, unless the other side ends it; notes that it didn't."""
    for _ in range(60):
        connection.send(piece)
        time.sleep(0.05)
    outlasted.append(1)


@pytest.mark.parametrize("start, want", [(head(404, X_Error_Code="EntryNotFound", Transfer_Encoding="chunked"), "KHUB_E_NOTFOUND"),
                                         (head(302, Location="/there", Transfer_Encoding="chunked"), "KHUB_OK")])
def test_a_body_that_nobody_wants_is_not_waited_for(start, want):
    """What such a head says counts, however long its body trickles."""
    def handle(request, connection):
        if request.path == "/there":
            return connection.content(request, FILE)
        connection.send(start)
        trickle(connection, b"1\r\nx\r\n", outlasted)

    outlasted = []
    with Hub(handle) as hub:
        got = fetch(hub, "--stall", 200)
    assert got["status"] == want and got["waits"] == [] and not outlasted


def test_trailers_without_end():
    def handle(request, connection):
        connection.send(head(200, Transfer_Encoding="chunked") + b"%x\r\n%s\r\n0\r\n" % (len(FILE), FILE))
        trickle(connection, b"X-More: and more\r\n", outlasted)

    outlasted = []
    with Hub(handle) as hub:
        got = fetch(hub, "--stall", 200)
    assert got["status"] == "KHUB_OK" and got["requests"] == 1 and not outlasted  # the file was there


def test_changes_a_byte():
    with Hub(lambda r, c: c.content(r, b"?" + FILE[1:])) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_E_UNTRUSTED" and len(hub.requests) == 1


def test_500_five_times_then_200():
    def handle(request, connection):
        connection.answer(status=500) if len(hub.requests) <= 5 else connection.content(request, FILE)

    with Hub(handle) as hub:
        got = fetch(hub)
    assert got["status"] == "KHUB_OK" and got["waits"] == [1000, 2000, 4000, 8000, 8000]


def test_500_for_ever():
    with Hub(lambda r, c: c.answer(status=500, X_Error_Message="the cat sits on it")) as hub:
        got = fetch(hub)
        assert len(hub.requests) == 6
    assert got["status"] == "KHUB_E_NETWORK" and "500" in got["message"] and "the cat sits on it" in got["message"]


@pytest.mark.parametrize("headers, wait", [({"Retry_After": 7}, 8000), ({"ratelimit": '"api";r=0;t=55'}, 56000),
                                           ({"Retry_After": 3, "ratelimit": '"resolvers"; r=0; t=5'}, 6000),
                                           ({"ratelimit": '"api";r=10;t=55'}, 1000), ({}, 1000)])
def test_429(headers, wait):
    def handle(request, connection):
        connection.answer(status=429, **headers) if len(hub.requests) == 1 else connection.json({"sha": COMMIT})

    with Hub(handle) as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["status"] == "KHUB_OK" and got["waits"] == [wait]


def test_429_for_hours():
    with Hub(lambda r, c: c.answer(status=429, Retry_After=7200)) as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["status"] == "KHUB_E_NETWORK" and got["waits"] == [] and "7200 s" in got["message"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 416, 418])
def test_other_refusals_are_final(status):
    with Hub(lambda r, c: c.answer(status=status)) as hub:
        hub.ask("commit", "o/n", "v1")
        got = fetch(hub)
        assert len(hub.requests) == 2
    assert got["status"] != "KHUB_OK" and got["waits"] == []


def test_nobody_listens():
    with Hub(None) as hub:
        url = hub.url
    got = ask(url, "commit", "o/n", "v1")
    assert got["status"] == "KHUB_E_NETWORK" and len(got["waits"]) == 5 and url.removeprefix("http://") in got["message"]
    assert "HF_ENDPOINT" in got["message"] and [f"({n} of 6)" in line for n, line in zip(range(2, 7), [x for x in got["log"] if f"can't reach {url}: " in x])] == [True] * 5


# Redirects


def test_redirects_in_a_circle():
    with Hub(lambda r, c: c.redirect("/b" if r.path == "/a" else "/a", 307)) as hub:
        got = fetch(hub)
        assert 2 < len(hub.requests) < 25
    assert got["status"] == "KHUB_E_NETWORK" and "redirects" in got["message"] and got["requests"] == 1


@pytest.mark.parametrize("location, words", [("file:///etc/passwd", "file"), ("ftp://127.0.0.1/x", "ftp"), ("http://user:pw@127.0.0.1/", "address"),
                                             ("http://", "address"), ("http://exa mple/", "address"), ("gopher:x", "gopher")])
def test_redirects_to_what_is_not_followed(location, words):
    with Hub(lambda r, c: c.redirect(location)) as hub:
        got = fetch(hub)
        assert len(hub.requests) == 1
    assert got["status"] == "KHUB_E_NETWORK" and words in got["message"] and got["waits"] == []
    assert got["message"].count(hub.url) == 1


def test_token_stays_at_home():
    """Not to another origin, nor back home after a hop through it."""
    def elsewhere(request, connection):
        connection.redirect(f"{hub.url}/back")

    def handle(request, connection):
        if request.path == "/back":
            return connection.content(request, FILE)
        connection.redirect(f"{other.url}/there?x=y", X_Linked_Etag=f'"{git_blob(FILE)}"', X_Linked_Size=len(FILE), X_Repo_Commit=COMMIT)

    with Hub(elsewhere) as other, Hub(handle) as hub:
        got = fetch(hub, HF_TOKEN="hf_secret")
        assert got["status"] == "KHUB_OK"
        assert hub.requests[0].headers["authorization"] == "Bearer hf_secret"
        assert hub.requests[1].path == "/back" and "authorization" not in hub.requests[1].headers
        assert "authorization" not in other.requests[0].headers and other.requests[0].query == "x=y"
    assert "hf_secret" not in got["text"]


def test_token_follows_at_home():
    with Hub(lambda r, c: c.redirect("/moved", 307) if r.path != "/moved" else c.content(r, FILE)) as hub:
        got = fetch(hub, HF_TOKEN="hf_secret")
        assert [r.headers.get("authorization") for r in hub.requests] == ["Bearer hf_secret"] * 2
    assert got["status"] == "KHUB_OK" and got["requests"] == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1."])
def test_another_name_of_the_same_machine_is_another_origin(host):
    with Hub(lambda r, c: c.redirect(f"http://{host}:{hub.port}/moved") if r.path != "/moved" else c.content(r, FILE)) as hub:
        fetch(hub, HF_TOKEN="hf_secret")
        assert hub.requests and all("authorization" not in r.headers for r in hub.requests if r.path == "/moved")


def test_a_server_that_tells_the_token():
    """It comes back in words, in an address: not in what is shown."""
    with Hub(lambda r, c: c.answer(status=403, X_Error_Message="no, Bearer hf_secret") if "/api/" in r.path else c.redirect("/hf_secret/x") if "resolve" in r.path else c.answer(status=404)) as hub:
        for got in (hub.ask("commit", "o/n", "v1", HF_TOKEN="hf_secret"), fetch(hub, HF_TOKEN="hf_secret")):
            assert got["status"] != "KHUB_OK" and "hf_secret" not in got["text"]


# C4: mirrors that lack a header


def test_mirror_that_redirects_to_a_hub():
    def real(request, connection):
        connection.content(request, FILE, ETag=f'"{git_blob(FILE)}"', X_Repo_Commit=COMMIT)

    with Hub(real) as other, Hub(lambda r, c: c.redirect(other.url + r.path)) as hub:
        got = fetch(hub, argument="f", HF_TOKEN="hf_secret")
        assert "authorization" not in other.requests[0].headers
    assert got["status"] == "KHUB_OK" and got["files"]["f"]["etag"] == git_blob(FILE)


def test_no_header_at_all():
    with Hub(lambda r, c: c.content(r, FILE)) as hub:
        got = fetch(hub, argument="f")
    assert got["status"] == "KHUB_E_FORMAT"
    assert "ETag" in got["message"] and hub.url in got["message"] and "HF_ENDPOINT" in got["message"]


def test_no_etag_but_the_tree_has_it():
    with Hub(lambda r, c: c.content(r, FILE)) as hub:
        assert fetch(hub)["status"] == "KHUB_OK"


# C5: sizes and ETags


@pytest.mark.parametrize("form", ['"%s"', 'W/"%s"', "%s"])
@pytest.mark.parametrize("name", [git_blob(FILE), sha256(FILE)])
def test_forms_of_an_etag(form, name):
    with Hub(lambda r, c: c.content(r, FILE, ETag=form % name)) as hub:
        got = fetch(hub, argument="f")
    assert got["status"] == "KHUB_OK" and got["files"]["f"]["etag"] == name


@pytest.mark.parametrize("etag", ["../../x", "a/b", "", "0" * 39, "0" * 300, "A" * 40])
def test_etag_that_is_no_hash(etag):
    with Hub(lambda r, c: c.content(r, FILE, ETag=f'"{etag}"')) as hub:
        got = fetch(hub, argument="f")
    assert got["status"] == "KHUB_E_FORMAT" and "ETag" in got["message"] and calls(got) == []


def test_linked_headers_of_the_redirect_count():
    """The redirect says what the content is; the store behind it has an ETag of its own."""
    def handle(request, connection):
        if request.path.startswith("/store"):
            return connection.content(request, FILE, ETag='"stores-own-2"')
        connection.send(head(302, 0, Location="/store", X_Linked_Etag=f'"{sha256(FILE)}"', X_Linked_Size=len(FILE), ETag='"page"'))

    with Hub(handle) as hub:
        got = fetch(hub, argument="f")
    assert got["status"] == "KHUB_OK" and got["files"]["f"]["etag"] == sha256(FILE)


@pytest.mark.parametrize("packed", [gzip.compress(FILE), gzip.compress(bytes(64 << 20))])
def test_compressed_though_identity_was_asked(packed):
    with Hub(lambda r, c: c.answer(packed, Content_Encoding="gzip", ETag=git_blob(FILE))) as hub:
        for got in (fetch(hub), hub.ask("commit", "o/n", "v1")):
            assert got["status"] == "KHUB_E_FORMAT" and "compressed" in got["message"]
        assert all(r.headers["accept-encoding"] == "identity" for r in hub.requests)


def test_416_once():
    """What is there is longer than what the server has: starts over."""
    with Hub(lambda r, c: c.answer(status=416) if "range" in r.headers else c.content(r, FILE)) as hub:
        got = fetch(hub, "--have", __file__, "--have-bytes", 100)
    assert got["status"] == "KHUB_OK" and calls(got) == ["begin", "restart", "finish"] and len(hub.requests) == 2


def test_200_to_a_range():
    with Hub(lambda r, c: c.answer(FILE)) as hub:
        got = fetch(hub, "--have", __file__, "--have-bytes", 100)
    assert got["status"] == "KHUB_OK" and calls(got) == ["begin", "restart", "finish"] and len(hub.requests) == 1


def test_first_failure_ends_all():
    def handle(request, connection):
        if request.path.endswith("bad"):
            return connection.answer(status=404, X_Error_Code="EntryNotFound")
        connection.send(head(200, len(FILE)) + FILE[:1000])
        hub.stopped.wait(10)

    with Hub(handle) as hub:
        got = hub.ask("fetch", "o/n", COMMIT, one_file(FILE, "f"), one_file(FILE, "g"), one_file(FILE, "bad"))
    assert got["status"] == "KHUB_E_NOTFOUND" and '"bad"' in got["message"]
    assert got["files"]["g"]["calls"] == ["begin", "abandon, keep"]


@pytest.mark.parametrize("what", ["answer", "body", "retry"])
def test_cancel(what):
    def handle(request, connection):
        if what == "retry":
            return connection.answer(status=429, Retry_After=300)
        if what == "body":
            connection.send(head(200, len(FILE)) + FILE[:1000])
        hub.stopped.wait(10)

    with Hub(handle) as hub:
        arguments = ("fetch", "o/n", COMMIT, one_file(FILE)) if what == "body" else ("commit", "o/n", "v1")
        got = hub.ask("--cancel", 200, *arguments)
    assert got["status"] == "KHUB_E_CANCELED"


# What the head may be


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200000 + b"\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100000 + b"\r\n", b"HTTP/1.1 99999 OK\r\n\r\n", b"\0" * 1000])
def test_heads_that_are_none(answer):
    def handle(request, connection):
        connection.send(answer)
        connection.close()

    with Hub(handle) as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["status"] in ("KHUB_E_NETWORK", "KHUB_E_FORMAT")


def test_json_of_a_gigabyte():
    def handle(request, connection):
        connection.send(head(200, Transfer_Encoding="chunked"))
        for _ in range(1 << 10):
            connection.send(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
            hub.sent += 1

    with Hub(handle) as hub:
        hub.sent = 0
        got = hub.ask("refs", "o/n")
        assert hub.sent < 64
    assert got["status"] == "KHUB_E_FORMAT" and "32 MB" in got["message"]


def test_json_of_a_gigabyte_announced():
    with Hub(lambda r, c: c.send(head(200, 1 << 30))) as hub:
        got = hub.ask("refs", "o/n")
    assert got["status"] == "KHUB_E_FORMAT" and "1024 MB" in got["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"branches":1}', b'{"branches":[1]}', b'{"branches":[{"name":"v1"}]}', b'{"branches":[{"name":"v1","targetCommit":"../x"}]}',
                                  b"<html>", b'{"branches":[],"branches":[]}', b"[" * 100000, b'{"branches":[{"name":"\\u0000","targetCommit":1}]}', b"\xff\xfe"])
def test_json_that_is_not_the_apis(body):
    with Hub(lambda r, c: c.answer(body)) as hub:
        got = hub.ask("refs", "o/n")
    assert got["status"] == "KHUB_E_FORMAT" and hub.url in got["message"]


def test_connections_are_kept():
    """One for a row of questions, by the next client too."""
    with Hub(lambda r, c: c.json({"sha": COMMIT})) as hub:
        got = hub.ask("--repeat", 5, "commit", "o/n", "v1")
        assert hub.connections == 1 and len(hub.requests) == 5
    assert got["status"] == "KHUB_OK"


def test_a_kept_connection_that_was_closed():
    def handle(request, connection):
        connection.json({"sha": COMMIT})
        connection.close()

    with Hub(handle) as hub:
        got = hub.ask("--repeat", 3, "commit", "o/n", "v1")
        assert hub.connections == 3
    assert got["status"] == "KHUB_OK" and got["waits"] == []


def test_https_never_goes_down_to_http(certificate):
    with Hub(lambda r, c: c.content(r, FILE)) as plain, Hub(lambda r, c: c.redirect(plain.url), tls=certificate[0]) as hub:
        got = fetch(hub, SSL_CERT_FILE=certificate[1])
        assert plain.requests == []
    assert got["status"] == "KHUB_E_NETWORK" and "https to http" in got["message"] and got["waits"] == []


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_certificates_of_the_environment(certificate, variable):
    with Hub(lambda r, c: c.json({"sha": COMMIT}), tls=certificate[0]) as hub:
        got = hub.ask("commit", "o/n", "v1", **{variable: certificate[1]})
    assert got["status"] == "KHUB_OK", got["message"]


def test_a_certificate_that_nobody_vouches_for(certificate):
    with Hub(lambda r, c: c.json({"sha": COMMIT}), tls=certificate[0]) as hub:
        got = hub.ask("commit", "o/n", "v1", HF_TOKEN="hf_secret")
    assert got["status"] == "KHUB_E_NETWORK" and got["waits"] == [] and "SSL_CERT_FILE" in got["message"] and hub.requests == []


class Raw(Hub):
    """Reads once, then does as `act` says with the socket."""

    def __init__(self, act):
        super().__init__(None)
        self.act, self.url = act, f"https://127.0.0.1:{self.port}"

    def serve(self, sock):
        with sock:
            sock.recv(65536)
            self.act(sock)


def test_what_speaks_no_tls_or_refuses_it():
    """Final, and advised about; a connection that breaks in the handshake is tried again."""
    alert, internal, rest = (bytes.fromhex(f"1503030002{words}") for words in ("0228", "0250", "0100"))
    for answer, waits, words in ((b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n", 0, "is it http://?"), (b"220 mail\r\n", 0, "is it http://?"),
                                 (alert, 0, "TLS wasn't agreed on"), (internal, 5, "TLS wasn't agreed on"), (b"", 5, "TLS wasn't agreed on"), (rest, 5, "TLS wasn't agreed on")):
        with Raw(lambda sock: sock.sendall(answer)) as hub:
            got = hub.ask("commit", "o/n", "v1")
            assert hub.connections == waits + 1
        assert got["status"] == "KHUB_E_NETWORK" and len(got["waits"]) == waits and words in got["message"], (answer, got)


def test_plain_http_where_tls_is_spoken(certificate):
    with Hub(None, tls=certificate[0]) as hub:
        got = ask(hub.url.replace("https", "http"), "commit", "o/n", "v1")
    assert got["status"] == "KHUB_E_NETWORK" and got["message"].endswith("; is it https://?"), got
    with Raw(lambda sock: sock.sendall(bytes.fromhex("15030300020228"))) as hub:
        got = ask(hub.url.replace("https", "http"), "commit", "o/n", "v1")
    assert got["waits"] == [] and got["message"].endswith("; is it https://?"), got
    with Hub(lambda r, c: c.answer(b"The plain HTTP request was sent to HTTPS port", 400)) as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["waits"] == [] and got["message"].endswith("; is it https://?"), got


class Wanting(Hub):
    """Wants a certificate of the client's, and hears it out after saying so: a reset would overtake the alert."""

    def serve(self, sock):
        secure = self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        plain = socket.socket(fileno=os.dup(secure.fileno()))
        with secure, plain:
            with pytest.raises(ssl.SSLError):
                secure.do_handshake()
            while plain.recv(65536):
                pass


def test_certificates_that_cant_be(certificate, tmp_path):
    wants = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wants.load_cert_chain(certificate[1], certificate[1].replace("cert", "key"))
    wants.load_verify_locations(certificate[1])
    wants.verify_mode = ssl.CERT_REQUIRED
    with Wanting(None, tls=wants) as hub:
        got = hub.ask("commit", "o/n", "v1", SSL_CERT_FILE=certificate[1])
    assert got["status"] == "KHUB_E_NETWORK" and got["waits"] == [] and "the server wants a certificate" in got["message"], got
    with Hub(None, tls=certificate[0]) as hub:
        got = hub.ask("commit", "o/n", "v1", SSL_CERT_FILE=str(tmp_path / "none"))
        assert got["waits"] == [] and got["message"].endswith("; SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE names that file"), got
        got = ask(hub.url.replace("127.0.0.1", "localhost"), "commit", "o/n", "v1", SSL_CERT_FILE=certificate[1])
        assert got["waits"] == [] and "localhost" in got["message"], got


def test_the_disk_is_full():
    """D9: no new try, nothing kept, and the sink's own words."""
    with Hub(lambda r, c: c.content(r, FILE)) as hub:
        got = hub.ask("--full", 1000, "fetch", "o/n", COMMIT, one_file(FILE, "f"))
        assert len(hub.requests) == 1
    assert got["status"] == "KHUB_E_NOSPACE" and got["message"] == "f: the disk is full"
    assert calls(got) == ["begin", "abandon"] and got["waits"] == []
