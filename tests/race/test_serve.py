"""khub serve under the thread sanitizer: many clients ask at once for everything that it has, before it knows a hash, while its
folder changes and until it is told to end."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from serving import ask, serving  # noqa: E402

SERVE = pathlib.Path(os.environ["KHUB_BINARY"], "src", "khub-serve")


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments], cwd=folder, check=True, capture_output=True)


def fill(top):
    """Two folders, a bare git repository. All addresses that they have."""
    addresses = []
    for name in ("models/org/one", "org/two", "git"):
        branch = top / name / ("main" if name != "git" else "")
        (branch / "sub").mkdir(parents=True)
        for i in range(60):
            (branch / ("sub" if i % 2 else ".") / f"f{i}").write_bytes(b"%d " % i * (i * 50 + 1))
    git(top / "git", "init", "-q", "-b", "main")
    git(top / "git", "add", ".")
    git(top / "git", "commit", "-qm", "x")
    git(top, "clone", "-q", "--bare", "git", "models/org/three.git")
    for kind, repo, files in (("models", "org/one", "/org/one"), ("kernels", "org/two", "/kernels/org/two"), ("models", "org/three", "/org/three")):
        addresses += [f"/api/{kind}/{repo}/{what}" for what in ("refs", "revision/main", "tree/main?recursive=true")]
        addresses += [f"{files}/resolve/main/{'sub/' if i % 2 else ''}f{i}" for i in range(60)]
    return [*addresses, "/metrics", "/api/organizations/org/overview", "/api/models/org/none/refs"]


def test_many_clients_at_once(tmp_path):
    (tmp_path / "dir").mkdir()
    addresses = fill(tmp_path / "dir")
    stop = threading.Event()

    def change():
        for i in range(100000):
            if stop.wait(0.02):
                return
            (tmp_path / "dir" / "org" / "two" / "main" / f"new{i % 7}").write_bytes(b"%d" % i)

    def ask_all(hub, seed):
        answers = []
        for i in range(len(addresses)):
            at = addresses[(i * 7 + seed * 31) % len(addresses)]
            answer = ask(hub, at, **({"method": "HEAD"} if i % 5 == 0 else {}), **({"Range": "bytes=0-0"} if i % 3 == 0 else {}))
            answers.append((at, answer.status))
            if answer.status == 200 and answer.headers.get("ETag"):
                answers.append((at, ask(hub, at, If_None_Match=answer.headers["ETag"]).status))
        return answers

    changes = threading.Thread(target=change)
    with serving(tmp_path / "dir", command=[SERVE]) as hub:
        changes.start()
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            answers = [a for some in clients.map(lambda seed: ask_all(hub, seed), range(8)) for a in some]
        stop.set()
        changes.join()
    bad = [a for a in answers if a[1] not in (200, 206, 304)]
    assert {at for at, _ in bad} == {"/api/models/org/none/refs"} and {status for _, status in bad} == {404}, bad
