"""What may be wrong with the cache or be going on in it while a kernel comes from the Hub: a disk that fills up anywhere, clocks,
another version of khub, links. Each ends in the right status and words, and the cache is as it was or better."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from small_hub import KHUB, VARIANT, Hub, fake, khub, lfs_id
from test_interrupted import check, start

BUILD = f"build/{VARIANT}"
DATA = bytes(range(256)) * 8192  # 2 MiB
YEAR = 365 * 86400


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/good"] = {"v1": {**fake(), f"{BUILD}/data.bin": DATA}}
    yield hub
    hub.close()


def get(hub, cache, *options):
    return khub(hub, cache, "get", "org/good@v1", *options)


def partials(cache):
    return list(cache.glob("*/blobs/*.incomplete"))


def interrupted(hub, cache):
    """A fetch that was killed with more than half of data.bin there."""
    hub.pause = 0.02
    run = start(hub, cache, "get", "org/good@v1")
    while not any(p.stat().st_size > 1 << 20 for p in partials(cache)):
        assert run.poll() is None
        time.sleep(0.005)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    hub.pause = 0


class SmallDisk:
    """A tmpfs for the cache in a mount namespace of its own: without a privilege that reaches further."""

    def __init__(self, cache):
        cache.mkdir()
        self.mine = cache
        self.process = subprocess.Popen(["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c", "echo in; exec sleep 600"],
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"in\n", "this test needs a mount of its own"
        self.cache = pathlib.Path(f"/proc/{self.process.pid}/root{cache}")  # the same place, seen from here

    def get(self, hub, mount):
        """`mount` with the options given, then a get."""
        enter = ["nsenter", "--target", str(self.process.pid), "--mount", *([] if os.geteuid() == 0 else ["--user", "--preserve-credentials"])]
        env = {**os.environ, "HOME": str(self.mine), "HF_HUB_CACHE": str(self.mine), "HF_ENDPOINT": hub.endpoint}
        return subprocess.run([*enter, "sh", "-c", f'{mount} "$1" && exec "$2" get org/good@v1', "sh", self.mine, KHUB], env=env, capture_output=True, text=True,
                              timeout=60)

    def close(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def disk(tmp_path):
    disk = SmallDisk(tmp_path / "cache")
    yield disk
    disk.close()


def test_a_disk_that_is_full_at_each_write(hub, disk):
    """So many files and directories, or kilobytes, and not one more: from nothing to enough for all."""
    hub.repos["kernels/org/good"]["v1"] = fake()
    for limit in ([f"nr_inodes={n}" for n in range(1, 40, 2)], [f"size={8 * n}k" for n in range(1, 10)]):
        ends = []
        while 0 not in ends:
            run = disk.get(hub, f"umount $1 2>/dev/null; mount -t tmpfs -o {limit[len(ends)]} none")
            ends.append(run.returncode)
            words = "the disk takes no more files" if "inodes" in limit[0] else "the disk is full"
            told = (words in run.stderr or "No space left" in run.stderr) and str(disk.mine) in run.stderr
            assert run.returncode == 0 or (run.returncode == 1 and told), (limit[len(ends) - 1], run.stderr)
            check(disk.cache)
            if len(ends) % 3:
                continue
            again = disk.get(hub, "mount -t tmpfs -o remount,nr_inodes=10000,size=64m none")
            assert again.returncode == 0, again.stderr
            assert not partials(disk.cache) and not list(disk.cache.rglob("*.tmp"))
        assert len(ends) > 3, ends


@pytest.mark.parametrize("most", [16, 20, 32])
def test_few_open_files(hub, tmp_path, most):
    hub.repos["kernels/org/good"]["v1"] = {**fake(), **{f"{BUILD}/{i}": b"%d" % i for i in range(20)}}
    limited = ["prlimit", f"--nofile={most}", KHUB, "get", "org/good@v1"]
    env = {**os.environ, "HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_ENDPOINT": hub.endpoint}
    run = subprocess.run(limited, env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    check(tmp_path / "cache")


def test_what_stands_in_the_way_of_the_locks_is_named(hub, tmp_path):
    (tmp_path / ".locks").write_text("")
    run = get(hub, tmp_path)
    assert run.returncode == 1 and f"{tmp_path}/.locks/kernels--org--good: can't make it" in run.stderr, run.stderr


def tidy_up(hub, folder, times, name=".so"):
    """Someone removes `folder` each time when a library, or `name`, is asked for."""
    def answer(handler):
        if name in handler.path and times:
            times.pop()
            shutil.rmtree(folder, ignore_errors=True)  # while others may be made in it
        whole(handler)

    whole, hub.answer = hub.answer, answer


@pytest.mark.parametrize("name", [".so", "big.bin"])  # by then the file is made that it comes into
@pytest.mark.parametrize("folder", ["", "snapshots", "blobs"])
def test_what_is_taken_out_while_it_is_fetched_comes_again(hub, tmp_path, folder, name):
    """In the same fetch, and not a build without the files that came first, called a success."""
    cache = tmp_path / "cache"
    hub.repos["kernels/org/good"]["v1"] = {**fake(), f"{BUILD}/big.bin": DATA}
    tidy_up(hub, cache / "kernels--org--good" / folder, [1], name)
    run = get(hub, cache)
    assert run.returncode == 0, run.stderr
    for path, content in hub.repos["kernels/org/good"]["v1"].items():
        assert not path.startswith(BUILD) or (pathlib.Path(run.stdout.strip()).parents[1] / path).read_bytes() == content


def test_what_is_taken_out_again_and_again(hub, tmp_path):
    cache = tmp_path / "cache"
    hub.repos["kernels/org/good"]["v1"] = fake()
    tidy_up(hub, cache / "kernels--org--good" / "snapshots", [1, 2, 3])
    run = khub(hub, cache, "download", "org/good@v1")
    assert run.returncode == 0 or (run.returncode == 1 and "taken out of the cache" in run.stderr), run.stderr


@pytest.mark.parametrize("off", [YEAR, -YEAR], ids=["ahead", "behind"])
def test_a_clock_a_year_off(hub, tmp_path, off):
    """All that an earlier fetch left says that it is of next year, or of last year."""
    interrupted(hub, tmp_path)
    ok = get(hub, tmp_path, "--offline")
    assert ok.returncode == 5
    shift(tmp_path, off)
    sent, send = [], hub.send
    hub.send = lambda handler, *rest: (sent.append(handler.headers.get("Range")), send(handler, *rest))
    assert get(hub, tmp_path).returncode == 0
    assert [r for r in sent if r] != []  # it goes on where the first stopped
    assert not partials(tmp_path)
    check(tmp_path)
    shift(tmp_path, off)
    hub.paths()
    run = get(hub, tmp_path)
    assert run.returncode == 0 and run.stderr == ""
    assert hub.paths() == ["GET /api/kernels/org/good/refs"]  # the cache's word isn't fresh, whichever way the clock is off
    assert get(None, tmp_path, "--offline").returncode == 0


def shift(cache, seconds):
    for path in cache.rglob("*"):
        os.utime(path, (time.time() + seconds,) * 2, follow_symlinks=False)
    for record in cache.glob("*/publisher.json"):
        record.write_text(json.dumps({**json.loads(record.read_text()), "asked": int(time.time() + seconds)}))


def test_another_version_of_khub_at_once(hub, tmp_path):
    """It holds the lock of the large file and writes it under a name and with a note that this version doesn't know. This one brings
    the rest, waits, and takes what is there then; what it can't read in the cache it leaves, or asks for again."""
    name, folder = lfs_id(DATA), tmp_path / "kernels--org--good"
    assert get(hub, tmp_path).returncode == 0
    blob = folder / "blobs" / name
    blob.unlink()
    (folder / "publisher.json").write_text('{"format": 2, "publishers": {"org": {"trusted": true}}}')
    (folder / "receipts.json").write_text('{"format": 7}')
    left = folder / "blobs" / f"{name}.khub2-0001.incomplete"
    left.write_bytes(b"killed long ago")
    theirs = folder / "blobs" / f"{name}.khub2-0002.incomplete"
    theirs.write_bytes(DATA[: 1 << 20])
    hub.paths()
    with open(tmp_path / ".locks" / "kernels--org--good" / f"{name}.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write('khub2 {"writer": {"pid": 1, "host": "elsewhere"}}\n')
        lock.flush()
        run = start(hub, tmp_path, "get", "org/good@v1")
        while not any("organizations" in p for p in hub.requests):  # the publisher is asked for just before the files
            assert run.poll() is None
            time.sleep(0.005)
        time.sleep(0.2)
        assert run.poll() is None and not blob.exists()
        theirs.write_bytes(DATA)
        theirs.rename(blob)
    out, words = run.communicate(timeout=60)
    assert run.returncode == 0, words
    assert not [p for p in hub.paths() if p.endswith("data.bin")]
    assert left.read_bytes() == b"killed long ago" and (folder / "receipts.json").read_text() == '{"format": 7}'
    assert json.loads((folder / "publisher.json").read_text())["trusted"] is True  # asked for again, in this version's form
    check(tmp_path)


def test_links_that_lead_nowhere_or_elsewhere(hub, tmp_path):
    """In the snapshot and among the blobs: replaced, and nothing is written through them."""
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    assert get(hub, cache).returncode == 0
    outside.write_bytes(b"somebody's")
    folder = next(cache.glob("kernels--*"))
    there = {p.name: p for p in next(folder.glob(f"snapshots/*/{BUILD}")).iterdir()}
    library = next(p for n, p in there.items() if n.endswith(".so"))
    library.resolve().unlink()
    (folder / "blobs" / lfs_id(DATA)).unlink()
    (folder / "blobs" / lfs_id(DATA)).symlink_to(outside)
    there["metadata.json"].unlink()
    there["metadata.json"].symlink_to(outside)
    assert get(None, cache, "--offline").returncode == 5
    run = get(hub, cache)
    assert run.returncode == 0, run.stderr
    assert there["data.bin"].read_bytes() == DATA and outside.read_bytes() == b"somebody's"
    check(cache)


def test_blobs_of_the_right_name_and_the_wrong_size(hub, tmp_path):
    assert get(hub, tmp_path).returncode == 0
    blobs = {p: p.read_bytes() for p in tmp_path.glob("*/blobs/*")}
    for i, (path, content) in enumerate(blobs.items()):
        path.write_bytes((b"", content[:-1], content + b"x")[i % 3])
    assert get(None, tmp_path, "--offline").returncode == 5
    assert get(hub, tmp_path).returncode == 0
    assert {p: p.read_bytes() for p in tmp_path.glob("*/blobs/*")} == blobs
