"""A Hub of one repository, as small as huggingface_hub's hf_hub_download lets it be: HEAD and GET of files."""
import hashlib
import http.server
import threading
import urllib.parse


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class SmallHub:
    """revisions: {"main": commit}; files: {commit: {path: bytes}}; paths in `large` are named by their SHA-256."""

    def __init__(self, kind, repo, revisions, files, large=()):
        self.prefix = "/" + ("" if kind == "model" else kind + "s/") + repo + "/resolve/"
        self.revisions, self.files, self.large = revisions, files, large
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.endpoint = "http://127.0.0.1:%d" % self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def etag(self, path, data):
        return sha256(data) if path in self.large else git_hash(data)

    def handler(hub):
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, body):
                revision, _, path = map(urllib.parse.unquote, self.path.removeprefix(hub.prefix).partition("/"))
                commit = hub.revisions.get(revision, revision)
                data = hub.files.get(commit, {}).get(path) if self.path.startswith(hub.prefix) else None
                self.send_response(404 if data is None else 200)
                self.send_header("X-Repo-Commit", commit)
                if data is None:
                    self.send_header("X-Error-Code", "EntryNotFound")
                    data = b""
                else:
                    self.send_header("ETag", '"%s"' % hub.etag(path, data))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if body:
                    self.wfile.write(data)

            def do_GET(self):
                self.answer(True)

            def do_HEAD(self):
                self.answer(False)

            def log_message(self, *args):
                pass

        return Handler

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()
