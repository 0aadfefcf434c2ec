"""HTTP/2 where TLS offers it: many files over one connection, the same bytes as over HTTP/1.1. nghttpd is the Hub, its files the answers."""
import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import time
import types

import pytest
from hub import Hub
from small_hub import blob_id, files_of, khub, lfs_id

NGHTTPD = shutil.which("nghttpd", path=os.environ["PATH"] + ":/usr/sbin")
SMALL = {f"d{i % 7}/f{i}": b"%d" % i * (i + 1) for i in range(300)}
BIG = bytes(range(256)) * 4 * (70 << 10)  # 70 MiB: for khub a large one, in one stream since nghttpd knows no ranges
FILES = {**SMALL, "big": BIG}
COMMIT = "c" * 40
LISTING = [{"type": "file", "path": path, "size": len(content), "oid": blob_id(content),
            **({"lfs": {"oid": lfs_id(content), "size": len(content)}} if len(content) > 1 << 20 else {})} for path, content in FILES.items()]
ANSWERS = {"api/models/org/many/revision/main": json.dumps({"sha": COMMIT}).encode(),
           f"api/models/org/many/tree/{COMMIT}": json.dumps(LISTING).encode(),
           **{f"org/many/resolve/{COMMIT}/{path}": content for path, content in FILES.items()}}


def download(endpoint, cache, certificate):
    """`khub download` of all; the snapshot must be what the Hub has."""
    run = khub(types.SimpleNamespace(endpoint=endpoint), cache, "download", "--model", "org/many@main", env={"SSL_CERT_FILE": certificate})
    assert run.returncode == 0, run.stderr
    assert files_of(cache / "models--org--many" / "snapshots" / COMMIT) == FILES


@pytest.fixture
def nghttpd(certificate, tmp_path):
    """Its endpoint and its log."""
    for path, content in ANSWERS.items():
        file = tmp_path / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = pathlib.Path(certificate[1]).parent
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([NGHTTPD, "-v", "-a", "127.0.0.1", "-d", tmp_path / "root", str(port), folder / "key", folder / "cert"], stdout=log,
                                   stderr=subprocess.STDOUT)
    while "listen" not in (tmp_path / "log").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    yield f"https://127.0.0.1:{port}", tmp_path / "log"
    process.terminate()
    process.wait(20)


def test_http2_where_it_is_offered(nghttpd, certificate, tmp_path):
    endpoint, log = nghttpd
    download(endpoint, tmp_path / "cache", certificate[1])
    text = log.read_text(errors="replace")
    assert re.findall(r"negotiated protocol: (\S+)", text) == ["h2"]  # one connection
    asked = re.findall(r"recv \(stream_id=\d+\) :path: /(\S+)", text)
    assert sorted(path.partition("?")[0] for path in asked) == sorted(ANSWERS)
    open_streams = list(itertools.accumulate(1 if event == ":path" else -1 for event in re.findall(r"(?<=\) )(:path)|stream_id=\d+ closed", text)))
    assert max(open_streams) > 8 and open_streams[-1] == 0  # side by side, more than there would be connections


def test_http_1_1_elsewhere(certificate, tmp_path):
    folder, spoken = pathlib.Path(certificate[1]).parent, set()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    context.set_alpn_protocols(["http/1.1"])

    def handle(request, connection):
        spoken.add(connection.sock.selected_alpn_protocol())
        assert "upgrade" not in request.headers
        connection.content(request, ANSWERS[request.path[1:]])

    with Hub(handle, tls=context) as hub:
        download(hub.url, tmp_path, certificate[1])
        assert spoken == {"http/1.1"} and 1 < hub.connections <= 8
