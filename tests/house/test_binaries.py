"""The library and the command run on every machine of their architecture. Wide vectors are the kernels' business, and that of a few
functions that are called where the processor has what they need: those of src/numerics/fast_avx2*.c, and others whose names say so."""
import os
import pathlib
import platform
import re

import pytest
from house import LIBRARIES, SOURCE, STAGE, run

BINARIES = LIBRARIES + [STAGE / "bin" / "khub"] + sorted(p for p in (STAGE / "libexec" / "khub").rglob("*") if p.is_file())


OBJECTS = [*pathlib.Path(os.environ["KHUB_BINARY"]).rglob("fast_avx2*.o")]
CHOSEN = {name.split(".")[0] for name in run("nm", "--defined-only", "--format=just-symbols", *OBJECTS).split()} if OBJECTS else set()


def wide_instructions(binary):
    """Instructions that a baseline x86-64 processor doesn't have (they name wide registers), or AArch64's SVE."""
    pattern = r"%[yz]mm\d|\sv[a-z0-9]+\s+.*%xmm" if platform.machine() == "x86_64" else r"\bz\d+\.[bhsd]\b"
    found, chosen = [], False
    for line in run("objdump", "-d", "--no-show-raw-insn", binary).splitlines():
        if label := re.match(r"[0-9a-f]+ <(\w+)", line):
            chosen = label[1] in CHOSEN or re.fullmatch(r"\w+_avx(2|512)", label[1])
        elif not chosen and re.search(pattern, line):
            found.append(line)
    return found


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
