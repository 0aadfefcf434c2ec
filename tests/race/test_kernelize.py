"""Kernels that one khub_kernelize gets side by side, under the thread sanitizer: each once, progress told in the caller's thread alone,
and a cancel that ends them all."""

import os
import pathlib
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
from small_hub import Hub, fake  # noqa: E402
from test_interrupted import check  # noqa: E402

RACE = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "race", "race_kernelize")
NAMES = [f"org/k{i}@v1" for i in range(6)]


class Counting(Hub):
    """Knows how many requests it had to answer at the same time."""

    def __init__(self):
        self.now, self.most, self.lock = 0, 0, threading.Lock()
        super().__init__()

    def answer(self, handler):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            super().answer(handler)
        finally:
            with self.lock:
                self.now -= 1


@pytest.fixture
def hub():
    hub = Counting()
    hub.pause = 0.03
    for i, name in enumerate(NAMES):
        files = {**fake(f"twin_{'one' if i % 2 else 'two'}"), "README.md": b"%d" % i}  # a commit of its own
        hub.repos[f"kernels/{name.removesuffix('@v1')}"] = {"v1": files}
    yield hub
    hub.close()


def race(hub, cache, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "KERNELS_", "LOCAL_KERNELS"))}
    env |= {"HOME": str(cache), "HF_HUB_CACHE": str(cache), "HF_ENDPOINT": hub.endpoint, "KHUB_RETRIES": "0"}
    run = subprocess.run([RACE, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr + run.stdout
    return [line.split(" ", 3) for line in run.stdout.splitlines()]


def test_all_at_once_and_each_once(hub, tmp_path):
    names = NAMES + [NAMES[0]]
    lines = race(hub, tmp_path, 2, 0, *names)
    first, second = lines[0], lines[len(names) + 1]
    assert first[0] == second[0] == "KHUB_OK"
    assert int(first[1]) > 0 and first[2] == "0"  # told, and never in another thread
    assert second[1] == "0"
    slots = lines[1 : len(names) + 1]
    assert [slot[0] for slot in slots] == names
    assert slots == lines[len(names) + 2 :]
    assert slots[0][1] == hub.commit(hub.repos["kernels/org/k0"]["v1"])
    asked = [p for p in hub.paths() if "/resolve/" in p]
    assert len(asked) == len(set(asked))
    assert 2 <= hub.most <= 8 * 8  # threads, and files of each
    check(tmp_path)


def test_one_that_is_missing_stops_nobody(hub, tmp_path):
    lines = race(hub, tmp_path, 1, 0, *NAMES[:2], "org/none@v1", NAMES[2])
    assert [line[0] for line in lines] == ["KHUB_OK", *NAMES[:2], "-", NAMES[2]]
    assert "org/none" in " ".join(lines[3])


def test_cancel(hub, tmp_path):
    (status, told, elsewhere, words), = race(hub, tmp_path, 1, 2, *NAMES)
    assert (status, told, elsewhere) == ("KHUB_E_CANCELED", "2", "0") and "canceled" in words
    check(tmp_path)
    hub.pause = 0
    lines = race(hub, tmp_path, 1, 0, *NAMES)
    assert [line[0] for line in lines] == ["KHUB_OK", *NAMES]


def test_a_hub_that_is_away_is_waited_for_once(hub, tmp_path):
    """The cache has one of them; of the others each says why."""
    race(hub, tmp_path, 1, 0, NAMES[0])
    hub.close()
    lines = race(hub, tmp_path, 1, 0, *NAMES)
    assert [line[0] for line in lines] == ["KHUB_OK", NAMES[0], *["-"] * 5]
