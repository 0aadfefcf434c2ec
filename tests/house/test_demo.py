"""The tour of ./dev demo: it shows what it runs, in colours only where they are seen."""
import os
import pty
import re
import subprocess

import pytest
from house import SOURCE, STAGE

DEMO = SOURCE / "examples/demo.sh"
ARGUMENTS = [STAGE, os.environ["KHUB_MODEL"], os.path.join(os.environ["KHUB_BINARY"], "examples")]


def test_without_arguments_it_says_its_usage():
    done = subprocess.run([DEMO], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: demo.sh PREFIX MODEL EXAMPLES\n")


@pytest.fixture(scope="module")
def told():
    done = subprocess.run([DEMO, *ARGUMENTS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_step_shows_its_command_and_result(told):
    commands = re.findall(r"^  \$ (.*)$", told, re.M)
    assert [line.split()[:2] for line in commands] == [
        ["khub", "platform"], ["khub", "serve"], ["export", "HF_ENDPOINT=$(cat"], ["khub", "variants"], *[["khub", "get"]] * 3,
        ["cut", "-d'"], ["khub", "functions"], ["khub", "call"], ["similarity", "MiniLM"]]
    assert told.count("/resolve/") == 5  # the files of the build, once: warm and offline ask for nothing
    assert "out.npy: float32[3]: -0.158655 0 0.841345" in told  # x/2 (1 + erf(x/√2))
    assert re.search(r"^  1 .*A cat sleeps", told, re.M)


def test_no_colours_where_nobody_sees_them(told):
    assert "\033" not in told


@pytest.mark.parametrize("more, coloured", [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_on_a_terminal(more, coloured, tmp_path):
    """The first step alone: the tour ends where its model can't be found."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **more}
    if "NO_COLOR" not in more:
        env.pop("NO_COLOR", None)
    subprocess.run([DEMO, tmp_path, tmp_path, tmp_path], stdout=theirs, stderr=subprocess.DEVNULL, env=env)
    os.close(theirs)
    assert (b"\033[1m" in os.read(ours, 4096)) == coloured
    os.close(ours)
