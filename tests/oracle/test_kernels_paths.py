"""Every path of the built-in kernels gives the bits of the portable one: AVX-512 with its instructions emulated, NEON and portable code of
AArch64 under qemu (paths/)."""
import os
import platform
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(os.environ["KHUB_BINARY"], "tests", "oracle", "paths")
EMULATORS = {"avx512": [], "neon": ["qemu-aarch64"], "portable": ["qemu-aarch64"]}


def hashes(program, emulator=()):
    return subprocess.run([*emulator, PROGRAMS / program / "program"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def here():
    return hashes("here")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulators here are those of an x86-64 machine")
@pytest.mark.parametrize("path", EMULATORS)
def test_same_bits(path, here):
    assert len(here.splitlines()) == 61
    assert hashes(path, EMULATORS[path]) == here
