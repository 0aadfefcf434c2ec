"""What khub serve serves: git repositories, a Hugging Face cache, folders that change; judged by git and huggingface_hub."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from serving import BUILT_IN, ask, eventually, python, serving

SANITIZE = os.environ["KHUB_SANITIZE"] == "1"


def git(folder, *arguments):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def pointer(content):
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(content).hexdigest()}\nsize {len(content)}\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """DIR with org/a.git: branches main, v1, v2, feature/x, a tag, a pull request, an LFS object that is there and one that isn't."""
    top = tmp_path_factory.mktemp("git")
    work, bare = top / "work", top / "dir" / "org" / "a.git"
    git(top, "init", "-q", "-b", "main", work)
    shutil.copytree(BUILT_IN / "norm" / "build", work / "build")
    library = next(work.glob("build/*/*.so"))
    content = library.read_bytes()
    library.write_text(pointer(content))
    (work / "gone.bin").write_text(pointer(b"nobody has it"))
    (work / "link").symlink_to("/etc/passwd")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "one")
    git(work, "branch", "v1")
    git(work, "tag", "-am", "first", "release-1")
    (work / "README.md").write_text("two\n" * 50_000)
    git(work, "add", "-A")
    git(work, "commit", "-qm", "two")
    git(work, "branch", "v2")
    git(work, "branch", "feature/x")
    git(work, "update-ref", "refs/pr/4", "HEAD")
    git(top, "clone", "-q", "--mirror", work, bare)
    git(bare, "gc", "-q")
    name = hashlib.sha256(content).hexdigest()
    (bare / "lfs" / "objects" / name[:2] / name[2:4]).mkdir(parents=True)
    (bare / "lfs" / "objects" / name[:2] / name[2:4] / name).write_bytes(content)
    return top / "dir", work, content


@pytest.fixture(scope="module")
def hub(repository):
    with serving(repository[0]) as running:
        yield running


def test_refs_are_git_s(hub, repository):
    refs = json.loads(ask(hub, "/api/kernels/org/a/refs?include_prs=1").body)
    work = repository[1]
    assert {b["name"]: b["targetCommit"] for b in refs["branches"]} == {
        name: git(work, "rev-parse", name) for name in ("main", "v1", "v2", "feature/x")}
    assert [(t["ref"], t["targetCommit"]) for t in refs["tags"]] == [("refs/tags/release-1", git(work, "rev-parse", "release-1^{commit}"))]
    assert [p["ref"] for p in refs["pullRequests"]] == ["refs/pr/4"]


