"""The AVX-512 path of the built-in kernels, its instructions emulated, gives the bits of the portable one (paths/)."""
import os
import platform
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(os.environ["KHUB_BINARY"], "tests", "oracle", "paths")


def hashes(program):
    return subprocess.run([PROGRAMS / program / "program"], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX-512 is x86-64's")
def test_same_bits():
    here = hashes("here")
    assert len(here.splitlines()) == 63
    assert hashes("avx512") == here
