"""The folders of src/ are the dependency graph: each uses only what stands before it."""
import re

import pytest
from house import PUBLIC_HEADERS, SOURCE, sources

ORDER = ["base", "platform", "variant", "tensor", "torch", "numerics", "hub", "cache", "trust", "fetch", "kernel", "gpu", "publish", "layer", "ops", "model", "measure", "serve"]

# The folder that implements each public header: a folder may use those of the folders before it.
HOME = {
    "export": "base", "error": "base", "memory": "base", "log": "base",
    "platform": "platform", "variant": "variant",
    "tensor": "tensor", "npy": "tensor", "function": "tensor", "numerics": "numerics",
    "hub": "hub", "cache": "cache", "signature": "trust", "trust": "trust", "lock": "kernel", "verify": "kernel", "kernel": "kernel", "gpu": "gpu", "check": "publish", "pack": "publish", "sbom": "publish",
    "mapping": "layer", "layer": "layer", "khub": "layer",
    "standard": "ops", "tokenizer": "model", "model": "model", "compare": "measure", "bench": "measure",
}

C_STANDARD = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
    stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split())


# Beside the C library: what src/ is built on, and the compiler's own headers, which go by processor and not by system.
LIBRARIES = ["jansson", "utf8proc", "cpuid", "immintrin", "arm_neon", "microhttpd", "git2", "curl/curl", "libelf", "gelf"]


def includes(path):
    text = re.sub(r"/\*.*?\*/", " ", (SOURCE / path).read_text(), flags=re.S)
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, flags=re.M)


def before(folder):
    return ORDER[: ORDER.index(folder) + 1]


def is_system(path):
    return re.search("/(posix|linux|darwin|windows|not_linux)/", path) is not None


def fault_in_library(folder, quote, name, in_system=False):
    """What is wrong with this include in a file of src/FOLDER, or of its folders per system; None when nothing is."""
    if quote == "<":
        public = re.fullmatch(r"khub/(\w+)\.h", name)
        if public and HOME[public[1]] not in before(folder):
            return f"<{name}> belongs to {HOME[public[1]]}, which stands after {folder}"
        return None
    if not (SOURCE / "src" / name).is_file():
        return f'"{name}" is no file of src/'
    if name.split("/")[0] not in before(folder):
        return f'"{name}" stands after {folder}'
    if is_system(name) and not (in_system and name.startswith(folder + "/")):
        return f'"{name}": what differs by system is reached through a header beside its folder'
    return None


def test_every_folder_has_a_place():
    folders = {p.name for p in (SOURCE / "src").iterdir() if p.is_dir()}
    assert folders == set(ORDER) | {"cli"}
    assert {p.stem for p in PUBLIC_HEADERS} == set(HOME)


@pytest.mark.parametrize("folder", ORDER)
def test_library_folder(folder):
    faults = []
    for path in sources(f"src/{folder}"):
        for quote, name in includes(path):
            fault = fault_in_library(folder, quote, name, is_system(str(path)))
            if fault:
                faults.append(f"{path}: {fault}")
    assert not faults, "\n".join(faults)


def test_the_check_finds_faults():
    assert fault_in_library("base", '"', "tensor/array.h")
    assert fault_in_library("tensor", "<", "khub/layer.h")
    assert fault_in_library("layer", '"', "base/posix/file.c")
    assert fault_in_library("layer", '"', "kernel/posix/elf.h", in_system=True)
    assert fault_in_library("layer", '"', "array.h")
    assert not fault_in_library("layer", '"', "tensor/array.h")


def test_command_uses_public_headers_only():
    faults = []
    for path in sources("src/cli"):
        for quote, name in includes(path):
            if quote == '"' and not (SOURCE / "src/cli" / name).is_file():
                faults.append(f'{path}: "{name}"')
    assert not faults, "\n".join(faults)


def fault_of_system(path, quote, name):
    """What is wrong with this include where `path` isn't for one operating system alone; None when nothing is."""
    known = quote == '"' or name.startswith("khub/") or name.removesuffix(".h") in [*C_STANDARD, *LIBRARIES]
    return None if known or is_system(path) else f"<{name}>: what differs by system sits in a folder per system (posix/, linux/)"


def test_system_headers_stay_in_the_folders_per_system():
    faults = []
    for path in sources("src"):
        faults += [f"{path}: {f}" for quote, name in includes(path) if (f := fault_of_system(str(path), quote, name))]
    assert not faults, "\n".join(faults)


def test_the_check_of_systems_finds_faults():
    for name in "unistd.h", "dlfcn.h", "pthread.h", "strings.h", "sys/stat.h", "windows.h":
        assert fault_of_system("src/kernel/machine.c", "<", name)
        assert not fault_of_system("src/kernel/posix/machine.c", "<", name)
    for name in "stdio.h", "threads.h", "jansson.h", "khub/khub.h":
        assert not fault_of_system("src/kernel/machine.c", "<", name)


def test_public_headers_need_the_c_library_alone():
    for path in PUBLIC_HEADERS:
        for quote, name in includes(path.relative_to(SOURCE)):
            known = name.startswith("khub/") or name.removesuffix(".h") in C_STANDARD
            assert quote == "<" and known, f"{path.name}: {name}"


def test_kernels_stand_alone():
    """A built-in kernel is built like anybody's: tvm-ffi's C headers, the C library, its own files."""
    for path in sources("kernels") if list((SOURCE / "kernels").rglob("*.c")) else []:
        for quote, name in includes(path):
            if quote == '"':
                assert not (SOURCE / "src" / name).is_file(), f'{path}: "{name}"'
            else:
                assert not name.startswith("khub/"), f"{path}: <{name}>"
