"""khub check: each thing that can be wrong, and that nothing is said where nothing is. What kernel-abi-check looks at too is in
tests/oracle/test_check.py."""
import base64
import hashlib
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import objects
from fakes import REPOS, VARIANT, build_of, copy, khub, library_of

CUDA = VARIANT.replace("cpu", "cu128")


def check(*arguments, load=False):
    """What is found, for all names together: [(file, about, level, value, words, items)…]."""
    run = khub("check", "--json", *(() if load else ("--no-load",)), *arguments)
    assert run.returncode in (0, 1) and (load or run.stderr == ""), run.stderr
    answer = json.loads(run.stdout)
    found = [f for c in answer["checks"] for f in c["findings"]]
    assert answer["errors"] == sum(f["level"] == "error" for f in found) and answer["warnings"] == sum(f["level"] == "warning" for f in found)
    assert run.returncode == (answer["errors"] > 0)
    return found


def faults(found):
    """{(about, value)} of errors and warnings."""
    return {(f["about"], f["value"]) for f in found if f["level"] != "note"}


def of(found, about):
    return [f for f in found if f["about"] == about]


def build(folder, variant=VARIANT, metadata=(), layers=None, library=None, digest=False):
    """A build whose library is that of `good`, or the bytes given."""
    to = folder / "build" / variant
    to.mkdir(parents=True)
    data = {"name": "good", "id": "_good_cpu_fa4e000", "version": 1, "license": "MIT", "backend": {"type": "cuda" if "-cu" in variant else "cpu"}, "python-depends": [], **dict(metadata)}
    (to / f"{data['id']}.so").write_bytes(library_of("good").read_bytes() if library is None else library)
    if layers is not None:
        (to / "layers.json").write_text(json.dumps({"layers": layers}))
    if digest:
        data["digest"] = {"algorithm": "sha256", "files": {p.name: base64.b64encode(hashlib.sha256(p.read_bytes()).digest()).decode() for p in to.iterdir()}}
    (to / "metadata.json").write_text(json.dumps({k: v for k, v in data.items() if v is not None}))
    return to


def test_what_is_installed_has_no_fault():
    names = [f"khub/{n}" for n in ("activation", "attention", "linear", "norm", "quantized", "rotary", "softmax")]
    # of builds for CUDA, where there are any, test_kernels_files.py says which glibc they take, and why
    found = [f for f in check(*names, load=True) if not ("_cuda_" in f["file"] and f["about"] == "manylinux")]
    assert faults(found) == ({("undefined", "sanitizer")} if os.environ["KHUB_SANITIZE"] == "1" else set())
    assert {f["value"] for f in of(found, "load")} == {"loaded"} and {f["value"] for f in of(found, "manylinux")} <= {"manylinux_2_17", "manylinux_2_5"}


def test_functions_are_those_of_the_symbol_table():
    (static,), (loaded,) = (of(check(REPOS / "good", load=True), about) for about in ("functions", "load"))
    nm = subprocess.run(["nm", "-D", "--defined-only", library_of("good")], capture_output=True, text=True, check=True).stdout.split()
    assert static["items"] == loaded["items"] == sorted(n.removeprefix("__tvm_ffi_") for n in nm if n.startswith("__tvm_ffi_") and not n.startswith("__tvm_ffi__"))


def test_a_table_for_people():
    run = khub("check", library_of("needs_nobody"), "--no-load")
    lines = run.stdout.splitlines()
    assert run.returncode == 1 and lines[0] == str(library_of("needs_nobody")) and lines[-1] == "1 error, 0 warnings"
    assert lines[1].split() == "error undefined lacks symbols that nothing it needs has: nobody_has_this".split()
    assert all(line.split()[0] == "note" for line in lines[2:-1])


@pytest.mark.parametrize("name, value", [("abort_on_load", "SIGABRT"), ("exit_on_load", "exit"), ("crash_on_load", "SIGSEGV")])
def test_M3_a_kernel_that_ends_the_process(name, value):
    """khub goes on: the next name is checked."""
    found = check(REPOS / name, REPOS / "good", load=True)
    ended, good = of(found, "load")
    assert (ended["level"], ended["value"], good["value"]) == ("error", value, "loaded")
    assert "loading it ended the process" in ended["words"] and ("exit(3)" in ended["words"] or value in ended["words"])
    assert faults(check(REPOS / name)) == set()  # nothing of it runs when it isn't loaded


