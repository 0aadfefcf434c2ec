"""The built-in kernels give the same bits on every path of every processor: each function of each is called with the cases of `khub compare`
(oracle/bits.c) by this machine's build and, emulated, by the build for the other processor."""
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

HERE = [Path(os.environ["KHUB_NATIVE"]), Path(os.environ["KHUB_NATIVE_STAGE"]), []]
THERE = [Path(os.environ["KHUB_BINARY"]), Path(os.environ["KHUB_STAGE"]), os.environ["KHUB_EMULATOR"].split()]
NEEDS = {"portable": [], "avx2": ["avx2", "fma", "f16c"], "avx512": ["avx512f", "avx512bw", "avx512dq", "avx512vl"]}


def kernels(stage):
    return sorted(f"khub/{folder.name}" for folder in (stage / "share/khub/kernels/khub").iterdir())


def start(build, isa):
    binary, stage, emulator = build
    return subprocess.Popen([*emulator, binary / "tests/oracle_bits", *kernels(stage)], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "KHUB_PREFIX": str(stage), "KHUB_KERNEL_ISA": isa})


def paths_here():
    flags = Path("/proc/cpuinfo").read_text().split()
    return [isa for isa, needs in NEEDS.items() if set(needs) <= set(flags)]


@pytest.fixture(scope="module")
def lines():
    """What each path prints; all run side by side."""
    running = {("here", isa): start(HERE, isa) for isa in paths_here()}
    running |= {("there", isa): start(THERE, isa) for isa in ("portable", "neon")}
    printed = {key: process.communicate()[0].splitlines() for key, process in running.items()}
    assert {key: process.returncode for key, process in running.items()} == dict.fromkeys(running, 0)
    return printed


def test_the_kernels_are_the_same():
    assert kernels(HERE[1]) == kernels(THERE[1]) != []


def test_same_bits(lines):
    portable = lines["here", "portable"]
    for key, printed in lines.items():
        assert len(printed) == len(portable), key
        differ = [(ours, theirs) for ours, theirs in zip(portable, printed) if ours != theirs]
        assert not differ, (key, len(differ), differ[:5])


def test_there_is_something_to_differ(lines):
    """Each function has many cases, few of which it refuses, and hardly two with one result."""
    calls, hashes, refused = Counter(), set(), Counter()
    for line in lines["here", "portable"]:
        kernel, function, _, result = line.split()
        calls[kernel, function] += 1
        refused[kernel, function] += result == "refused"
        hashes.add((kernel, function, result))
    assert all(count >= 30 for count in calls.values()), calls
    assert all(refused[key] < count / 2 for key, count in calls.items()), refused
    assert len(hashes) > sum(calls.values()) / 2
