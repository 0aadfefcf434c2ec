"""khub variants as a whole process, on a repository of 200 builds: at most 3 ms where no accelerator library is there.

Beside it the least that any process costs (/bin/true), and the same question to the Python package `kernels`, where this Python
has it. Prints best and median."""

import importlib.util
import itertools
import os
import statistics
import sys
import tempfile
import time

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
PEER = """import sys, pathlib
from kernels.variants import get_variants_local, resolve_variants
print(len(resolve_variants(get_variants_local(pathlib.Path(sys.argv[1]) / "build"), "cpu")[1]))"""


def names():
    """200 names as a popular kernel has them: several Torch and CUDA versions, both CPUs, some for tvm-ffi."""
    frameworks = ["torch28-cxx11", "torch29-cxx11", "torch210", "torch211", "torch-stable-abi29", "tvm-ffi01"]
    backends = ["cpu", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "rocm63", "rocm64", "rocm70", "rocm71",
                "xpu20251", "xpu20252", "xpu20253", "cann82", "cann85"]
    every = ["-".join(parts) for parts in itertools.product(frameworks, backends, ["x86_64", "aarch64"], ["linux"])]
    return every[-200:]


def run(command, null):
    start = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, (command, status)
    return (time.perf_counter_ns() - start) / 1e6


def measure(what, command, runs, null):
    for _ in range(3):
        run(command, null)
    times = [run(command, null) for _ in range(runs)]
    print(f"{what:44}  best {min(times):8.2f} ms   median {statistics.median(times):8.2f} ms   ({runs} runs)")


def main():
    with tempfile.TemporaryDirectory() as where, open(os.devnull, "w") as null:
        for name in names():
            os.makedirs(os.path.join(where, "build", name))
        with open(os.path.join(where, "machine.json"), "w") as file:
            file.write('{"os": "linux", "arch": "x86_64", "backend": "cpu", "tvm_ffi": "0.1"}')
        null = null.fileno()
        measure("/bin/true", ["/bin/true"], 500, null)
        measure("khub --version", [KHUB, "--version"], 500, null)
        described = [KHUB, "variants", where, "--platform", os.path.join(where, "machine.json")]
        measure("khub variants, 200 builds", [KHUB, "variants", where, "--backend", "cpu"], 500, null)
        measure("khub variants, 200 builds, described machine", described, 500, null)
        if importlib.util.find_spec("kernels"):
            measure("kernels (Python), 200 builds", [sys.executable, "-c", PEER, where], 5, null)


main()
