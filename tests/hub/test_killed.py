"""A fetch that is killed, 200 times at moments over the whole of it. In the release build alone: who is killed can't tell what a sanitizer saw."""

import os
import random
import signal
import time

from small_hub import khub
from test_interrupted import check, hub, start  # noqa: F401


def test_killed_200_times(hub, tmp_path):
    """At moments over the whole of a fetch. Afterwards the cache is in order, and the next fetch completes."""
    rng = random.Random(200)
    hub.pause = 0.0002
    whole = time.monotonic()
    run = start(hub, tmp_path / "whole", "get", "org/good@v1")
    assert run.wait(60) == 0, run.stderr.read()
    whole = time.monotonic() - whole
    killed = 0
    for i in range(200):
        cache = tmp_path / f"cache{i}"
        run = start(hub, cache, "get", "org/good@v1")
        time.sleep(rng.uniform(0, whole))
        os.killpg(run.pid, signal.SIGKILL)  # the command and the child that it works in
        killed += run.wait(60) == -signal.SIGKILL
        check(cache)
        if i % 10 == 0:
            again = khub(hub, cache, "get", "org/good@v1")
            assert again.returncode == 0, again.stderr
            check(cache)
            assert not list(cache.glob("*/blobs/*.incomplete"))
            assert khub(hub, cache, "cache", "verify").returncode == 0
    assert killed > 100
