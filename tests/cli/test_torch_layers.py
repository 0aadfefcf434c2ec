"""Torch in the layers: its operators as the standard functions, and a kernel of it that serves."""
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np

from fakes import KHUB, PLAIN

MODEL = os.environ["KHUB_MODEL"]
FULL = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "torch" / "repos" / "full"
NO_TORCH = {**os.environ, **PLAIN, "KHUB_TORCH_DIR": "/nowhere"}
WITH_TORCH = {**os.environ, **PLAIN, "KHUB_TORCH_DIR": os.environ["KHUB_TORCH"]}


def khub(*arguments, env=WITH_TORCH):
    return subprocess.run([KHUB, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env)


def test_standard_functions():
    """Each is as near to the exact result as PyTorch is (a few units in the last place), so that it is the right operator with the right arguments."""
    where = "--torch", os.environ["KHUB_TORCH"]
    for kernel, layers in {"khub/norm": {"RMSNorm": "torch", "LayerNorm": "torch", "AddRMSNorm": "standard", "AddLayerNorm": "standard"},
                           "khub/softmax": {"Softmax": "torch"}, "khub/attention": {"Attention": "torch"}}.items():
        done = khub("compare", kernel, "--standard", "torch", *where, "--dtype", "float32", "--json", env=NO_TORCH)
        assert done.returncode == 0, done.stderr
        assert ("AddLayerNorm: khub's own is used" in done.stderr) == (kernel == "khub/norm")
        report = json.loads(done.stdout)
        assert {layer["layer"]: layer["other"] for layer in report} == layers
        for layer in report:
            (row,) = [r for r in layer["rows"] if r["values"] == "normal"]
            assert row["elements"] > 5000 and row["other"]["worst"] <= 32, (layer["layer"], row)


def test_a_model():
    command = "embed", "--model", MODEL, "--threads", "1", "a sentence", "", "--standard"
    ours = khub(*command, "khub")
    theirs = khub(*command, "torch", "--torch", os.environ["KHUB_TORCH"], env=NO_TORCH)
    assert ours.returncode == theirs.returncode == 0, theirs.stderr
    a, b = ([json.loads(line) for line in done.stdout.splitlines()] for done in (ours, theirs))
    assert np.abs(np.array(a) - np.array(b)).max() < 1e-6 and a != b
    assert khub("embed", "--model", MODEL, "--standard", "numpy", "x").returncode == 2
    done = khub("embed", "--model", MODEL, "--standard", "torch", "x", env=NO_TORCH)
    assert done.returncode == 1 and "/nowhere" in done.stderr


def tasks(pid):
    """How many threads a process and its children have."""
    threads = os.listdir(f"/proc/{pid}/task")
    children = (int(child) for t in threads for child in pathlib.Path(f"/proc/{pid}/task/{t}/children").read_text().split())
    return len(threads) + sum(map(tasks, children))


def test_threads():
    """libtorch has as many as --threads says. The command is two processes, of one thread each with --threads 1; with 3 khub has two more and OpenMP two.
    Counted when the first vector arrives, and while more of them than a pipe holds wait to be read."""
    for threads, least, most in (1, 2, 2), (3, 6, 99):
        command = [KHUB, "embed", "--model", MODEL, "--standard", "torch", "--threads", str(threads), *["a sentence of some words " * 8] * 32]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=WITH_TORCH) as embed:
            assert embed.stdout.read(1) == b"["
            count = tasks(embed.pid)
            embed.stdout.read()
        assert embed.returncode == 0 and least <= count <= most, (threads, count)


def test_openmp_does_not_look_for_work():
    """libgomp says by what it was set up. What the caller wants stays."""
    for setting, shown in {None: "0", "GOMP_SPINCOUNT=77": "77", "OMP_WAIT_POLICY=active": "30000000000"}.items():
        env = {**WITH_TORCH, "OMP_DISPLAY_ENV": "verbose", **dict([setting.split("=")] if setting else [])}
        done = khub("embed", "--model", MODEL, "--standard", "torch", "x", env=env)
        assert done.returncode == 0 and f"GOMP_SPINCOUNT = '{shown}'" in done.stderr, (setting, done.stderr)


def test_a_kernel_that_gives_its_output_back(tmp_path):
    repository = shutil.copytree(FULL, tmp_path / "full")
    (build,) = (repository / "build").iterdir()
    (build / "layers.json").write_text(json.dumps({"layers": {
        "ReLU": {"function": "relu", "args": ["x"], "returns": "out", "dtypes": ["float32"]},
        "RMSNorm": {"function": "rms_norm", "dtypes": ["float32"]}}}))
    done = khub("compare", repository, "--torch", os.environ["KHUB_TORCH"], "--dtype", "float32", "--json")
    assert done.returncode == 0, done.stderr
    relu, norm = json.loads(done.stdout)
    assert relu["layer"] == "ReLU" and not relu["error"] and all(row["kernel"]["worst"] == 0 for row in relu["rows"])
    assert norm["layer"] == "RMSNorm" and not norm["error"] and norm["cases"] > 20
    for bad, words in {'"x"': "names \\\"x\\\", which is in", '"eps"': "which is no output of ReLU", '""': "is empty"}.items():
        (build / "layers.json").write_text('{"layers": {"ReLU": {"function": "relu", "args": ["x"], "returns": %s}}}' % bad)
        done = khub("compare", repository, "--torch", os.environ["KHUB_TORCH"], "--case", "float32/normal/4x33")
        assert done.returncode == 1 and words.replace("\\", "") in done.stdout + done.stderr, (bad, done.stdout, done.stderr)
