"""A small Hub that does what a test tells it to, mistakes included, and the driver that asks it."""
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import threading

DRIVER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "hub_driver"
COMMIT = "a" * 40


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def head(status=200, length=None, **headers):
    """The head of an answer; header names with "_" for "-"."""
    lines = [f"HTTP/1.1 {status} Words"]
    if length is not None:
        headers["Content-Length"] = length
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines + ["", ""]).encode("latin-1")


class Request:
    def __init__(self, text):
        first, *rest = text.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ", 2)
        self.path, _, self.query = self.target.partition("?")
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}

    def range(self, size):
        """(from, to), both included, or None."""
        value = self.headers.get("range")
        if not value:
            return None
        start, _, end = value.removeprefix("bytes=").partition("-")
        return int(start), min(int(end) if end else size - 1, size - 1)


class Connection:
    """What a handler answers with."""

    def __init__(self, sock):
        self.sock, self.open = sock, True

    def send(self, data):
        self.sock.sendall(data)

    def answer(self, body=b"", status=200, **headers):
        self.send(head(status, len(body), **headers) + body)

    def json(self, value, status=200, **headers):
        self.answer(json.dumps(value).encode(), status, **headers)

    def redirect(self, location, status=302, **headers):
        self.answer(b"", status, Location=location, **headers)

    def content(self, request, data, **headers):
        """A file, whole or in part."""
        part = request.range(len(data))
        if part is None:
            return self.answer(data, **headers)
        if part[0] >= len(data):
            return self.answer(b"", 416, Content_Range=f"bytes */{len(data)}")
        self.answer(data[part[0] : part[1] + 1], 206, Content_Range=f"bytes {part[0]}-{part[1]}/{len(data)}", **headers)

    def close(self):
        self.open = False


class Hub:
    """handle(request, connection) answers each request; `requests` remembers them. Used with `with`."""

    def __init__(self, handle, tls=None):
        self.handle, self.tls = handle, tls
        self.requests, self.connections = [], 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.sockets = []
        self.stopped = threading.Event()

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which would keep the port open
        self.listener.close()
        for sock in self.sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self.sockets.append(sock)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection, pending = Connection(sock), b""
            while connection.open:
                while b"\r\n\r\n" not in pending:
                    more = sock.recv(65536)
                    if not more:
                        return
                    pending += more
                text, _, pending = pending.partition(b"\r\n\r\n")
                request = Request(text)
                self.requests.append(request)
                self.handle(request, connection)
        except OSError:
            pass
        finally:
            sock.close()

    def paths(self):
        return [request.path for request in self.requests]

    def ask(self, *arguments, **environment):
        return ask(self.url, *arguments, **environment)


def ask(endpoint, *arguments, **environment):
    """Runs the driver with nothing of the Hugging Face settings of whoever runs the tests."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")}
    env = kept | {"HOME": "/nonexistent", "HF_ENDPOINT": endpoint, "HF_HUB_DOWNLOAD_TIMEOUT": "5"} | environment
    done = subprocess.run([DRIVER, *map(str, arguments)], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert not done.stderr, done.stderr.decode()
    result = json.loads(done.stdout)
    result["text"] = done.stdout.decode()
    return result


def one_file(data, path="f", **extra):
    """The driver's argument for a file as a tree would name it."""
    return f"{path},{extra.get('size', len(data))},{extra.get('etag', git_blob(data))}"
