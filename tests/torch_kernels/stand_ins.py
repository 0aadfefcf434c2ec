"""Python's torch without the gigabytes of CUDA that it is linked with: `python stand_ins.py TORCH DIRECTORY`.

`import torch` loads the CUDA half of libtorch, which needs cuBLAS, cuDNN, NCCL and more. On a CPU nothing of them is called, so libraries do that
have their names and the symbols that are asked for, with their versions, and in which every function returns 0. They are made in
DIRECTORY by the C compiler; with LD_LIBRARY_PATH=DIRECTORY and the folder of TORCH on Python's path, torch can be imported."""

import collections
import pathlib
import re
import subprocess
import sys

ASKING = "libtorch_python.so", "libtorch_cuda.so", "libtorch_nvshmem.so"  # what `import torch` loads
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux.*)\.so.*")
UNVERSIONED = re.compile("nccl|cuFile|cusparseLt")  # symbols of libraries that have no versions; one of them has all


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def versions(library):
    """What the library asks for by version: {version: library that has it}."""
    found, file = {}, None
    for line in run("readelf", "-VW", library).splitlines():
        if match := re.search(r"File: (\S+)", line):
            file = match[1]
        elif (match := re.search(r"Name: (\S+)", line)) and file:
            found[match[1]] = file
    return found


def make_one(directory, name, symbols):
    """`symbols` is {version: names}."""
    every = sorted(set().union(*symbols.values()))
    source, script = directory / "source.s", directory / "versions"
    source.write_text("".join(f".globl {s}\n{s}:\n" for s in every) + "xorl %eax, %eax\nret\n.skip 4096\n.section .note.GNU-stack\n")
    script.write_text("".join(f"{v} {{ {' '.join(f'{s};' for s in sorted(names))} }};\n" for v, names in symbols.items() if v))
    versioned = [f"-Wl,--version-script={script}"] if any(symbols) else []
    run("cc", "-shared", "-nostdlib", "-o", directory / name, source, f"-Wl,-soname,{name}", *versioned)


def make(torch, directory):
    directory.mkdir(parents=True, exist_ok=True)
    asking = [torch / "lib" / name for name in ASKING]
    there = {p.name for p in [*(torch / "lib").iterdir(), *torch.parent.glob("nvidia/*/lib/*")]}
    needed = {n for library in asking for n in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library))}
    needed = {n for n in needed - there if not SYSTEM.fullmatch(n)}
    of_version = {v: file for library in asking for v, file in versions(library).items() if file in needed}
    symbols = {name: collections.defaultdict(set) for name in needed}
    spare = min((n for n in needed if n not in of_version.values()), default=None)
    for library in asking:
        for line in run("nm", "-D", "--undefined-only", library).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            if version in of_version:
                symbols[of_version[version]][version].add(symbol)
            elif not version and spare and UNVERSIONED.match(symbol):
                symbols[spare][""].add(symbol)
    for name in needed:
        make_one(directory, name, symbols[name])


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
