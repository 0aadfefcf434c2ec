"""khub check says of libraries what PyPI's kernel-abi-check says, where both look. The libraries are made of stubs that have
every version of every symbol, so that each (version, level) is asked once; the peer reads a library's .symtab, so nothing
here is stripped."""
import json
import os
import pathlib
import re
import subprocess
import sys

import kernel_abi_check
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import objects

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
PEER = pathlib.Path(kernel_abi_check.__file__).parent
LEVELS = [f"manylinux_2_{n}" for n in (5, 12, 17, 24, 27, 28, 31, 34, 35, 36, 37, 38, 39)]
COMPILERS = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}
# Versions, real and not: what the peer refuses at every level was never there, and khub need not know that.
VERSIONS = {
    "libc.so.6": [f"GLIBC_2.{n}" for n in range(2, 45)] + ["GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.3.4", "GLIBC_2.2.6", "GLIBC_2.0"],
    "libstdc++.so.6": [f"GLIBCXX_3.4.{n}" for n in range(1, 36)] + ["GLIBCXX_3.4"] + [f"CXXABI_1.3.{n}" for n in range(1, 17)] + ["CXXABI_1.3"],
    "libgcc_s.so.1": ["GCC_3.0", "GCC_3.3", "GCC_3.3.1", "GCC_3.4", "GCC_3.4.2", "GCC_3.4.4", "GCC_4.0.0", "GCC_4.2.0", "GCC_4.3.0", "GCC_4.5.0",
                      "GCC_4.7.0", "GCC_4.8.0", "GCC_7.0.0", "GCC_11.0", "GCC_12.0.0", "GCC_13.0.0", "GCC_14.0.0", "GCC_15.0.0"],
    "libz.so.1": ["ZLIB_1.2.0", "ZLIB_1.2.2", "ZLIB_1.2.9", "ZLIB_1.2.12", "ZLIB_1.3.1"],
    "libother.so.1": ["OTHER_9.9", "LIBOTHER"],
}


