"""The cache, both ways: huggingface_hub reads what khub writes, and khub reads what huggingface_hub writes."""
import fcntl
import json
import os
import pathlib
import subprocess

import pytest

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_DISABLE_XET"] = "1"

from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache  # noqa: E402
from huggingface_hub import _CACHED_NO_EXIST  # noqa: E402
from huggingface_hub._tree_cache import TreeCacheEntry, read_tree_cache, write_tree_cache  # noqa: E402
from huggingface_hub.utils import WeakFileLock  # noqa: E402

from small_hub import SmallHub, git_hash, sha256  # noqa: E402

DRIVER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "oracle_cache"
A, B = "a" * 40, "b" * 40
REPO = "kernels-community/activation"
FOLDER = "kernels--kernels-community--activation"
FILES = {"README.md": b"hello\n", "build/cpu/__init__.py": b"", "build/cpu/a/b/lib.so": bytes(range(256)) * 100,
         "build/cpu/\u00e4 \u4e16.txt": "\u00e4\n".encode()}
LARGE = {"build/cpu/a/b/lib.so"}


class Khub:
    def __init__(self, cache, kind="kernel", repo=REPO):
        self.process = subprocess.Popen([DRIVER, cache, kind, repo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        self.process.stdout.close()


def etag(path, data):
    return sha256(data) if path in LARGE else git_hash(data)


def khub_writes(cache, tmp_path, files=FILES, commit=A, ref="v1", kind="kernel", repo=REPO):
    with Khub(cache, kind, repo) as khub:
        for path, data in files.items():
            source = tmp_path / "source"
            source.write_bytes(data)
            assert khub("bring", commit, path, etag(path, data), source) == "0"
        if ref:
            assert khub("set_ref", ref, commit) == "ok"


def peer_writes(cache, files=FILES, commit=A, ref="main", kind="kernel", repo=REPO):
    with SmallHub(kind, repo, {ref: commit}, {commit: files}, LARGE) as hub:
        for path in files:
            hf_hub_download(repo, path, repo_type=kind, revision=ref, cache_dir=cache, endpoint=hub.endpoint)
        with pytest.raises(Exception):
            hf_hub_download(repo, "nothing", repo_type=kind, revision=ref, cache_dir=cache, endpoint=hub.endpoint)


def layout(cache):
    """Everything in a cache: link texts, contents, permissions; the tag's words and the peer's own files apart."""
    found = {}
    for path in sorted(pathlib.Path(cache).rglob("*")):
        name = str(path.relative_to(cache))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = oct(path.stat().st_mode)
        else:
            content = path.read_bytes()[:43] if name == "CACHEDIR.TAG" else path.read_bytes()
            found[name] = (oct(path.stat().st_mode), content)
    return found


@pytest.mark.parametrize("umask", [0o022, 0o002])
def test_the_layout_is_the_same_byte_for_byte(tmp_path, umask):
    before = os.umask(umask)
    try:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        khub_writes(ours, tmp_path, ref="main")
        with Khub(ours) as khub:
            assert khub("set_absent", A, "nothing") == "ok"
        peer_writes(theirs)
    finally:
        os.umask(before)
    assert layout(ours) == layout(theirs)


def test_the_peer_reads_what_khub_writes(tmp_path):
    cache = tmp_path / "cache"
    khub_writes(cache, tmp_path)
    for path, data in FILES.items():
        for revision in ("v1", A):
            found = try_to_load_from_cache(REPO, path, cache_dir=cache, revision=revision, repo_type="kernel")
            assert pathlib.Path(found).read_bytes() == data
    with Khub(cache) as khub:
        assert khub("set_absent", A, "nothing/here.json") == "ok"
    assert try_to_load_from_cache(REPO, "nothing/here.json", cache_dir=cache, revision=A, repo_type="kernel") is _CACHED_NO_EXIST
    info = scan_cache_dir(cache)
    assert not info.warnings and not info.incomplete_files
    (repo,) = info.repos
    assert (repo.repo_id, repo.repo_type) == (REPO, "kernel")
    (revision,) = repo.revisions
    assert revision.refs == {"v1"} and revision.commit_hash == A and revision.nb_files == len(FILES)
    assert hf_hub_download(REPO, "README.md", repo_type="kernel", revision=A, cache_dir=cache, local_files_only=True)


def test_khub_reads_what_the_peer_writes(tmp_path):
    cache = tmp_path / "cache"
    peer_writes(cache)
    with Khub(cache) as khub:
        assert khub("ref", "main") == A
        for path, data in FILES.items():
            assert khub("has", A, path) == "1"
            source = tmp_path / "source"
            source.write_bytes(data)
            assert khub("bring", A, path, etag(path, data), source) == str(len(data))  # all was there
        assert khub("has", A, "nothing") == "0"
        assert khub("absent", A, "nothing") == "1"


def test_models_have_no_owner_sometimes(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    files = {"config.json": b"{}"}
    khub_writes(ours, tmp_path, files, kind="model", repo="gpt2", ref="main")
    with Khub(ours, "model", "gpt2") as khub:
        assert khub("set_absent", A, "nothing") == "ok"
    peer_writes(theirs, files, kind="model", repo="gpt2")
    assert layout(ours) == layout(theirs)


def test_without_links_both_hold_the_files(tmp_path):
    cache = tmp_path / "cache"
    os.environ["HF_HUB_DISABLE_SYMLINKS"] = "1"
    try:
        khub_writes(cache, tmp_path)
    finally:
        del os.environ["HF_HUB_DISABLE_SYMLINKS"]
    for path, data in FILES.items():
        found = pathlib.Path(try_to_load_from_cache(REPO, path, cache_dir=cache, revision="v1", repo_type="kernel"))
        assert not found.is_symlink() and found.read_bytes() == data
    info = scan_cache_dir(cache)
    assert not info.warnings


TREE = {
    "README.md": TreeCacheEntry(size=6, blob_id=git_hash(b"hello\n")),
    "a/\u00e4 \"q\" \U0001F600": TreeCacheEntry(size=1, blob_id=A),
    "lib.so": TreeCacheEntry(size=7, blob_id=B, lfs_sha256=sha256(b"x"), lfs_size=7, xet_hash=sha256(b"y")),
    "lfs only": TreeCacheEntry(size=2**40, blob_id=B, lfs_sha256=sha256(b"z"), lfs_size=2**40),
}


def test_lists_of_files_are_the_same_bytes(tmp_path):
    cache = tmp_path / "cache"
    folder = cache / FOLDER
    for files in (TREE, {}):
        write_tree_cache(str(folder), A, files)
        with Khub(cache) as khub:
            lines = [line.rsplit(" ", 4) for line in khub("tree", A).split("|")[:-1]]
            assert khub("copy_tree", A, B) == "ok"
        assert lines == [[path, str(e.size), e.blob_id, e.lfs_sha256 or "-", e.xet_hash or "-"] for path, e in sorted(files.items())]
        assert (folder / "trees" / f"{B}.json").read_bytes() == (folder / "trees" / f"{A}.json").read_bytes()
    assert json.loads((folder / "trees" / f"{B}.json").read_text()) == {"format_version": 1, "files": {}}


def test_the_peer_reads_khubs_list(tmp_path):
    cache = tmp_path / "cache"
    folder = cache / FOLDER
    write_tree_cache(str(folder), A, TREE)
    with Khub(cache) as khub:
        assert khub("copy_tree", A, "c" * 40) == "ok"
    assert read_tree_cache(str(folder), "c" * 40) == TREE


def test_the_lock_is_the_same(tmp_path):
    cache = tmp_path / "cache"
    data = FILES["README.md"]
    name = git_hash(data)
    lock = cache / ".locks" / FOLDER / f"{name}.lock"
    (tmp_path / "source").write_bytes(data)
    lock.parent.mkdir(parents=True)
    with WeakFileLock(lock), Khub(cache) as khub:
        assert khub("bring", A, "README.md", name, tmp_path / "source") == "busy"
    with Khub(cache) as khub:
        assert khub("begin", A, "README.md", name) == "begun"
        with lock.open("r+") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with WeakFileLock(lock, timeout=5):  # it ended, and nothing is in the way
        pass
    with Khub(cache) as khub:
        assert khub("bring", A, "README.md", name, tmp_path / "source") == "0"


def test_the_cache_can_move_and_be_a_link(tmp_path):
    real, moved, link = tmp_path / "a b", tmp_path / "\u00e4", tmp_path / "link"
    khub_writes(real, tmp_path)
    real.rename(moved)
    link.symlink_to(moved.name)
    with Khub(link) as khub:
        assert all(khub("has", A, path) == "1" for path in FILES)
        assert khub("ref", "v1") == A
    assert pathlib.Path(try_to_load_from_cache(REPO, "README.md", cache_dir=link, revision="v1", repo_type="kernel")).read_bytes() == b"hello\n"
