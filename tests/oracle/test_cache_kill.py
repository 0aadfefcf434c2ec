"""What a killed process leaves, and what many processes do at once: judged by huggingface_hub."""
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time

from huggingface_hub import scan_cache_dir, try_to_load_from_cache
from huggingface_hub._tree_cache import TreeCacheEntry, read_tree_cache, write_tree_cache

from small_hub import git_hash, sha256

DRIVER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "oracle_cache"
KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
A, B = "a" * 40, "b" * 40
REPO, FOLDER = "org/name", "kernels--org--name"
SEED = random.randrange(2**32)  # printed when a test fails
FILES = {"README.md": b"hello\n", "build/x/__init__.py": b"", "build/x/small.bin": bytes(5000), "build/x/lib.so": bytes(range(256)) * 3000,
         "build/x/twice.so": bytes(range(256)) * 3000, "other.bin": bytes(range(256)) * 400}


def etag(data):
    return sha256(data) if len(data) > 1000 else git_hash(data)


CONTENTS = {etag(data): data for data in FILES.values()}


def script(tmp_path, commit=A, tree_from=B):
    """A fetch as khub does it: the list of files, the ref, the files."""
    lines = [f"copy_tree\t{tree_from}\t{commit}", f"set_ref\tv1\t{commit}", f"set_absent\t{commit}\tgone.json"]
    for i, (path, data) in enumerate(FILES.items()):
        source = tmp_path / f"source{i}"
        source.write_bytes(data)
        lines.append(f"bring\t{commit}\t{path}\t{etag(data)}\t{source}")
    return "\n".join(lines) + "\n"


def drive(cache, text, kill_after=None):
    process = subprocess.Popen([DRIVER, cache, "kernel", REPO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if kill_after is None:
        return process.communicate(text, timeout=60)[0].splitlines()
    process.stdin.write(text)
    process.stdin.flush()
    time.sleep(kill_after)
    process.kill()
    return process.communicate(timeout=60)[0].splitlines()


def check_whole(cache):
    """Nothing half-written has its final name."""
    info = scan_cache_dir(cache)
    assert not info.warnings, (SEED, info.warnings)
    for repo in info.repos:
        for revision in repo.revisions:
            for file in revision.files:
                path = str(file.file_path.relative_to(revision.snapshot_path))
                assert file.file_path.read_bytes() == FILES[path], (SEED, path)
    for blob in (cache / FOLDER / "blobs").glob("*"):
        if not blob.name.endswith(".incomplete"):
            assert blob.read_bytes() == CONTENTS[blob.name], SEED
    if (cache / FOLDER / "trees" / f"{A}.json").exists():
        assert read_tree_cache(str(cache / FOLDER), A) is not None, SEED
    for ref in (cache / FOLDER / "refs").glob("*"):
        assert ref.read_text() == A and (cache / FOLDER / "snapshots" / A).is_dir(), SEED


def test_killed_200_times(tmp_path):
    rng = random.Random(SEED)
    text = script(tmp_path)
    lists = tmp_path / "lists"
    write_tree_cache(str(lists / FOLDER), B, {p: TreeCacheEntry(size=len(d), blob_id=git_hash(d)) for p, d in FILES.items()})
    (lists / FOLDER / "snapshots").mkdir()
    durations = []
    for i in range(5):
        start = time.monotonic()
        drive(shutil.copytree(lists, tmp_path / f"warm{i}"), text)
        durations.append(time.monotonic() - start)
    finished = 0
    for i in range(200):
        cache = shutil.copytree(lists, tmp_path / f"cache{i}")
        finished += len(drive(cache, text, rng.uniform(0, min(durations)))) == 3 + len(FILES)
        check_whole(cache)
        answers = drive(cache, text)
        assert len(answers) == 3 + len(FILES) and not [a for a in answers if "KHUB_E" in a], (SEED, answers)
        check_whole(cache)
        for path, data in FILES.items():
            found = try_to_load_from_cache(REPO, path, cache_dir=cache, revision="v1", repo_type="kernel")
            assert pathlib.Path(found).read_bytes() == data
        assert not scan_cache_dir(cache).incomplete_files, SEED  # what was left was taken over
        shutil.rmtree(cache)
    assert finished < 150, "the kills came too late to mean anything"


def test_a_new_cache_is_never_seen_without_its_snapshots(tmp_path):
    """The first moments: a folder that the peer would call broken must not be there at any time."""
    text = script(tmp_path)
    for i in range(15):
        cache = tmp_path / f"cache{i}"
        process = subprocess.Popen([DRIVER, cache, "kernel", REPO], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        process.stdin.write(text)
        process.stdin.close()
        looks = 0
        while process.poll() is None or looks == 0:
            looks += 1
            if cache.is_dir():
                assert not scan_cache_dir(cache).warnings
        assert process.returncode == 0


def test_many_processes_bring_each_blob_once(tmp_path):
    cache = tmp_path / "cache"
    lines = []
    for i, (path, data) in enumerate(FILES.items()):
        (tmp_path / f"source{i}").write_bytes(data)
        lines.append(f"bring\t{A}\t{path}\t{etag(data)}\t{tmp_path / f'source{i}'}")
    processes = [subprocess.Popen([DRIVER, cache, "kernel", REPO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                 for _ in range(16)]
    brought = []

    def work(process):
        todo = list(range(len(lines)))
        random.shuffle(todo)
        while todo:
            i = todo.pop(0)
            process.stdin.write(lines[i] + "\n")
            process.stdin.flush()
            answer = process.stdout.readline().strip()
            if answer == "busy":
                todo.append(i)
            else:
                brought.append((i, answer))
        process.stdin.close()
        process.stdout.close()
        assert process.wait(timeout=60) == 0

    threads = [threading.Thread(target=work, args=(p,)) for p in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(brought) == 16 * len(lines) and all(a.isdigit() for _, a in brought)
    contents = {etag(d) for d in FILES.values() if d}
    assert sum(a == "0" for i, a in brought if list(FILES.values())[i]) == len(contents)
    assert not scan_cache_dir(cache).warnings and not scan_cache_dir(cache).incomplete_files


def test_a_ref_that_moves_is_always_one_of_the_two(tmp_path):
    """Readers of both kinds, while the ref alternates between two commits that are there."""
    cache = tmp_path / "cache"
    for commit in (A, B):
        source = tmp_path / "source"
        source.write_text(commit)
        drive(cache, f"bring\t{commit}\tf\t{git_hash(commit.encode())}\t{source}\nset_ref\tv1\t{commit}\n")
    stop, wrong, reads = threading.Event(), [], [0]

    def read():
        while not stop.is_set():
            found = try_to_load_from_cache(REPO, "f", cache_dir=cache, revision="v1", repo_type="kernel")
            reads[0] += 1
            if not isinstance(found, str) or pathlib.Path(found).read_text() not in (A, B):
                wrong.append(found)

    def read_by_khub():
        for answer in drive(cache, "ref\tv1\n" * 400):
            if answer not in (A, B):
                wrong.append(answer)

    readers = [threading.Thread(target=read) for _ in range(2)] + [threading.Thread(target=read_by_khub) for _ in range(2)]
    for reader in readers:
        reader.start()
    answers = drive(cache, f"set_ref\tv1\t{A}\nset_ref\tv1\t{B}\n" * 150)
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong and reads[0] > 0 and set(answers) == {"ok"}
