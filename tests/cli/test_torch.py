"""Kernels for Torch (tests/torch_kernels) by the commands and in a process of one's own: what is listed, called, and said when it can't be done.

To open libtorch takes a third of a second, so that a process answers many questions where it can: tests/oracle/torch.c."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

from fakes import KHUB, PLAIN

BINARY = pathlib.Path(os.environ["KHUB_BINARY"])
REPOS = BINARY / "tests" / "torch" / "repos"
TORCH = {"KHUB_PREFIX": os.environ["KHUB_STAGE"], "KHUB_TORCH_DIR": os.environ["KHUB_TORCH"]}
X = {"dtype": "float32", "shape": [2, 3], "data": struct.pack("<6f", *range(6)).hex()}


def library(name):
    (path,) = REPOS.joinpath(name).glob("build/torch*/*.so")
    return path


def khub(*arguments, env=None, **options):
    return subprocess.run([KHUB, *map(str, arguments)], capture_output=True, text=True, timeout=120, env={**os.environ, **PLAIN, **TORCH, **(env or {})}, **options)


def ask(*jobs):
    """[(repository, function, arguments…)] -> what came of each, in one process; under the sanitizers with a look for leaks at its end."""
    text = "".join(json.dumps({"kernel": str(REPOS / k), "function": f, "arguments": a}) + "\n" for k, f, *a in jobs)
    done = subprocess.run([BINARY / "tests" / "oracle_torch"], input=text, capture_output=True, text=True, timeout=120, env={**os.environ, **TORCH})
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(jobs)
    return answers


def test_functions_of_a_kernel():
    """Names and schemas as its source registers them."""
    done = khub("functions", REPOS / "stable", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    functions = {f["name"]: f for f in answer["functions"]}
    source = (pathlib.Path(__file__).parents[1] / "torch_kernels" / "stable.cc").read_text()
    assert sorted(functions) == sorted(re.findall(r'm\.def\(\s*"([\w.]+)\(', source))
    assert list(functions) == sorted(functions)
    assert answer["variant"].startswith("torch-stable-abi210-cpu-")
    assert functions["twice.out"]["signature"] == "twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"
    assert functions["axpy"]["signature"] == "axpy(Tensor x, Tensor y, float alpha=1.) -> Tensor"


def test_functions_that_cannot_be_called_are_listed_and_say_so():
    done = khub("functions", REPOS / "full")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "relu(Tensor x) -> Tensor" in lines
    for function, type in ("with_scalar", "Scalar"), ("with_table", "Dict(str, Tensor)"):
        (at,) = [i for i, line in enumerate(lines) if line.startswith(f"{function}(")]
        assert lines[at + 1].strip().startswith(f"can't be called: it takes {type} ")


def test_a_call(tmp_path):
    """Several results, an output, text."""
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.save(tmp_path / "x.npy", x)

    def call(kernel, function, *arguments):
        done = khub("call", f"{REPOS / kernel}:{function}", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert call("stable", "several", "x.npy", "-o", ".").splitlines() == [
        "./result.0.npy: float32[2,3]: 0 2 4 6 8 10", "./result.1.npy: float32[2,3]: -0 -1 -2 -3 -4 -5"]
    assert np.array_equal(np.load(tmp_path / "result.0.npy"), 2 * x) and np.array_equal(np.load(tmp_path / "result.1.npy"), -x)
    answer = json.loads(call("stable", "twice.out", "x.npy", "out=float32[2,3]", "--json"))
    assert answer["outputs"] == {"out": {"dtype": "float32", "shape": [2, 3], "file": "out.npy"}}
    assert np.array_equal(np.load(tmp_path / "out.npy"), 2 * x)
    assert call("both", "short_text") == "torch\n"


def test_a_build_without_torch_when_that_is_wanted():
    for words in (["--no-torch"], ["--variant", f"tvm-ffi01-cpu-{os.uname().machine}-linux"]):
        done = khub("call", f"{REPOS / 'both'}:short_text", *words)
        assert (done.returncode, done.stdout) == (0, "seven b\n"), done.stderr


def test_without_libtorch(tmp_path):
    """What needs it says so, what doesn't is taken."""
    nowhere = {"KHUB_TORCH_DIR": str(tmp_path)}
    done = khub("call", f"{REPOS / 'both'}:short_text", env=nowhere)
    assert (done.returncode, done.stdout) == (0, "seven b\n"), done.stderr
    done = khub("functions", REPOS / "stable", env=nowhere)
    assert done.returncode == 3 and "Torch 2.10 or later" in done.stderr