def test_what_does_not_load_here():
    found = check(REPOS / "needs_torch", REPOS / "needs_nobody", REPOS / "module", load=True)
    assert [(f["value"], f["level"]) for f in of(found, "load")] == [("refused", "note"), ("refused", "error"), ("refused", "note")]
    assert faults(found) == {("undefined", "torch"), ("undefined", "nobody"), ("load", "refused"), ("functions", "__tvm_ffi__library_ctx")}


def test_B3_all_that_is_missing_in_one_message(tmp_path):
    texts = {"a": '{"version":1,"license":"MIT","python-depends":[],"more":1}',
             "b": '{"name":"good","id":"_good","version":"1","license":"MIT","backend":{"type":"cpu"},"python-depends":[]}',
             "c": "", "d": "[" * 5_000_000, "e": '{"name":"\xff"}'}
    for name, text in texts.items():
        (build(tmp_path / name) / "metadata.json").write_bytes(text.encode("latin1"))
    found = of(check(*(tmp_path / name for name in texts)), "metadata")
    assert {f["level"] for f in found} == {"error"} and all(str(tmp_path) not in f["words"] for f in found)
    for f, words in zip(found, ["required and missing: name, id, backend (", '"version" is a string', "", "nested deeper than 64", "line 1: "], strict=True):
        assert f["words"].startswith(words), f


def test_metadata_against_the_rest(tmp_path):
    build(tmp_path / "r", metadata={"backend": {"type": "rocm", "archs": ["gfx9", "gfx90a"]}, "name": "other", "provenance": {"kernel": {"commit": "c0", "dirty": True}}})
    assert faults(check(tmp_path / "r")) == {("backend", "rocm"), ("archs", "gfx9"), ("archs", None), ("id", "_good_cpu_fa4e000"), ("provenance", "c0")}
    build(tmp_path / "s")
    build(tmp_path / "s", variant=VARIANT.replace("01", "02"), metadata={"version": 2, "license": "BSD"})
    build(tmp_path / "s", variant="someday-x")
    found = check(tmp_path / "s")
    assert faults(found) == {("builds", "version"), ("builds", "license"), ("builds", "id"), ("variant", "someday-x")}
    assert f"in {tmp_path}/s/build/someday-x it is 1" in [f["words"] for f in found if f["value"] == "version"][0]


def test_the_digest(tmp_path):
    to = build(tmp_path / "r", digest=True)
    assert not of(check(tmp_path / "r"), "digest")
    (to / "_good_cpu_fa4e000.so").write_bytes(library_of("cxx").read_bytes())
    (to / "more.txt").write_text("")
    assert {f["value"] for f in of(check(tmp_path / "r"), "digest")} == {"_good_cpu_fa4e000.so", "more.txt"}


def test_layers_and_names(tmp_path):
    to = build(tmp_path / "r", layers={"ReLU": {"function": "add_one"}, "GeLU": {"function": "none"}, "Linear": {"function": "scale", "args": ["out", "x", "weight"], "prepare": {"weight": "pack"}}})
    (to / "_good_cpu_fa4e000.so").rename(to / "lib.so")
    found = check(tmp_path / "r")
    assert faults(found) == {("layers", "none"), ("layers", "pack"), ("id", "lib.so")}
    (to / "layers.json").write_text('{"layers": 1}')
    assert faults(check(to)) == {("layers", None), ("id", "lib.so")}
    module = objects.elf(tmp_path / "m.so", ".globl PyInit__good_cpu\nPyInit__good_cpu: .quad 0\n.globl __tvm_ffi_f\n__tvm_ffi_f: .quad 0\n").read_bytes()
    build(tmp_path / "m", library=module)
    assert faults(check(tmp_path / "m")) == {("id", "PyInit__good_cpu")}


def made(folder, name, text="", *options):
    return objects.elf(folder / name, ".globl f\nf: .quad 0\n" + text, *options)


