"""khub verify: builds that are there, each file hashed anew; what is wrong is told, nothing is fetched or mended."""
import base64
import hashlib
import json
import os
import pathlib
import shutil

import pytest
from small_hub import FAKES, VARIANT, Hub, fake, khub

BUILD = f"build/{VARIANT}"
OTHER = "build/tvm-ffi01-cu128-aarch64-linux"


def with_digest(files, build=BUILD, **changed):
    """The digest of a build, by its rule; `changed` replaces a hash by file name."""
    files, inside = dict(files), f"{build}/"
    metadata = json.loads(files[inside + "metadata.json"])
    hashes = {p.removeprefix(inside): base64.b64encode(hashlib.sha256(c).digest()).decode() for p, c in files.items()
              if p.startswith(inside) and not p.endswith(("metadata.json", ".sigstore", ".pyc"))}
    metadata["digest"] = {"algorithm": "sha256", "files": {**hashes, **changed}}
    files[inside + "metadata.json"] = json.dumps(metadata).encode()
    return files


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/a"] = {"v1": with_digest({p: c + b"other" if p.startswith(OTHER) and not p.endswith("metadata.json") else c for p, c in fake().items()} | {f"{OTHER}/x.py": b""})}
    hub.repos["kernels/org/b"] = {"v1": {**fake(), "README.md": b"b"}, "v2": {**fake(), "README.md": b"says version 1"}}
    yield hub
    hub.close()


def ok(run):
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def commit(hub, name, branch="v1"):
    return hub.commit(hub.repos[f"kernels/{name}"][branch])


def snapshot(cache, hub, name="org/a", branch="v1"):
    return cache / f"kernels--{name.replace('/', '--')}" / "snapshots" / commit(hub, name, branch)


def wrong(run, *words):
    """Each of its lines, without the last, has the words at the same place."""
    lines = run.stdout.splitlines()
    assert run.returncode == 4 and len(lines) == len(words) + 1, run.stdout + run.stderr
    for line, expected in zip(lines, words):
        assert all(word in line for word in expected), (line, expected)
    return lines[-1]


def library(folder):
    return next(folder.glob(f"{BUILD}/*.so"))


def rewrite(path, change):
    """Writes through a link, with the times as they were."""
    there, content = path.resolve(), path.read_bytes()
    times = there.stat()
    there.chmod(0o644)
    there.write_bytes(change(content))
    os.utime(there, ns=(times.st_atime_ns, times.st_mtime_ns))


