"""Many processes at one cache: they share its files and nothing else. In the release build alone: under a sanitizer each would do what one alone does
there (test_journey.py), only slower, so that fewer meet."""
import pathlib
import time

from small_hub import khub
from test_interrupted import BUILD, hub, start  # noqa: F401


def test_many_at_once_fetch_each_blob_once(hub, cache):
    runs = [start(hub, cache, "get", "org/good@v1") for _ in range(32)]
    ends = [(run.wait(120), run.stderr.read()) for run in runs]
    for run in runs:
        run.stdout.close()
        run.stderr.close()
    assert [status for status, _ in ends] == [0] * 32, ends
    fetched = [p for p in hub.paths() if "/resolve/" in p]
    assert max(fetched.count(p) for p in fetched) <= 2


def test_readers_see_one_commit_or_the_other(hub, tmp_path):
    """One process follows a branch that moves between two commits; eight read by version, offline."""
    other = {**hub.repos["kernels/org/good"]["v1"], f"{BUILD}/more.txt": b"other"}
    one = hub.repos["kernels/org/good"]["v1"]
    commits = {hub.commit(one), hub.commit(other)}
    for files in (one, other):
        hub.repos["kernels/org/good"]["v1"] = files
        assert khub(hub, tmp_path, "get", "org/good@v1", "--refresh").returncode == 0
    seen, readers, follower, moves = set(), [], None, 0
    while moves < 8 or follower.poll() is None or readers:
        if moves < 8 and (follower is None or follower.poll() is not None):
            assert follower is None or follower.returncode == 0, follower.stderr.read()
            moves += 1
            hub.repos["kernels/org/good"]["v1"] = (one, other)[moves % 2]
            follower = start(hub, tmp_path, "get", "org/good@v1", "--refresh")
        while (moves < 8 or follower.poll() is None) and len(readers) < 8:
            readers.append(start(hub, tmp_path, "get", "org/good@v1", "--offline"))
        for run in [r for r in readers if r.poll() is not None]:
            out, words = run.communicate()
            assert run.returncode == 0, words
            seen.add(pathlib.Path(out.strip()).parents[1].name)
            readers.remove(run)
        time.sleep(0.005)
    assert follower.returncode == 0 and seen == commits
