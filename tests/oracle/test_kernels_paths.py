"""AVX-512 and VNNI in the built-in kernels, their instructions emulated, give the bits of the portable path (paths/). Of AVX512-BF16 and AMX
the program itself says what isn't as promised, in a line that no other has."""
import os
import platform
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(os.environ["KHUB_BINARY"], "tests", "oracle", "paths")


def hashes(program):
    return subprocess.run([PROGRAMS / program / "program"], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="they are x86-64's")
def test_same_bits():
    here = hashes("here")
    assert len(here.splitlines()) == 76
    assert hashes("avx2") == hashes("avx512") == here
