"""From the start of a process to the first result of a Torch kernel on the CPU (tests/torch_kernels): khub call, beside Python's import torch with
the same call, and beside a program that does nothing but have libtorch_cpu in its process. Goal: at most 0.35 s. Peak memory is the process's; khub's own, without a Torch kernel, stands beside it.

Then a model whose layers PyTorch's operators and khub's own do in turns, on all processors: with libtorch's threads asleep between operators, as khub embed has them, and
looking for work, as OpenMP has them by itself. Processor seconds tell what that costs whatever else the machine does."""

import os
import pathlib
import statistics
import sys
import tempfile
import time

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
REPOS = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "torch", "repos")
TORCH = os.environ["KHUB_TORCH"]
ROUNDS = 15
ALONE = "/bin/true with libtorch_cpu"
PYTHON = """
import sys, numpy, torch
torch.ops.load_library(sys.argv[1])
with torch.no_grad():
    print(torch.ops._stable_cpu_7357000.twice(torch.from_numpy(numpy.load(sys.argv[2]))))
"""


def run(command, null, **env):
    """Seconds and MB."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, {**os.environ, "KHUB_TORCH_DIR": TORCH, **env}, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (command, status)
    return time.perf_counter() - start, usage.ru_maxrss * 1024 / 1e6


def model(folder, null):
    """No other --threads than the processors are."""
    lines = os.path.join(folder, "lines.txt")
    pathlib.Path(lines).write_text("a sentence of some words that is neither short nor long " * 4 + "\n" + "another one\n" * 31)
    processors = len(os.sched_getaffinity(0))
    command = [KHUB, "-q", "embed", "--model", os.environ["KHUB_MODEL"], "--file", lines, "--standard"]
    ways = {
        "khub's own layers": (["khub", "--threads", str(processors)], {}),
        "PyTorch's, one thread": (["torch", "--threads", "1"], {}),
        "PyTorch's": (["torch", "--threads", str(processors)], {}),
        "PyTorch's, OMP_WAIT_POLICY=active": (["torch", "--threads", str(processors)], {"OMP_WAIT_POLICY": "active"}),
    }
    taken = {name: [] for name in ways}
    for _ in range(5):
        for name, (more, env) in ways.items():
            before = os.times()
            seconds, _ = run([*command, *more], null.fileno(), **env)
            after = os.times()
            taken[name].append((seconds, after.children_user + after.children_system - before.children_user - before.children_system))
    print(f"\n32 texts by a model of 6 layers, {processors} threads\n{'':34}{'best':>8}{'median':>9}{'processor, best':>17}")
    for name, all in taken.items():
        times = [t for t, _ in all]
        print(f"{name:34}{min(times):7.3f}s{statistics.median(times):8.3f}s{min(p for _, p in all):16.3f}s")


def main():
    import numpy

    if not (REPOS.is_dir() and os.path.isdir(TORCH)):
        print("not measured: the Torch kernels of the tests aren't built (./dev test builds them)")
        return
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as null:
        x = os.path.join(folder, "x.npy")
        numpy.save(x, numpy.ones((1, 8), "float32"))
        (library,) = (REPOS / "stable").glob("build/*/*.so")
        ways = {
            "khub call, built-in kernel": [KHUB, "call", "khub/activation:relu", "out=float32[1,8]", x, "-o", folder],
            "khub call, Torch kernel": [KHUB, "call", f"{REPOS / 'stable'}:twice", x, "-o", folder],
            "khub call, Torch kernel, -z now": [KHUB, "call", f"{REPOS / 'full'}:relu", x, "-o", folder],
            "Python, import torch": [sys.executable, "-c", PYTHON, str(library), x],
        }
        taken = {name: [] for name in [*ways, ALONE]}
        for round in range(ROUNDS + 1):  # the first brings the files into memory
            for name, command in ways.items():
                if round < 6 or "Python" not in name:
                    taken[name].append(run(command, null.fileno()))
            taken[ALONE].append(run(["/bin/true"], null.fileno(), LD_PRELOAD=f"{TORCH}/lib/libtorch_cpu.so"))
        print(f"{'':34}{'best':>8}{'median':>9}{'memory':>10}")
        for name, all in taken.items():
            times = [t for t, _ in all[1:]]
            print(f"{name:34}{min(times):7.3f}s{statistics.median(times):8.3f}s{min(m for _, m in all):7.0f} MB")
        model(folder, null)


main()