def test_what_the_loader_must_do(tmp_path):
    if platform.machine() != "x86_64":
        return
    made(tmp_path, "textrel.so", ".text\n.globl g\ng: movabs $f, %rax\n", "-Wl,-z,notext")
    made(tmp_path, "stack.so", "", "-Wl,-z,execstack")
    made(tmp_path, "norelro.so", "", "-Wl,-z,norelro")
    made(tmp_path, "rwx.so", '.section .x,"awx"\n.quad 0\n', "-Wl,-N")
    made(tmp_path, "full.so", ".globl g\ng: call puts@PLT\n", "-Wl,-z,relro,-z,now")
    made(tmp_path, "constructors.so", '.section .init_array,"aw"\n.quad f\n.quad f\n.quad f\n')
    found = {pathlib.Path(f["file"]).name: set() for f in check(tmp_path)}
    for f in check(tmp_path):
        found[pathlib.Path(f["file"]).name].add((f["about"], f["level"]))
    assert ("textrel", "error") in found["textrel.so"] and ("execstack", "error") in found["stack.so"] and ("relro", "warning") in found["norelro.so"]
    assert ("wx", "warning") in found["rwx.so"] and not {("relro", "note"), ("relro", "warning")} & found["full.so"]
    assert ("constructors", "note") in found["constructors.so"] and ("constructors", "note") not in found["full.so"]
    assert [name for name in found if ("textrel", "error") in found[name]] == ["textrel.so"]
    assert [name for name in found if ("execstack", "error") in found[name]] == ["stack.so"]


