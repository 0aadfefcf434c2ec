"""khub cache against huggingface_hub's scan_cache_dir and delete_revisions, on caches that either has written."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import threading

import pytest

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_DISABLE_XET"] = "1"

from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache  # noqa: E402

from small_hub import SmallHub  # noqa: E402

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
A, B, C = "a" * 40, "b" * 40, "c" * 40


def khub_cache(cache, *arguments):
    done = subprocess.run([KHUB, "cache", *arguments, "--json", "--cache-dir", cache], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files_of(seed, count):
    """Files of which some have the same content under several names, and some are shared by all seeds."""
    rng = random.Random(seed)
    files = {"README.md": b"the same in all\n", "empty/__init__.py": b"", "empty/again.py": b""}
    for i in range(count):
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(2000)))
        files[f"d{i % 3}/{'x/' * (i % 4)}f{i}.bin"] = data
        if i % 5 == 0:
            files[f"copy of {i}"] = data
    return files


@pytest.fixture(scope="module")
def peers_cache(tmp_path_factory):
    """What huggingface_hub downloads: two repositories, one with three commits and a ref that moved."""
    cache = tmp_path_factory.mktemp("peer") / "cache"
    for kind, repo, commits in (("kernel", "org/name", {A: 1, B: 2, C: 2}), ("model", "solo", {A: 3})):
        for commit, seed in commits.items():
            files = files_of(seed, 12)
            with SmallHub(kind, repo, {"main": commit, "refs/pr/1": commit}, {commit: files}, {"README.md"}) as hub:
                for revision in ("main",) if commit != B else ("main", "refs/pr/1"):
                    for path in files:
                        hf_hub_download(repo, path, repo_type=kind, revision=revision, cache_dir=cache, endpoint=hub.endpoint)
    (cache / "kernels--org--name" / "blobs" / ("e" * 40 + ".0a1b2c3d.incomplete")).write_bytes(b"part")
    return cache


def compare(cache, listed):
    """khub's list is what scan_cache_dir says, number by number."""
    info = scan_cache_dir(cache)
    assert not info.warnings and not listed["warnings"]
    theirs = {(repo.repo_type, repo.repo_id, r.commit_hash): r for repo in info.repos for r in repo.revisions}
    ours = {(r["kind"], r["repository"], r["commit"]): r for r in listed["revisions"]}
    assert list(ours) == sorted(theirs)
    for key, r in ours.items():
        t = theirs[key]
        assert r["bytes"] == t.size_on_disk and r["files"] == t.nb_files and set(r["refs"]) == t.refs
        assert r["path"] == str(t.snapshot_path) and r["last_modified"] == int(t.last_modified)
        assert r["last_used"] == int(max(f.blob_last_accessed for f in t.files))
        assert r["own_bytes"] == own_bytes(info, key)
    assert listed["bytes"] == info.size_on_disk + info.incomplete_size_on_disk * 0
    return info


def own_bytes(info, key):
    """What delete_revisions would free, were it asked for a repository that has another revision too."""
    (repo,) = [r for r in info.repos if (r.repo_type, r.repo_id) == key[:2]]
    blobs = {f.blob_path: f.size_on_disk for r in repo.revisions if r.commit_hash == key[2] for f in r.files}
    others = {f.blob_path for r in repo.revisions if r.commit_hash != key[2] for f in r.files}
    return sum(size for path, size in blobs.items() if path not in others)


def test_the_numbers_are_the_peers(peers_cache):
    info = compare(peers_cache, khub_cache(peers_cache, "ls"))
    assert len(info.repos) == 2 and len(info.incomplete_files) == 1


def tree(cache):
    return sorted(str(p.relative_to(cache)) for p in pathlib.Path(cache).rglob("*") if ".locks" not in p.parts)


@pytest.mark.parametrize("commit", [A, B, C])
def test_a_removal_leaves_what_the_peers_removal_leaves(peers_cache, tmp_path, commit):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    shutil.copytree(peers_cache, ours, symlinks=True)
    shutil.copytree(peers_cache, theirs, symlinks=True)
    shutil.rmtree(ours / "models--solo")
    shutil.rmtree(theirs / "models--solo")
    strategy = scan_cache_dir(theirs).delete_revisions(commit)
    dry = khub_cache(ours, "rm", f"org/name@{commit}", "--dry-run")
    assert tree(ours) == tree(theirs)
    strategy.execute()
    done = khub_cache(ours, "rm", f"org/name@{commit}")
    assert done["freed"] == dry["freed"] == strategy.expected_freed_size
    assert done["blobs"] == len(strategy.blobs)
    left = {p for p in tree(theirs) if p != "kernels--org--name/refs/refs" and p != "kernels--org--name/refs/refs/pr"}
    assert {p for p in tree(ours)} - {"kernels--org--name/refs/refs", "kernels--org--name/refs/refs/pr"} == left
    compare(ours, khub_cache(ours, "ls"))
    assert not scan_cache_dir(ours).warnings


