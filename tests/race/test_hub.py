"""Many threads of one process ask a Hub at once, under the thread sanitizer: no race, no blob twice, and a cache in order, also
when a fetch of many files is canceled in the middle."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
from small_hub import Hub, fake, files_of  # noqa: E402
from test_interrupted import check  # noqa: E402

RACE = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "race", "race_hub")
KERNELS = ["good", "empty", "twin_one", "twin_two"]
SMALL = {f"f{i:03}": b"%d " % i * (i + 1) for i in range(200)}
BIG = bytes(range(256)) * 4 * (66 << 10)  # 66 MiB: comes in ranges, and a thread of its own writes it


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos = {f"kernels/org/{name}": {"v1": fake(name)} for name in KERNELS}
    hub.repos["models/org/many"] = {"main": SMALL}
    hub.repos["models/org/mixed"] = {"main": {**SMALL, "big.bin": BIG, "twice.bin": BIG}}
    yield hub
    hub.close()


def race(hub, cache, *arguments):
    """The lines that it prints. A report of the sanitizer is a failure, whatever they say."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "KERNELS_", "LOCAL_KERNELS"))}
    env |= {"HOME": str(cache), "HF_HUB_CACHE": str(cache), "HF_ENDPOINT": hub.endpoint}
    run = subprocess.run([RACE, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr + run.stdout
    return [line.split(" ", 2) for line in run.stdout.splitlines()]


def downloads(hub):
    """How often each file was asked for."""
    asked = [p for p in hub.paths() if "/resolve/" in p]
    return [asked.count(p) for p in set(asked)]


def snapshot_is_whole(hub, cache, name):
    files = hub.repos[f"models/{name}"]["main"]
    assert files_of(cache / f"models--{name.replace('/', '--')}" / "snapshots" / hub.commit(files)) == files
    assert not list(cache.glob("*/blobs/*.incomplete"))


@pytest.mark.parametrize("names", [["good"] * 8, KERNELS * 2], ids=["the same", "different ones"])
def test_eight_threads_get_kernels(hub, tmp_path, names):
    names = [f"org/{name}@v1" for name in names]
    for temperature in ("cold", "warm"):
        lines = race(hub, tmp_path, "get", 3, *names)
        assert [line[:2] for line in lines] == [["KHUB_OK", name] for name in names], lines
        assert len({line[2] for line in lines}) == len(set(names))
        times = downloads(hub)
        assert max(times) == 1 if temperature == "cold" else times == []
    check(tmp_path)


def test_many_files_side_by_side(hub, tmp_path):
    names = ["org/mixed", "org/many"] * 2
    lines = race(hub, tmp_path, "download", *names)
    assert [line[0] for line in lines] == ["KHUB_OK"] * 4, lines
    snapshot_is_whole(hub, tmp_path, "org/many")
    snapshot_is_whole(hub, tmp_path, "org/mixed")


@pytest.mark.parametrize("who", ["thread", "callback"])
@pytest.mark.parametrize("repo", ["many", "mixed"])
def test_cancel(hub, tmp_path, who, repo):
    """The next time that progress is told is the last, and nothing that came is lost."""
    hub.pause = 0.1  # the other 180 files take two seconds more: time enough for the other thread
    (status, _, words), (_, looks_after, _) = race(hub, tmp_path, "cancel", who, 20, f"org/{repo}")
    assert status == "KHUB_E_CANCELED" and "canceled" in words
    assert looks_after == "1"
    check(tmp_path)
    there = len([p for p in tmp_path.glob("*/blobs/*") if not p.name.endswith(".incomplete")])
    assert 20 <= there < 200
    hub.paths()
    hub.pause = 0
    assert race(hub, tmp_path, "download", f"org/{repo}")[0][0] == "KHUB_OK"
    assert len([p for p in hub.paths() if "/f" in p]) <= 200 - there
    snapshot_is_whole(hub, tmp_path, f"org/{repo}")