def test_a_library_that_hangs_ends_with_the_check(tmp_path):
    if platform.machine() != "x86_64":
        return
    hangs = """.text
start: mov $1, %eax; mov $2, %edi; lea said(%rip), %rsi; mov $1, %edx; syscall
wait: mov $34, %eax; syscall; jmp wait
said: .ascii "!"
.section .init_array,"aw"
.quad start
"""
    command = [pathlib.Path(os.environ["KHUB_STAGE"], "bin", "khub"), "check", made(tmp_path, "hangs.so", hangs)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as run:
        try:
            assert run.stderr.read(1) == b"!"
            run.kill()
            assert run.communicate(timeout=30)[1] == b""  # its end comes when the last process that has it is gone
        finally:
            try:
                os.killpg(run.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def test_libraries_and_where_they_are_looked_for(tmp_path):
    links = tmp_path / "links"  # nothing that is linked with stands beside the library, but for what is put there
    links.mkdir()
    names = ("libbeside.so", "libbelow.so", "libelsewhere.so", "libcudart.so.12", "libtorch_cpu.so", "libpython3.11.so.1.0", "libgomp.so.1", "libm.so.6", "libcuda.so.1")
    everything = ["-Wl,--no-as-needed", *(made(links, name, "", f"-Wl,-soname,{name}") for name in names)]

    def library(variant, *options):
        to = tmp_path / variant
        to.mkdir()
        (to / "lib").mkdir()
        shutil.copy(links / "libbeside.so", to)
        shutil.copy(links / "libbelow.so", to / "lib")
        return made(to, "k.so", "", *everything, *options)

    here = library(VARIANT, "-Wl,-rpath,$ORIGIN:${ORIGIN}/lib")
    never = {("needed", "libelsewhere.so"), ("needed", "libpython3.11.so.1.0")}
    assert faults(check(here)) == never | {("needed", n) for n in ("libcudart.so.12", "libtorch_cpu.so", "libgomp.so.1", "libcuda.so.1")}
    assert faults(check(library(CUDA, "-Wl,-rpath,$ORIGIN:$ORIGIN/lib"))) == never | {("needed", "libtorch_cpu.so"), ("needed", "libgomp.so.1")}
    torch = VARIANT.replace("tvm-ffi01", "torch210-cxx11")
    found = check(library(torch, "-Wl,-rpath,/opt/x:$ORIGIN/../lib::$ORIGIN,--disable-new-dtags"))
    assert faults(found) == never | {("needed", "libcudart.so.12"), ("needed", "libcuda.so.1"), ("needed", "libbelow.so"), ("rpath", "/opt/x"),
                                     ("rpath", "$ORIGIN/../lib"), ("rpath", ""), ("rpath", None)}
    found = check(library(torch.replace("cpu", "cu128")))
    assert faults(found) == never | {("needed", "libbeside.so"), ("needed", "libbelow.so")}
    assert {("needed", "libaux.so"), ("needed", "libfilter.so")} == faults(check(made(tmp_path, "k.so", "", "-Wl,--auxiliary,libaux.so")) + check(made(tmp_path, "l.so", "", "-Wl,-F,libfilter.so")))
    assert "-rpath '$ORIGIN'" in [f for f in found if f["value"] == "libbeside.so"][0]["words"]


def test_symbols_of_a_build(tmp_path):
    text = objects.symbols(["aoti_torch_get_dim", "torch_call_dispatcher", "torch_from_blob", "torch_of_tomorrow", "torch_tensor_to_pyobject", "_ZN2at6Tensor3addEv", "_ZN5torch6stable6TensorD1Ev", "PyErr_Occurred"])
    library = made(tmp_path, "k.so", text).read_bytes()
    build(tmp_path / "stable", variant=VARIANT.replace("tvm-ffi01", "torch-stable-abi210"), library=library)
    build(tmp_path / "torch", variant=VARIANT.replace("tvm-ffi01", "torch210"), library=library)
    build(tmp_path / "tvm", library=library)
    found = [check(tmp_path / name) for name in ("stable", "torch", "tvm")]
    assert faults(found[0]) == {("torch", "2.11"), ("torch", "2.14"), ("torch", ""), ("torch", "?")}
    assert {name for f in of(found[0], "torch") for name in f["items"]} == {"torch_from_blob", "torch_of_tomorrow", "torch_tensor_to_pyobject", "_ZN2at6Tensor3addEv"}
    assert faults(found[1]) == {("torch", "?")} and ("2.14", "note") in {(f["value"], f["level"]) for f in of(found[1], "torch")}
    assert faults(found[2]) == {("torch", "?"), ("undefined", "torch"), ("undefined", "torch-stable"), ("undefined", "python"), ("functions", None)}
    assert faults(check(tmp_path / "k.so", "--torch", "2.9")) == {("torch", "2.10"), ("torch", "2.11"), ("torch", "2.14"), ("torch", ""), ("torch", "?")}


def test_libdl_without_needing_it(tmp_path):
    found = check(made(tmp_path, "k.so", objects.symbols(["dlopen", "pthread_create"])))
    assert [(f["about"], f["level"], f["items"]) for f in found if f["level"] != "note"] == [("undefined", "warning", ["dlopen", "pthread_create"])]


def test_gpu_code_against_metadata(tmp_path):
    binary = objects.fat_binary(objects.fat_entry(80), objects.fat_entry(90, suffix="a", extra=48), objects.fat_entry(90), objects.fat_entry(90, ptx=True))
    binary += objects.fat_binary(objects.fat_entry(120, suffix="f"), objects.fat_entry(80))
    library = made(tmp_path, "k.so", ".globl __tvm_ffi_f\n__tvm_ffi_f: .quad 0\n" + objects.section(".nv_fatbin", binary)).read_bytes()

    def archs(name, *entries, variant=CUDA, kind="cuda"):
        build(tmp_path / name, variant=variant, library=library, metadata={"backend": {"type": kind, "archs": list(entries)}})
        return check(tmp_path / name)

    found = archs("all", "8.0", "9.0a", "9.0+PTX", "12.0f")
    assert faults(found) == set() and of(found, "archs")[0]["items"] == ["8.0", "9.0a", "9.0", "PTX 9.0", "12.0f"]
    assert faults(archs("more", "7.5", "8.0+PTX", "9.0a", "9.0+PTX", "12.0f")) == {("archs", "7.5"), ("archs", "8.0+PTX")}
    found = archs("less", "8.0", "9.0", "9.0a")
    assert faults(found) == {("archs", "9.0"), ("archs", "12.0f")} and {f["level"] for f in of(found, "archs")} == {"note", "warning"}
    assert faults(archs("cpu", variant=VARIANT, kind="cpu")) == {("archs", "cpu")}
    assert faults(archs("none")) == {("archs", None)}
    hip = made(tmp_path, "h.so", objects.section(".hip_fatbin", objects.hip_bundle("gfx90a:xnack+", "gfx1100"))).read_bytes()
    assert of(check(tmp_path / "h.so"), "archs")[0]["items"] == ["gfx90a:xnack+", "gfx1100"]
    build(tmp_path / "hip", variant=VARIANT.replace("cpu", "rocm71"), library=hip, metadata={"backend": {"type": "rocm", "archs": ["gfx90a", "gfx942"]}})
    assert faults(check(tmp_path / "hip")) == {("archs", "gfx942"), ("archs", "gfx1100"), ("functions", None)}


def test_mach_o(tmp_path):
    darwin = tmp_path / "tvm-ffi01-metal-aarch64-darwin"
    darwin.mkdir()
    (darwin / "libbeside.dylib").write_bytes(objects.macho(name="@rpath/libbeside.dylib"))
    needed = ("/usr/lib/libSystem.B.dylib", "/System/Library/Frameworks/Metal.framework/Metal", "@rpath/libbeside.dylib", "@rpath/libtvm_ffi.dylib", "@loader_path/libbeside.dylib")
    (darwin / "good.dylib").write_bytes(objects.macho(needed=needed, name="@rpath/good.dylib", paths=["@loader_path"], undefined=[("puts", 1), "TVMFFIErrorCreate"], defined=["__tvm_ffi_f"]))
    assert faults(check(darwin / "good.dylib")) == set()
    bad = [*needed, "/opt/homebrew/lib/libomp.dylib", "/Library/Frameworks/Python.framework/Versions/3.11/Python", "@rpath/libtorch.dylib", "@rpath/libnone.dylib"]
    (darwin / "bad.dylib").write_bytes(objects.macho(needed=bad, name="/opt/bad.dylib", paths=["/opt/lib"], minos="26.0", signed=False, constructors=3, flags=0x20085, undefined=["_ZN2at6Tensor3addEv"]))
    found = check(darwin / "bad.dylib")
    assert faults(found) == {("needed", n) for n in bad[-4:]} | {("needed", "@rpath/libbeside.dylib"), ("rpath", "/opt/lib"), ("macos", "26.0"), ("codesign", None),
                                                                ("name", "/opt/bad.dylib"), ("execstack", None), ("undefined", "torch")}
    assert of(found, "constructors")[0]["words"].startswith("3 constructors run")
    (darwin / "two.dylib").write_bytes(objects.universal(objects.macho("x86_64", minos=None), objects.macho()))
    shutil.copy(darwin / "two.dylib", tmp_path)
    assert faults(check(darwin / "two.dylib")) == set()
    found = check(tmp_path / "two.dylib", "--macos", "13.5")
    assert [(f["file"].split()[-1], f["about"], f["value"]) for f in found if f["level"] == "error"] == [("(x86_64)", "macos", None), ("(aarch64)", "macos", "14.0")]
    (tmp_path / "other.dylib").write_bytes(objects.macho("x86_64", minos=None, old_minos="10.15"))
    shutil.copy(tmp_path / "other.dylib", darwin)
    assert faults(check(darwin / "other.dylib")) == {("target", "x86_64")} and faults(check(tmp_path / "other.dylib")) == set()


def test_pe(tmp_path):
    windows = tmp_path / "torch-stable-abi210-cu128-x86_64-windows"
    windows.mkdir()
    (windows / "beside.dll").write_bytes(objects.pe(exports=["f"]))
    good = {"KERNEL32.dll": ["Sleep"], "VCRUNTIME140.dll": ["memcpy"], "api-ms-win-crt-heap-l1-1-0.dll": ["free"], "python3.dll": ["PyErr_Occurred"], "torch_cpu.dll": ["torch_call_dispatcher"],
            "cudart64_12.dll": ["cudaMalloc"], "nvcuda.dll": ["cuInit"], "beside.dll": ["f"]}
    (windows / "good.pyd").write_bytes(objects.pe(imports=good, exports=["PyInit_good"]))
    found = check(windows / "good.pyd")
    assert faults(found) == set() and of(found, "needed")[0]["items"] == list(good)
    assert {f["value"] for f in of(found, "undefined")} == {"KERNEL32.dll", "VCRUNTIME140.dll", "api-ms-win-crt-heap-l1-1-0.dll", "python", "torch", "cuda", "nvidia-driver", "beside.dll"}
    (windows / "bad.dll").write_bytes(objects.pe("aarch64", imports={"python311.dll": ["PyFrame_New"], "tvm_ffi.dll": ["TVMFFIErrorCreate"]}, delayed={"other.dll": ["x"]}, flags=0,
                                                section_flags=0xE0000040))
    assert faults(check(windows / "bad.dll")) == {("target", "aarch64"), ("needed", "python311.dll"), ("needed", "tvm_ffi.dll"), ("needed", "other.dll"), ("undefined", "tvm-ffi"),
                                                  ("execstack", None), ("relocation", None), ("wx", None), ("python", "")}


def test_what_is_no_library(tmp_path):
    whole = library_of("good").read_bytes()
    files = {"empty.so": (b"", "is empty"), "lfs.so": (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"), "text.so": (b"hello", "is no library"),
             "java.so": (b"\xca\xfe\xba\xbe\0\0\0\x41", "is no library"), "cut.so": (whole[:5000], "truncated"), "head.so": (whole[:40], "damaged"), "elf32.dylib": (b"\xce\xfa\xed\xfe", "32 bits"),
             "dos.dll": (b"MZ" + bytes(100), "DOS"), "object.so": (whole[:16] + b"\1\0" + whole[18:], "an object file"), "program.dylib": (objects.macho(kind=2), "no library"),
             "program.dll": (objects.pe(kind=2), "a program"), "cut.dylib": (objects.macho(undefined=["f"])[:-2], "symbols lie outside"),
             "imports.dll": (objects.pe(imports={"a.dll": ["f"]})[:0x210], "outside")}
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "broken.so").symlink_to("nowhere")
    (tmp_path / "folder.so").mkdir()
    files |= {"broken.so": (b"", ""), "folder.so": (b"", "")}
    found = {pathlib.Path(f["file"]).name: f for f in check(tmp_path)}
    assert {name: f["about"] for name, f in found.items()} == dict.fromkeys(files, "file")
    for name, (_, words) in files.items():
        assert words in found[name]["words"] and str(tmp_path) not in found[name]["words"], found[name]


def test_a_library_without_sections(tmp_path):
    """As the loader needs none; the symbols are then counted by the hash tables."""
    for style in "gnu", "sysv", "both":
        whole = made(tmp_path, f"{style}.so", ".globl __tvm_ffi_f\n__tvm_ffi_f: .quad 0\n" + objects.symbols(["nobody", "PyErr_Occurred"]), f"-Wl,--hash-style={style}")
        content = bytearray(whole.read_bytes())
        content[0x28:0x30], content[0x3C:0x40] = bytes(8), bytes(4)  # e_shoff; e_shnum, e_shstrndx
        bare = tmp_path / f"{style}-bare.so"
        bare.write_bytes(content)
        assert [{**f, "file": str(whole)} for f in check(bare)] == check(whole) and {("undefined", "nobody")} == faults(check(bare))
    content = bytearray(whole.read_bytes())
    table, size, count = (int.from_bytes(content[at:at + n], "little") for at, n in ((0x28, 8), (0x3A, 2), (0x3C, 2)))
    (dynsym,) = [at for at in range(table, table + size * count, size) if content[at + 4] == 11]
    content[dynsym + 0x20:dynsym + 0x28] = (24).to_bytes(8, "little")  # sh_size: one symbol
    bare.write_bytes(content)
    assert faults(check(bare)) == {("undefined", "nobody"), ("file", None)}


def test_without_libelf(tmp_path):
    """It is opened for the first ELF file; the others don't need it."""
    (tmp_path / "libelf.so.1").write_text("not a library")
    (tmp_path / "k.dylib").write_bytes(objects.macho())
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    run = khub("check", "--no-load", library_of("good"), env=env)
    assert run.returncode == 1 and run.stdout == "" and "ELF files can't be read without libelf (package libelf1)" in run.stderr
    assert khub("check", tmp_path / "k.dylib", env=env).returncode == 0


def test_names_that_are_nothing(tmp_path):
    for arguments, words, status in ((["./none.so"], "no such", 1), ([tmp_path], "neither build/", 1), (["--manylinux", "manylinux_1", library_of("good")], "manylinux_2_28", 2),
                                     (["--python", "three", library_of("good")], "three", 2), ([], "of which", 2)):
        run = khub("check", *arguments)
        assert words in run.stderr and run.stdout == "", run.stderr
        assert run.returncode == status, (arguments, run.returncode)


def test_alone_beside_and_as_a_build(tmp_path):
    """A file, its build, its repository and a folder of libraries say the same of a library."""
    to = copy("with_sibling", tmp_path / "r")
    file = check(to / "_with_sibling_cpu_fa4e000.so")
    for other in check(to), check(tmp_path / "r"):
        assert [f for f in other if f["file"].endswith("/_with_sibling_cpu_fa4e000.so") and f["about"] != "functions"] == [{**f, "file": str(to / "_with_sibling_cpu_fa4e000.so")} for f in file]
    (to / "libfakesibling.so").unlink()
    assert faults(check(build_of("with_sibling"))) == set() and faults(check(to)) == {("needed", "libfakesibling.so")}