@pytest.fixture(scope="module")
def answers():
    """Every question of this file that needs no process of its own."""
    jobs = {
        "a name that is taken": ("taken", "relu", X),
        "good": ("stable", "twice", X),
        "text for a tensor": ("stable", "axpy", X, "y"),
        "a float for an int": ("stable", "pieces", X, 2.5),
        "none for a tensor": ("stable", "twice", None),
        "a tensor for a float": ("stable", "scale_", X, X),
        "text that is no dtype": ("stable", "same_dtype", "flaot32"),
        "text that is no device": ("stable", "same_device", "nowhere:1"),
        "a list with something else in it": ("stable", "same_ints", [1, "two"]),
        "missing": ("stable", "axpy", X),
        "missing, keyword-only": ("stable", "twice.out", X),
        "one too many": ("stable", "twice", X, X),
        "no such operator": ("stable", "twise", X),
        "no such overload": ("stable", "twice.tensor", X),
        "thrown": ("stable", "fail", X, "runtime", "the reason"),
        "checked": ("full", "fail", X, "check"),
        "a number thrown": ("stable", "fail", X, "number"),
        "still there after errors": ("stable", "twice", X),
        "a tensor elsewhere": ("stable", "twice", {**X, "elsewhere": True}),
        "only for CUDA": ("stable", "elsewhere", X),
        "for nothing": ("stable", "unfinished", X),
        "a scalar": ("full", "with_scalar", X, 2),
        "a scalar's default": ("full", "with_scalar", X),
        "results of different types": ("stable", "mixed", X),
        "a table": ("full", "with_table", X, 3),
        "autograd": ("full", "grad_mode",),
        "an initialiser": ("stable", "initialised"),
        "two phases": ("phases", "short_text"),
        "calls nobody": ("calls_nobody", "short_text"),
        "needs nobody": ("needs_nobody", "short_text"),
        "needs later": ("needs_later", "short_text"),
        "needs old strings": ("needs_old_strings", "short_text"),
        "needs Python": ("needs_python", "short_text"),
        "a stranger": ("stranger", "short_text"),
    }
    return dict(zip(jobs, ask(*jobs.values())))


SCHEMA = {
    "axpy": "axpy(Tensor x, Tensor y, float alpha=1.) -> Tensor",
    "pieces": "pieces(Tensor x, int n=2) -> Tensor[]",
    "twice": "twice(Tensor x) -> Tensor",
    "twice.out": "twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    "scale_": "scale_(Tensor(a!) x, float factor) -> ()",
    "with_scalar": "with_scalar(Tensor x, Scalar factor=2) -> Tensor",
}


@pytest.mark.parametrize("question,words", {
    "a name that is taken": ["/_taken_cpu_7357000.so: loading it ends the process: SIGABRT", "it said: small.c: libtorch refused a registration"],
    "text for a tensor": [SCHEMA["axpy"], '"y"', "a string", "Tensor"],
    "a float for an int": [SCHEMA["pieces"], '"n"', "a float", "int"],
    "none for a tensor": [SCHEMA["twice"], '"x"', "None"],
    "a tensor for a float": [SCHEMA["scale_"], '"factor"', "a tensor", "float"],
    "text that is no dtype": ["same_dtype", "flaot32"],
    "text that is no device": ["same_device", "nowhere:1"],
    "a list with something else in it": ["same_ints", "a string", "int"],
    "missing": [SCHEMA["axpy"], '"y"', "missing"],
    "missing, keyword-only": [SCHEMA["twice.out"], '"out"', "missing"],
    "one too many": [SCHEMA["twice"], "2"],
    "no such operator": ["twise", "twice", "axpy"],
    "no such overload": ["twice.tensor", "twice.int", "twice.out"],
    "thrown": ["fail", "the reason"],
    "checked": ["fail", "words of TORCH_CHECK, n = 3"],
    "a number thrown": ["fail", "UNKNOWN"],
    "a tensor elsewhere": ["twice", '"x"', "CPU"],
    "only for CUDA": ["elsewhere", "CPU", "CUDA"],
    "for nothing": ["unfinished", "CPU"],
    "a scalar": [SCHEMA["with_scalar"], "Scalar", '"factor"'],
    "a scalar's default": [SCHEMA["with_scalar"], "Scalar", '"factor"'],
    "results of different types": ["mixed(Tensor x) -> (Tensor, int)", "results are of several types"],
    "a table": ["with_table", "Dict(str, Tensor)", '"table"'],
    "calls nobody": ["calls_nobody", "nobody_has_this"],
    "needs nobody": ["needs_nobody", "nobody_has_this"],
    "needs later": ["needs_later", "torch_of_a_later_version", "Torch"],
    "needs old strings": ["needs_old_strings", "_ZN3c105ErrorC2ENS_14SourceLocationESs", "Torch"],
    "needs Python": ["needs_python", "PyErr_SetString", "Python"],
    "a stranger": ["stranger", "_stranger_cpu_7357000", "metadata.json"],
}.items())
def test_what_is_said(question, words, answers):
    said = answers[question]["error"]
    assert [word for word in words if word not in said] == [], said


def test_what_goes_well(answers):
    assert answers["good"] == answers["still there after errors"]
    assert answers["good"]["result"]["data"] == struct.pack("<6f", *range(0, 12, 2)).hex()
    assert answers["autograd"]["result"] is False
    assert answers["an initialiser"]["result"] == "made while it was loaded"
    assert answers["two phases"]["result"] == "torch"


def test_namespaces_in_one_process(tmp_path):
    """The same library from two places is opened once; another one that has the same operators is refused, the first goes on."""
    for name in "same", "other":
        shutil.copytree(REPOS / "small", tmp_path / name)
    (path,) = (tmp_path / "other").glob("build/*/*.so")
    path.write_bytes(path.read_bytes() + b"another version")
    same, other, first, again = ask((tmp_path / "same", "short_text"), (tmp_path / "other", "short_text"), ("small", "short_text"),
                                    (tmp_path / "same", "short_text"))
    assert same == again == {"result": "torch", "after": []}
    assert str(path) in other["error"] and "_small_cpu_7357000" in other["error"] and "short_text" in other["error"]
    assert "error" not in first or "_small_cpu_7357000" in first["error"]