def flip(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def test_what_is_there_holds(hub, cache):
    ok(khub(hub, cache, "download", "org/a@v1", "--all"))
    ok(khub(hub, cache, "get", "org/a@v1"))
    hub.paths()
    assert ok(khub(hub, cache, "verify", "org/a@v1")) == "2 builds: as they should be\n"
    assert ok(khub(None, cache, "verify", "org/a", "org/a@v1", "--offline")) == "4 builds: as they should be\n"
    answer = json.loads(ok(khub(hub, cache, "verify", "org/a@1", "--json")))
    assert answer["wrong"] == 0 and [b["variant"] for b in answer["builds"]] == [VARIANT, OTHER.removeprefix("build/")]
    first = answer["builds"][0]
    assert first["name"] == "org/a@1" and first["commit"] == commit(hub, "org/a") and first["holds"] is True
    assert first["path"] == str(snapshot(cache, hub) / BUILD)
    assert {"digest", "content", "publisher"} <= {d["about"] for d in first["decisions"] if d["decision"] == "accepted"}
    assert "accepted" in ok(khub(hub, cache, "verify", "org/a@v1", "-v"))
    assert hub.paths() == []
    for name, status in (("org/c@v1", 5), ("org/c", 5), ("org/a@v3", 5), (f"org/a@{'1' * 40}", 5), ("./none", 1), ("https://x/y", 2)):
        run = khub(hub, cache, "verify", name)
        assert run.returncode == status and run.stdout == "", (name, run.returncode, run.stderr)
    assert khub(hub, cache, "verify").returncode == 2
    assert hub.paths() == []


def test_what_is_wrong(hub, cache):
    """One line for each file, both hashes; also after a receipt, and whatever its times say."""
    ok(khub(hub, cache, "download", "org/a@v1", "--all"))
    ok(khub(hub, cache, "get", "org/a@v1"))
    there = snapshot(cache, hub)
    hub.paths()
    good = library(there).read_bytes()
    name = library(there).resolve().name
    rewrite(library(there), flip)
    changed = hashlib.sha1(b"blob %d\0" % len(good) + flip(good)).hexdigest()
    so = library(there).name
    last = wrong(khub(hub, cache, "verify", "org/a@v1"), (so, name, changed))
    assert last == "1 of 2 builds: not what it should be"
    assert wrong(khub(None, cache, "verify", "org/a@v1", "--offline"), (so, name, changed)) == last  # nothing was mended
    (there / BUILD / "added.py").write_text("x")
    (there / OTHER / "x.py").unlink()
    rewrite(there / OTHER / "metadata.json", lambda content: content + b" ")
    wrong(khub(hub, cache, "verify", "org/a@v1"), (f"{BUILD}/added.py", "somebody added it"), (so, changed),
          (f"{OTHER}/metadata.json", "bytes"), (f"{OTHER}/x.py", "isn't there"))
    answer = json.loads(khub(hub, cache, "verify", "org/a@v1", "--json").stdout)
    assert answer["wrong"] == 2 and [b["holds"] for b in answer["builds"]] == [False, False]
    assert not [p for p in hub.paths() if "/resolve/" in p]
    assert library(there).read_bytes() == flip(good)
    (there / BUILD / so).unlink()
    (there / BUILD / so).symlink_to("/etc/passwd")
    run = khub(hub, cache, "verify", "org/a@v1")
    assert run.returncode == 4 and [line for line in run.stdout.splitlines() if so in line and "/etc/passwd" in line], run.stdout


def test_only_the_build_that_was_fetched(hub, cache):
    ok(khub(hub, cache, "get", "org/a@v1"))
    assert ok(khub(hub, cache, "verify", "org/a@v1")) == "1 build: as it should be\n"
    library(snapshot(cache, hub)).resolve().write_bytes(b"")
    wrong(khub(hub, cache, "verify", "org/a@v1"), (".so", "has 0 bytes"))


def test_a_digest_that_does_not_hold(hub, cache):
    """The commit has these files, the publisher's digest says others."""
    so = next(p for p in fake() if p.startswith(BUILD) and p.endswith(".so")).rsplit("/", 1)[1]
    hub.repos["kernels/org/a"]["v1"] = with_digest(fake(), **{so: base64.b64encode(bytes(32)).decode(), "more.py": base64.b64encode(bytes(32)).decode()})
    ok(khub(hub, cache, "download", "org/a@v1", "--include", f"{BUILD}/*"))
    wrong(khub(hub, cache, "verify", "org/a@v1"), (so,), ("more.py",))


def test_publishers_count(hub, cache):
    ok(khub(hub, cache, "get", "org/a@v1", "--trust", "org"))
    hub.trusted["org"] = False
    for receipt in (cache / "kernels--org--a").glob("receipt.*"):
        receipt.unlink()
    (cache / "kernels--org--a" / "publisher.json").unlink(missing_ok=True)
    wrong(khub(hub, cache, "verify", "org/a@v1"), ("org",))
    ok(khub(hub, cache, "verify", "org/a@v1", "--trust", "org/a"))


def entry(name, at, c):
    return {"dependency": {"repo-id": name, "version": at}, "lock": {"commit": c}}


def test_locks(hub, cache, tmp_path):
    lock = tmp_path / "kernels.lock"
    lock.write_text(json.dumps([entry("org/a", 1, commit(hub, "org/a")), entry("org/b", 1, commit(hub, "org/b")), entry("org/c", 1, "c" * 40)]))
    ok(khub(hub, cache, "get", "org/a@v1", "--lock", lock))
    ok(khub(hub, cache, "get", "org/b@v1", "--lock", lock))
    run = khub(None, cache, "verify", "--lock", lock, "--offline")
    assert ok(run) == "2 builds: as they should be\n" and "org/c@v1: no build of it is in the cache" in run.stderr
    answer = json.loads(ok(khub(None, cache, "verify", "--lock", lock, "--offline", "--json")))
    assert [(b["name"], b["variant"], b["holds"]) for b in answer["builds"]] == [("org/a@v1", VARIANT, True), ("org/b@v1", VARIANT, True), ("org/c@v1", None, None)]
    assert ok(khub(None, cache, "verify", "org/b@v1", "--lock", lock, "--offline")).startswith("1 build")
    hub.repos["kernels/org/b"]["v1"] = {**fake(), "README.md": b"later"}
    ok(khub(hub, cache, "get", "org/b@v1", "--refresh"))  # another commit, which the lock doesn't mean
    rewrite(library(snapshot(cache, hub, "org/b")), flip)
    run = khub(None, cache, "verify", "--lock", lock, "--offline")
    wrong(run, (".so", "its name"))  # the two commits share the blob
    wrong(khub(None, cache, "verify", "org/b", "--offline"), (".so",), (".so",))
    lock.write_text("[{}]")
    run = khub(None, cache, "verify", "--lock", lock, "--offline")
    assert run.returncode == 1 and "entry 0" in run.stderr


def test_an_older_version_in_its_place(hub, cache, tmp_path):
    """Version 2 is locked, and the builds at its commit say that they are of version 1."""
    lock = tmp_path / "kernels.lock"
    ok(khub(hub, cache, "get", "org/b@v2"))  # shown
    lock.write_text(json.dumps([entry("org/b", 2, commit(hub, "org/b", "v2"))]))
    wrong(khub(hub, cache, "verify", "--lock", lock), ("version 2 was asked for", "says version 1"))
    run = khub(hub, cache, "get", "org/b@v2", "--lock", lock)
    assert run.returncode == 4 and "version 2 was asked for" in run.stderr
    lock.write_text(json.dumps([entry("org/b", 1, commit(hub, "org/b", "v2"))]))
    ok(khub(hub, cache, "get", "org/b@v1", "--lock", lock))


def test_a_hash_of_the_older_form(hub, cache, tmp_path):
    ok(khub(hub, cache, "get", "org/b@v1"))
    lock, tree = tmp_path / "kernels.lock", hub.repos["kernels/org/b"]["v1"]
    names = sorted(p.removeprefix(f"{BUILD}/") for p in tree if p.startswith(f"{BUILD}/"))
    git = lambda c: hashlib.sha1(b"blob %d\0" % len(c) + c).digest()
    sha = hashlib.sha256(b"".join(n.encode() + git(tree[f"{BUILD}/{n}"]) for n in names)).hexdigest()
    for hash_ in (sha, "0" * 64):
        lock.write_text(json.dumps([{"repo_id": "org/b", "sha": commit(hub, "org/b"),
                                     "variants": {VARIANT: {"hash": f"sha256-{hash_}", "hash_type": "git_lfs_concat"}}}]))
        run = khub(None, cache, "verify", "--lock", lock, "--offline")
        if hash_ == sha:
            assert ok(run) == "1 build: as it should be\n"
        else:
            wrong(run, (sha, "0" * 64))


def test_what_another_tool_fetched(hub, cache):
    """Without the list of files that khub keeps: the Hub is asked for it, offline the links say it."""
    ok(khub(hub, cache, "get", "org/a@v1"))
    shutil.rmtree(cache / "kernels--org--a" / "trees")
    for receipt in (cache / "kernels--org--a").glob("receipt.*"):
        receipt.unlink()
    hub.paths()
    assert ok(khub(None, cache, "verify", "org/a@v1", "--offline")) == "1 build: as it should be\n"
    assert ok(khub(hub, cache, "verify", "org/a@v1")) == "1 build: as it should be\n"
    assert len(hub.paths()) == 1
    shutil.rmtree(cache / "kernels--org--a" / "trees")
    rewrite(library(snapshot(cache, hub)), flip)
    run = khub(None, cache, "verify", "org/a@v1", "--offline")
    assert run.returncode == 4 and ".so" in run.stdout


def test_directories(hub, cache, tmp_path):
    """A kernel repository, one build of it, a built-in kernel; without a digest nothing says what the files should be."""
    repo = tmp_path / "repo"
    for path, content in with_digest(fake()).items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_bytes(content)
    shutil.rmtree(repo / OTHER)
    assert ok(khub(hub, cache, "verify", repo)) == "1 build: as it should be\n"
    assert ok(khub(hub, cache, "verify", repo / BUILD, "khub/norm")) == "2 builds: as they should be\n"
    rewrite(library(repo), flip)
    (repo / BUILD / "added").write_text("")
    for there in (repo, repo / BUILD):
        wrong(khub(hub, cache, "verify", there), (library(repo).name,), ("added",))
    (repo / BUILD / "metadata.json").write_text("{")
    wrong(khub(hub, cache, "verify", repo), ("metadata.json", "not valid JSON"))
    run = khub(hub, cache, "verify", FAKES / "good")
    assert ok(run) == "1 build: as it should be\n" and "nothing says what the files should be" in run.stderr
    assert hub.paths() == []
