"""A Hub of a page, independent of khub's own: what a test puts into it is served over the Hub's API, and every request is kept."""

import functools
import hashlib
import http.server
import json
import os
import pathlib
import platform
import subprocess
import threading
import time
import urllib.parse

from hub import git_blob, sha256

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
FAKES = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos")
VARIANT = f"tvm-ffi01-cpu-{platform.machine()}-linux"


blob_id = functools.lru_cache(10000)(git_blob)  # each request asks for the hashes of all files
lfs_id = functools.lru_cache(1000)(sha256)


class Hub:
    """Repositories by "kernels/ORG/NAME" or "models/ORG/NAME", each {branch: {path: bytes}}; publishers by name."""

    def __init__(self):
        self.repos, self.trusted, self.moved, self.requests = {}, {"org": True}, {}, []
        self.agents = []  # who asked, one for each request
        self.lfs_from = 1 << 20  # bytes from which a file is an LFS object
        self.down, self.retry_after = False, None  # True: every answer is 503, and when to come again
        self.pause = 0  # seconds between pieces of 64 kB
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                hub.answer(self)

            do_HEAD = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def commit(files):
        listing = "".join(f"{blob_id(files[path])} {path}\n" for path in sorted(files))
        return hashlib.sha1(listing.encode()).hexdigest()

    def paths(self):
        """The requests since the last look, as METHOD and path."""
        seen, self.requests = self.requests, []
        return seen

    def answer(self, handler):
        path = urllib.parse.urlsplit(handler.path).path
        self.requests.append(f"{handler.command} {urllib.parse.unquote(path)}")
        self.agents.append(handler.headers["User-Agent"])
        if self.down:
            return self.send(handler, 503, b"down", {"Retry-After": self.retry_after} if self.retry_after else {})
        parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["api", "organizations"]:
            if parts[2] not in self.trusted:
                return self.send(handler, 404, b"")
            return self.send_json(handler, {"name": parts[2], "trustedKernelPublisher": self.trusted[parts[2]]})
        kind, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("kernels", parts[1:]) if parts[0] == "kernels" else ("models", parts)
        name = f"{kind}/{'/'.join(rest[:2])}"
        if name in self.moved:
            there = handler.path.replace("/".join(rest[:2]), self.moved[name], 1)
            return self.send(handler, 307, b"", {"Location": there})
        if name not in self.repos:
            return self.send(handler, 404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        self.answer_repo(handler, self.repos[name], rest[2:], parts[0] == "api")

    def answer_repo(self, handler, repo, rest, is_api):
        if is_api and rest == ["refs"]:
            refs = [{"name": b, "ref": f"refs/heads/{b}", "targetCommit": self.commit(f)} for b, f in repo.items()]
            return self.send_json(handler, {"branches": refs, "tags": [], "converts": []})
        files = next((f for b, f in repo.items() if len(rest) > 1 and rest[1] in (b, self.commit(f))), None)
        if files is None:
            return self.send(handler, 404, b"", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {rest[1:2]}"})
        commit = self.commit(files)
        if is_api and rest[0] == "revision":
            return self.send_json(handler, {"id": "x", "sha": commit, "siblings": [{"rfilename": p} for p in files]})
        if is_api and rest[0] == "tree":
            return self.send_json(handler, [self.entry(p, c) for p, c in sorted(files.items())])
        path = "/".join(rest[2:])
        if path not in files:
            return self.send(handler, 404, b"", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        content = files[path]
        etag = lfs_id(content) if len(content) >= self.lfs_from else blob_id(content)
        self.send(handler, 200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"})

    def entry(self, path, content):
        entry = {"type": "file", "path": path, "size": len(content), "oid": blob_id(content)}
        if len(content) >= self.lfs_from:
            entry["lfs"] = {"oid": lfs_id(content), "size": len(content), "pointerSize": 130}
        return entry

    def send_json(self, handler, value):
        self.send(handler, 200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def send(self, handler, status, body, headers=None):
        start, size = handler.headers.get("Range"), len(body)
        if status == 200 and start:
            first, _, last = start.removeprefix("bytes=").partition("-")
            last = int(last) if last else size - 1
            status, body = 206, body[int(first):last + 1]
            headers = {**(headers or {}), "Content-Range": f"bytes {first}-{last}/{size}"}
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "GET":
            return
        try:
            for at in range(0, len(body), 1 << 16):
                time.sleep(self.pause)
                handler.wfile.write(body[at:at + (1 << 16)])
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True  # the client is gone


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def fake(name="good", version=1):
    """The files of a repository of tests/fake: a build that loads here, and one for another machine."""
    files = files_of(FAKES / name)
    for path in [p for p in files if p.endswith("/metadata.json")]:
        files[path] = files[path].replace(b'"version":1,', b'"version":%d,' % version)
    other = {p.replace(VARIANT, "tvm-ffi01-cu128-aarch64-linux"): c for p, c in files.items() if p.startswith("build/")}
    return {**files, **other}


def khub(hub, cache, *arguments, env=None, timeout=60, under=(), cwd=None):
    """Runs the command against `hub` (None: none in reach) with `cache`; `under`: a command that runs it."""
    mine = {"PATH": os.environ["PATH"], "HOME": str(cache), "HF_HUB_CACHE": str(cache),
            "HF_ENDPOINT": hub.endpoint if hub else "http://127.0.0.1:9"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            mine[name] = os.environ[name]
    return subprocess.run([*map(str, under), KHUB, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env={**mine, **(env or {})}, cwd=cwd)
