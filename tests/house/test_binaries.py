"""The library and the command run on every machine of their architecture: vectors are the kernels' business."""
import platform
import re

import pytest
from house import LIBRARIES, SOURCE, STAGE, run

BINARIES = LIBRARIES + [STAGE / "bin" / "khub"] + sorted((STAGE / "libexec" / "khub").glob("*"))


def wide_instructions(binary):
    """Instructions that a baseline x86-64 processor doesn't have (they name wide registers), or AArch64's SVE."""
    pattern = r"%[yz]mm\d|\sv[a-z0-9]+\s+.*%xmm" if platform.machine() == "x86_64" else r"\bz\d+\.[bhsd]\b"
    return [line for line in run("objdump", "-d", "--no-show-raw-insn", binary).splitlines() if re.search(pattern, line)]


@pytest.mark.parametrize("binary", BINARIES, ids=lambda p: p.name)
def test_runs_on_the_baseline(binary):
    found = wide_instructions(binary)
    assert not found, "\n".join(found[:5])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flag is x86's")
def test_the_check_finds_them(tmp_path):
    code = tmp_path / "wide.c"
    code.write_text("void add(float *a, const float *b)\n{\n    for (int i = 0; i < 64; i++) a[i] += b[i];\n}\n")
    run("gcc", "-O3", "-mavx2", "-shared", "-fPIC", "-o", tmp_path / "wide.so", code)
    assert wide_instructions(tmp_path / "wide.so")


@pytest.mark.parametrize("binary", BINARIES, ids=lambda p: p.name)
def test_names_no_folder_of_the_build(binary):
    """An installation doesn't depend on, or tell, where it was built."""
    assert str(SOURCE) not in run("readelf", "-d", binary)