@pytest.mark.parametrize("revision", ["main", "v1", "feature%2Fx", "release-1", "refs%2Fheads%2Fv1", "refs%2Fpr%2F4"])
def test_tree_is_git_s(hub, repository, revision):
    work, content = repository[1:]
    found = {e["path"]: e for e in json.loads(ask(hub, f"/api/kernels/org/a/tree/{revision}?recursive=true").body)}
    expected = {}
    for line in git(work, "ls-tree", "-rtl", revision.replace("%2F", "/")).splitlines():
        facts, path = line.split("\t")
        mode, kind, oid, size = facts.split()
        if mode != "120000":
            expected[path] = ("directory" if kind == "tree" else "file", oid)
    assert {p: (e["type"], e["oid"]) for p, e in found.items()} == expected
    library = next(e for p, e in found.items() if p.endswith(".so"))
    assert library["size"] == len(content)
    assert library["lfs"] == {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": len(pointer(content))}


def test_files_of_git(hub, repository, tmp_path):
    work, content = repository[1:]
    commit = git(work, "rev-parse", "v1")
    library = next(p for p in git(work, "ls-tree", "-r", "--name-only", "v1").splitlines() if p.endswith(".so"))
    got = ask(hub, f"/kernels/org/a/resolve/v1/{library}")
    assert got.body == content and got.headers["X-Repo-Commit"] == commit
    assert got.headers["ETag"] == got.headers["X-Linked-ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert ask(hub, f"/kernels/org/a/resolve/{commit}/{library}", Range="bytes=10-19").body == content[10:20]
    text = ("two\n" * 50_000).encode()
    assert ask(hub, "/kernels/org/a/resolve/main/README.md").body == text
    assert ask(hub, "/kernels/org/a/resolve/main/README.md", Range="bytes=199990-").body == text[199990:]
    assert ask(hub, "/kernels/org/a/resolve/v1/README.md").status == 404
    gone = ask(hub, "/kernels/org/a/resolve/v1/gone.bin")
    assert (gone.status, gone.headers["X-Error-Code"]) == (404, "EntryNotFound")
    assert ask(hub, "/kernels/org/a/resolve/v1/link").status == 404
    path = python(hub, tmp_path, 'print(json.dumps(h.snapshot_download("org/a", repo_type="kernel", revision="v1", ignore_patterns="gone.bin")))')
    assert (pathlib.Path(path) / library).read_bytes() == content


def test_a_new_commit_is_seen(repository, tmp_path):
    top, work = repository[:2]
    shutil.copytree(top, tmp_path / "dir")
    with serving(tmp_path / "dir") as hub:
        before = json.loads(ask(hub, "/api/kernels/org/a/revision/main").body)["sha"]
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "-q", tmp_path / "dir/org/a.git", clone)
        (clone / "new").write_text("x")
        git(clone, "add", "-A")
        git(clone, "commit", "-qm", "three")
        git(clone, "push", "-q", "origin", "main")
        after = eventually(lambda: json.loads(ask(hub, "/api/kernels/org/a/revision/main").body)["sha"], lambda sha: sha != before)
        assert after == git(clone, "rev-parse", "HEAD") != before
        assert ask(hub, "/kernels/org/a/resolve/main/new").body == b"x"
        assert ask(hub, f"/kernels/org/a/resolve/{before}/new").status == 404


@pytest.mark.parametrize("leak", ["alternates", "link"])
def test_git_repositories_that_borrow_are_not_served(repository, tmp_path, leak):
    shutil.copytree(repository[0], tmp_path / "dir")
    bare = tmp_path / "dir/org/a.git"
    outside = tmp_path / "outside"
    shutil.copytree(bare, outside)
    if leak == "alternates":
        shutil.rmtree(bare / "objects/pack")
        (bare / "objects/info/alternates").write_text(f"{outside}/objects\n")
    else:
        shutil.rmtree(bare / "objects/pack")
        (bare / "objects/pack").symlink_to(outside / "objects/pack")
    with serving(tmp_path / "dir") as hub:
        assert ask(hub, "/api/kernels/org/a/refs").status == 500
        assert "takes a part of itself from elsewhere" in hub.log()


# ---- a cache ----


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that huggingface_hub filled: a kernel by commit, so without a ref, and a model by branch."""
    top = tmp_path_factory.mktemp("cache")
    shutil.copytree(BUILT_IN / "norm", top / "dir" / "khub" / "norm" / "v1")
    (top / "dir" / "models" / "org" / "m" / "main").mkdir(parents=True)
    (top / "dir" / "models" / "org" / "m" / "main" / "config.json").write_text("{}")
    (top / "dir" / "models" / "org" / "m" / "main" / "model.safetensors").write_bytes(os.urandom(1000))
    with serving(top / "dir") as hub:
        python(hub, top, """
commit = api.list_repo_refs("khub/norm", repo_type="kernel").branches[0].target_commit
h.snapshot_download("khub/norm", repo_type="kernel", revision=commit)
h.snapshot_download("org/m")
print("{}")""")
        trees = {path: json.loads(ask(hub, path).body) for path in ("/api/kernels/khub/norm/tree/v1?recursive=true",
                                                                    "/api/models/org/m/tree/main?recursive=true")}
    return top / "home" / "hub", trees


def test_a_cache_is_served_as_it_was_fetched(cache, tmp_path):
    folder, trees = cache
    with serving(folder, log=tmp_path / "log") as hub:
        for path, listed in trees.items():
            files = [e for e in json.loads(ask(hub, path).body)]
            assert files == listed
        assert json.loads(ask(hub, "/api/organizations/khub/overview").body)["trustedKernelPublisher"] is True
        assert ask(hub, "/api/organizations/nosuch/overview").status == 404
        path = python(hub, tmp_path, 'print(json.dumps(h.snapshot_download("org/m")))')
        assert sorted(os.listdir(path)) == ["config.json", "model.safetensors"]


def test_a_cache_that_grows(cache, tmp_path):
    """A file that comes later is seen under the same commit."""
    folder = shutil.copytree(cache[0], tmp_path / "dir", symlinks=True)
    snapshot = next((folder / "models--org--m/snapshots").iterdir())
    (snapshot / "config.json").unlink()
    with serving(folder) as hub:
        assert ask(hub, f"/org/m/resolve/{snapshot.name}/config.json").status == 404
        os.symlink("../../blobs/" + hashlib.sha1(b"blob 2\0{}").hexdigest(), snapshot / "config.json")
        path = f"/org/m/resolve/{snapshot.name}/config.json"
        assert eventually(lambda: ask(hub, path), lambda got: got.status == 200).body == b"{}"


@pytest.mark.parametrize("what", ["blobs", "snapshots", "repository"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_part_of_a_cache_that_lies_outside_is_not_read(cache, tmp_path, what, absolute):
    folder = shutil.copytree(cache[0], tmp_path / "dir", symlinks=True)
    model = folder / "models--org--m"
    part = model if what == "repository" else model / what
    commit = next((model / "snapshots").iterdir()).name
    names = sorted(os.listdir(model / "snapshots" / commit))
    outside = tmp_path / "outside" / part.name
    outside.parent.mkdir()
    part.rename(outside)
    part.symlink_to(outside if absolute else os.path.relpath(outside, part.parent))
    assert (model / "snapshots" / commit / "config.json").exists() or what == "snapshots"
    with serving(folder) as hub:
        asked = [ask(hub, f"/org/m/resolve/{commit}/{name}") for name in names]
        tree = ask(hub, f"/api/models/org/m/tree/{commit}")
    assert names == ["config.json", "model.safetensors"] and {a.status for a in asked} == {404}
    assert tree.status == 404 or json.loads(tree.body) == []


@pytest.mark.skipif(SANITIZE, reason="Python can't load sanitized kernels; the release run does")
def test_kernels_from_a_cache_by_version(cache, tmp_path):
    with serving(cache[0], log=tmp_path / "log") as hub:
        assert python(hub, tmp_path, 'import kernels\nprint(json.dumps(kernels.get_kernel("khub/norm", version=1, backend="cpu").__file__))')


# ---- folders that change ----


def test_a_change_is_a_new_commit(tmp_path):
    state = tmp_path / "dir" / "models" / "org" / "m" / "main"
    state.mkdir(parents=True)
    (state / "a").write_text("1")
    (state / "big").write_bytes(b"x" * 100_000)
    with serving(tmp_path / "dir") as hub:
        def commit():
            return json.loads(ask(hub, "/api/models/org/m").body).get("sha")

        first = commit()
        (state / "a").write_text("2")
        second = eventually(commit, lambda sha: sha and sha != first)
        assert ask(hub, "/org/m/resolve/main/a").body == b"2"
        assert ask(hub, f"/org/m/resolve/{second}/a").headers["X-Repo-Commit"] == second
        assert ask(hub, f"/org/m/resolve/{first}/big").body == b"x" * 100_000  # hasn't changed since
        old = ask(hub, f"/org/m/resolve/{first}/a")
        assert (old.status, old.headers["X-Error-Code"]) == (404, "RevisionNotFound")
        (state / "a").write_text("1")
        assert eventually(commit, lambda sha: sha and sha != second) == first
        shutil.rmtree(tmp_path / "dir" / "models" / "org" / "m")
        gone = eventually(lambda: ask(hub, "/api/models/org/m"), lambda got: got.status == 404)
        assert gone.headers["X-Error-Code"] == "RepoNotFound"


def test_a_branch_that_is_being_written_stands_in_no_ones_way(tmp_path):
    model = tmp_path / "dir" / "models" / "org" / "m"
    for branch in ("v1", "v2"):
        (model / branch).mkdir(parents=True)
        (model / branch / "a").write_text(branch)
    with serving(tmp_path / "dir") as hub:
        def refs():
            return {b["name"]: b["targetCommit"] for b in json.loads(ask(hub, "/api/models/org/m/refs").body)["branches"]}

        before, done = refs(), threading.Event()
        (model / "v3").mkdir()
        (model / "v2" / "b").write_text("")

        def write():
            with open(model / "v2" / "b", "ab", buffering=0) as b, open(model / "v3" / "b", "ab", buffering=0) as c:
                while not done.is_set():
                    b.write(b"x")
                    c.write(b"x")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(20):
                now = refs()
                assert now["v1"] == before["v1"] and "v2" in now
                assert ask(hub, "/org/m/resolve/v1/a").body == b"v1"
        finally:
            done.set()
            writer.join()
        after = eventually(refs, lambda now: "v3" in now and now["v2"] != before["v2"])
        size = os.stat(model / "v2" / "b").st_size
        got = eventually(lambda: ask(hub, "/org/m/resolve/v2/b"), lambda got: len(got.body) == size)
        assert set(after) == {"v1", "v2", "v3"} and got.body == b"x" * size


def test_what_is_read_is_what_it_is_called(tmp_path):
    """While a file is rewritten again and again, an answer is never content under another content's name."""
    state = tmp_path / "dir" / "models" / "org" / "m" / "main"
    state.mkdir(parents=True)
    with serving(tmp_path / "dir") as hub:
        good = 0
        for i in range(150):
            (state / "a").write_text(str(i % 10))
            got = ask(hub, "/org/m/resolve/main/a")
            if got.status == 200:
                assert got.headers["ETag"] == '"%s"' % hashlib.sha1(b"blob 1\0" + got.body).hexdigest()
                good += 1
            else:
                assert got.status in (404, 503)
        assert good
