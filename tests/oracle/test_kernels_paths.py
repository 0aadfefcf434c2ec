"""Every path of the built-in kernels gives the bits of the portable one: AVX-512 with its instructions emulated lane by lane
(paths/emulate), NEON and portable code of AArch64 under qemu. Compiled here, so that no path rots where no machine runs it."""
import os
import platform
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "paths"
KERNELS = Path(os.environ["KHUB_SOURCE"]) / "kernels"
SOURCES = [HERE / "paths.c"] + [KERNELS / p for p in ("norm/norm_rows.c", "activation/activation_rows.c", "softmax/softmax_rows.c",
                                                      "rotary/rotary_heads.c", "linear/linear_blocks.c",
                                                      "attention/attention_blocks.c", "probe/probe_path.c")]
# Not optimised: with every lane a loop, optimising takes a minute, and the numbers are few.
FLAGS = ["-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-ffp-contract=off", "-fno-math-errno",
         "-D_GNU_SOURCE", f"-I{KERNELS}", f"-I{KERNELS}/common"]
X86, ARM = ("gcc", [], []), ("aarch64-linux-gnu-gcc", ["-static"], ["qemu-aarch64"])
PATHS = {
    "avx512": (*X86, ["-mavx2", "-mfma", "-mf16c", f"-I{HERE}/emulate"]),
    "neon": (*ARM, []),
    "portable": (*ARM, []),
}


def tvm_ffi_headers():
    import tvm_ffi
    return Path(tvm_ffi.__file__).parent / "include"


def hashes(tmp_path, path, compiler, link, emulator, flags):
    program = tmp_path / f"{path}-{compiler}"
    subprocess.run([compiler, *FLAGS, *flags, "-isystem", tvm_ffi_headers(), f"-DKHUB_ISA={path}", f"-DKHUB_ISA_{path.upper()}",
                    *SOURCES, "-o", program, *link, "-lm"], check=True)
    return subprocess.run([*emulator, program], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def portable(tmp_path_factory):
    return hashes(tmp_path_factory.mktemp("portable"), "portable", *X86, [])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulators here are those of an x86-64 machine")
@pytest.mark.parametrize("path", PATHS)
def test_same_bits(path, portable, tmp_path):
    assert len(portable.splitlines()) == 61
    assert hashes(tmp_path, path, *PATHS[path]) == portable