def run(*command, cwd=None, status=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert done.returncode == status, f"{' '.join(map(str, command[:6]))}: {done.stdout}{done.stderr}"
    return done.stdout


def check(*arguments):
    """The findings about each file; status 1 is an error among them."""
    done = subprocess.run([KHUB, "check", "--json", "--no-load", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    assert (answer["errors"] > 0) == (done.returncode == 1)
    return [c["findings"] for c in answer["checks"]]


def symbol(version):
    return "f_" + version.replace(".", "_")


def asm(names):
    return ".data\n" + "".join(f".quad {n}\n" for n in names) + '.section .note.GNU-stack,"",@progbits\n'


@pytest.fixture(scope="module", params=COMPILERS)
def library(request, tmp_path_factory):
    """One that uses every version there is."""
    compiler, folder = COMPILERS[request.param], tmp_path_factory.mktemp(request.param)
    for name, versions in VERSIONS.items():
        (folder / "stub.c").write_text("".join(f"int {symbol(v)};\n" for v in versions))
        (folder / "stub.map").write_text("".join(f"{v} {{ global: {symbol(v)}; }};\n" for v in versions))
        run(compiler, "-shared", "-nostdlib", "-fPIC", "stub.c", f"-Wl,--version-script=stub.map,-soname,{name}", "-o", name, cwd=folder)
    (folder / "all.s").write_text(asm(symbol(v) for versions in VERSIONS.values() for v in versions))
    run(compiler, "-shared", "-nostdlib", "all.s", *VERSIONS, "-o", "all.so", cwd=folder)
    return folder / "all.so"


def theirs_and_ours(library, level):
    (findings,) = check(library, "--manylinux", level)
    ours = {name for f in findings if f["about"] == "manylinux" and f["level"] == "error" for name in f["items"]}
    return {v.name for v in kernel_abi_check.ObjectFile(str(library)).check_manylinux(level)}, ours


def test_versions_of_symbols(library):
    levels = LEVELS if library.parent.name.startswith("x86_64") else LEVELS[2:]
    answers = {level: theirs_and_ours(library, level) for level in levels}
    never = set.intersection(*[theirs for theirs, _ in answers.values()])
    for level, (theirs, ours) in answers.items():
        assert ours <= theirs and theirs - ours <= never, level
        assert ours >= never & {"f_GLIBC_2_44", "f_GLIBCXX_3_4_35", "f_CXXABI_1_3_16", "f_GCC_15_0_0", "f_ZLIB_1_3_1"}
    assert sum(len(ours) for _, ours in answers.values()) > 300
    assert not any(name.startswith(("f_OTHER", "f_LIBOTHER")) for _, ours in answers.values() for name in ours)


def limited_api():
    """The names that the peer has a list of, as they stand in it, and a few that are none of them."""
    text = b"".join(p.read_bytes() for p in PEER.glob("*.so"))
    names = {m.decode() for m in re.findall(rb"^\[(?:function|data)\.(\w+)\]", text, flags=re.M)}
    assert len(names) > 900
    return sorted(names) + ["PyNobody", "_PyNobody", "_Py_Deal", "PyArg", "Pyrite", "py_small", "P", "_P", "_"]


def test_the_limited_api_of_python(tmp_path):
    (tmp_path / "python.s").write_text(asm(limited_api()))
    run("gcc", "-shared", "-nostdlib", "python.s", "-o", "python.so", cwd=tmp_path)
    peer = kernel_abi_check.ObjectFile(str(tmp_path / "python.so"))
    for minor in range(2, 16):
        (findings,) = check(tmp_path / "python.so", "--python", f"3.{minor}")
        errors = [f for f in findings if f["about"] == "python" and f["level"] == "error"]
        ours = {(name, f["value"]) for f in errors for name in f["items"]}
        theirs = {(v.name, re.sub(r"\.0$", "", v.version_added) if hasattr(v, "version_added") else "") for v in peer.check_python_abi(f"3.{minor}")}
        assert ours == theirs
    assert len(theirs) == 5


def test_libraries_for_macos(tmp_path):
    """The peer doesn't read LC_VERSION_MIN_MACOSX, which linkers wrote before macOS 10.14: it misses a version there."""
    names = limited_api()[::40] + limited_api()[-9:]
    versions = [("11.0", None), ("14.6", None), ("15.0", None), ("15.1", None), ("26.0", None), (None, None), (None, "10.13"), ("13.0", "10.13")]
    paths = {}
    for arch in objects.CPUS:
        for minos, old in versions:
            path = tmp_path / f"{arch}-{minos}-{old}.dylib"
            path.write_bytes(objects.macho(arch, minos=minos, old_minos=old, undefined=names, paths=["@loader_path"], name="k.dylib"))
            paths[path] = 0 if old and not minos else 1
    for macos, python in ("11.0", "3.2"), ("14.6", "3.8"), ("15.0", "3.9"), ("26.0", "3.13"):
        for (path, weight), findings in zip(paths.items(), check(*paths, "--macos", macos, "--python", python), strict=True):
            peer = kernel_abi_check.ObjectFile(str(path))
            errors = [f for f in findings if f["level"] == "error"]
            assert len([f for f in errors if f["about"] == "macos"]) == weight * len(peer.check_macos(macos)), (path, macos)
            assert {name for f in errors if f["about"] == "python" for name in f["items"]} == {v.name for v in peer.check_python_abi(python)}


def real_libraries():
    stage = pathlib.Path(os.environ["KHUB_STAGE"])
    return [*sorted(stage.glob("share/khub/kernels/khub/*/build/*/*.so")), stage / "lib" / "libkhub.so", stage / "lib" / "libtvm_ffi.so",
            *sorted(pathlib.Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos").glob("*/build/*/*.so")), *sorted(PEER.glob("*.so"))]


def test_real_libraries():
    """The built-in kernels, tests/fake, libkhub, libtvm_ffi, the peer itself."""
    found = 0
    for level, python in ("manylinux_2_17", "3.2"), ("manylinux_2_28", "3.9"), ("manylinux_2_34", "3.12"):
        for library, findings in zip(real_libraries(), check(*real_libraries(), "--manylinux", level, "--python", python), strict=True):
            peer = kernel_abi_check.ObjectFile(str(library))
            errors = [f for f in findings if f["level"] == "error"]
            ours = {(f["value"], name) for f in errors if f["about"] == "manylinux" for name in f["items"]}
            if not is_stripped(library):
                assert ours == {(f"{v.dep}_{v.version}", v.name) for v in peer.check_manylinux(level)}, library
                assert {name for f in errors if f["about"] == "python" for name in f["items"]} == {v.name for v in peer.check_python_abi(python)}
            found += len(ours)
    assert found > 20


def is_stripped(library):
    """The peer sees no symbols then."""
    return ".symtab" not in run("readelf", "-SW", library)