def test_a_whole_repository_goes(peers_cache, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(peers_cache, cache, symlinks=True)
    (expected,) = [r.size_on_disk for r in scan_cache_dir(cache).repos if r.repo_id == "org/name"]
    assert khub_cache(cache, "rm", "org/name")["freed"] == expected + len(b"part")
    assert not (cache / "kernels--org--name").exists()
    assert {r.repo_id for r in scan_cache_dir(cache).repos} == {"solo"}


def test_pruning_leaves_a_whole_cache(peers_cache, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(peers_cache, cache, symlinks=True)
    done = khub_cache(cache, "prune")
    info = compare(cache, khub_cache(cache, "ls"))
    assert done["revisions"] == 1 and done["partial_downloads"] == 1 and not info.incomplete_files  # A: main moved on
    assert {(r.repo_id, v.commit_hash) for r in info.repos for v in r.revisions} == {("org/name", B), ("org/name", C), ("solo", A)}


def test_verify_reads_the_peers_blobs(peers_cache):
    answer = khub_cache(peers_cache, "verify")
    assert answer["bad"] == 0 and {f["state"] for f in answer["files"]} == {"good"}
    assert len(answer["files"]) == sum(r.nb_files for repo in scan_cache_dir(peers_cache).repos for r in repo.revisions)


def test_without_links(tmp_path):
    """What the peer writes where links are refused."""
    cache = tmp_path / "cache"
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_cache_manage as t; t.download(sys.argv[2])"
    subprocess.run([os.sys.executable, "-c", code, str(pathlib.Path(__file__).parent), str(cache)], check=True, timeout=120,
                   env=os.environ | {"HF_HUB_DISABLE_SYMLINKS": "1"})
    listed = khub_cache(cache, "ls")
    info = scan_cache_dir(cache)
    (repo,) = info.repos
    (ours,), (theirs,) = listed["revisions"], repo.revisions
    assert ours["bytes"] == theirs.size_on_disk == ours["own_bytes"] and ours["files"] == theirs.nb_files
    assert khub_cache(cache, "rm", "org/name")["freed"] == theirs.size_on_disk + listed["bytes"] - info.size_on_disk


def download(cache):
    files = files_of(1, 12)
    with SmallHub("kernel", "org/name", {"main": A}, {A: files}, ()) as hub:
        for path in files:
            hf_hub_download("org/name", path, repo_type="kernel", revision="main", cache_dir=cache, endpoint=hub.endpoint)


def test_readers_go_on_while_another_revision_is_removed(peers_cache, tmp_path):
    """What isn't asked for stays readable at every moment."""
    cache = tmp_path / "cache"
    shutil.copytree(peers_cache, cache, symlinks=True)
    files, misses, stop = files_of(2, 12), [], threading.Event()

    def read():
        while not stop.is_set():
            for path, data in files.items():
                found = try_to_load_from_cache("org/name", path, cache_dir=cache, revision=C, repo_type="kernel")
                if not isinstance(found, str) or pathlib.Path(found).read_bytes() != data:
                    misses.append(path)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for commit in (A, B):
            khub_cache(cache, "rm", f"org/name@{commit}")
        khub_cache(cache, "prune")
    finally:
        stop.set()
        reader.join()
    assert not misses


def test_blobs_in_the_store_that_the_peer_shares(peers_cache, tmp_path):
    """CACHE/blobs/XX/XET_HASH, which repositories' blobs are links to."""
    from huggingface_hub.utils._shared_blobs import publish_blob_to_shared_store

    cache = tmp_path / "cache"
    shutil.copytree(peers_cache, cache, symlinks=True)
    blobs = sorted(p for p in (cache / "kernels--org--name" / "blobs").iterdir() if len(p.name) in (40, 64) and p.stat().st_size)
    for i, blob in enumerate(blobs[:5]):
        assert publish_blob_to_shared_store(blob_path=str(blob), xet_hash=f"{i:064x}", cache_dir=cache,
                                            expected_size=blob.stat().st_size, replace_existing=False)
        assert blob.is_symlink()
    info = scan_cache_dir(cache)
    listed = khub_cache(cache, "ls")
    assert not listed["warnings"] and listed["bytes"] == info.size_on_disk
    theirs = {(repo.repo_id, r.commit_hash): r.size_on_disk for repo in info.repos for r in repo.revisions}
    assert {(r["repository"], r["commit"]): r["bytes"] for r in listed["revisions"]} == theirs
    assert khub_cache(cache, "verify")["bad"] == 0
    shared = sum(p.stat().st_size for p in blobs[:5])
    own = [r.size_on_disk for r in info.repos if r.repo_id == "org/name"][0]
    assert khub_cache(cache, "rm", "org/name")["freed"] == own - shared + len(b"part")  # the store is the peer's to sweep
    assert not scan_cache_dir(cache).warnings and scan_cache_dir(cache).size_on_disk == khub_cache(cache, "ls")["bytes"]
