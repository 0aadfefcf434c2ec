"""Kernels for Torch give the same bits from C as from Python: every kind of argument and result, every dtype, strides, outputs in
place, what is thrown; and `khub call` on .npy files."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

from kept import kept

HERE = pathlib.Path(__file__).parent
TORCH = pathlib.Path(os.environ["KHUB_TORCH"])
BINARY = pathlib.Path(os.environ["KHUB_BINARY"])
REPOS = BINARY / "tests" / "torch" / "repos"
KERNELS = HERE.parent / "torch_kernels"
KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
WITH_TORCH = {**os.environ, "KHUB_PREFIX": os.environ["KHUB_STAGE"], "KHUB_TORCH_DIR": str(TORCH)}


def f32(shape, *values, **more):
    return {"dtype": "float32", "shape": shape, "data": struct.pack(f"<{len(values)}f", *values).hex(), **more}


def bits(dtype, shape, size):
    """A tensor of any bits that are numbers; those of a bool are 0 or 1."""
    count = size * int(np.prod(shape, dtype=int))
    data = bytes(i * 37 % (2 if dtype == "bool" else 100) for i in range(count))
    return {"dtype": dtype, "shape": shape, "data": data.hex()}


SIX = [0.5, -1.25, 3e-40, 1e30, -0.0, 7]
X, Y = f32([2, 3], *SIX), f32([2, 3], *SIX[::-1])
TURNED = f32([3, 2], *SIX, strides=[1, 3])
INSIDE = f32([2, 2], *range(12), strides=[5, 2], offset=3)  # every other number of some rows
SPREAD = f32([2, 3], 1, 2, strides=[1, 0])  # each number three times
SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "float16": 2,
         "float32": 4, "float64": 8, "bfloat16": 2, "complex64": 8, "complex128": 16, "float8_e4m3fn": 1, "float8_e5m2": 1}
NONE = None


def dtype(name):
    return {"dtype": name}


def named(name):
    return {"name": name}


KINDS = [X, NONE, -3, 2**40, 0.1, True, "words", dtype("int8"), named("cpu"), named("strided"), named("channels_last"), NONE, NONE, NONE, NONE,
         NONE, NONE]
OPTIONAL = [X, TURNED, 2**63 - 1, -(2**63), -1e300, False, "", dtype("bfloat16"), named("cuda:3"), named("strided"), named("contiguous_format"),
            0, 0.25, False, "ü and more than fifteen bytes", dtype("bool"), named("cpu")]
LISTS = [[1, -2, 3], [0.5, 1e-300], [True, False], ["a", "", "a longer one than fits in a word"], [X, Y], [NONE, X, NONE], [4, 5], NONE, NONE,
         [dtype("int8"), dtype("float64")]]
EMPTY = [[], [], [], [], [X], [], [4, 5], [], [0.5], []]
NO_TENSOR = [[], [], [], [], [], [], [4, 5], [], [0.5], []]  # nothing to choose a device by
STABLE = [
    ("axpy", X, Y), ("axpy", X, Y, 0.1), ("axpy", TURNED, f32([3, 2], *SIX)), ("axpy", X, f32([1], 2.0)),
    ("twice", X), ("twice", TURNED), ("twice", INSIDE), ("twice", SPREAD), ("twice", f32([], 3.5)), ("twice", f32([0, 3])),
    ("twice", f32([1] * 7 + [2], 1, 2)), ("twice.int", -21), ("twice.out", X, f32([2, 3], *[9] * 6)), ("twice.out", X, f32([1], 9)),
    ("twice.out", TURNED, f32([3, 2], *[9] * 10, strides=[3, 2], offset=1)),
    ("scale_", X, 3), ("scale_", INSIDE, -0.5), ("several", X), ("several", INSIDE), ("between", TURNED), ("pieces", X), ("pieces", X, 5), ("pieces", X, 0),
    ("perhaps", X), ("perhaps", X, False), ("perhaps_int", 3), ("perhaps_int", -3),
    *(("same_float", x) for x in (0.1, -0.0, 1e308, 5e-324, 3)), ("same_bool", True), ("same_bool", False), ("same_str", ""),
    ("same_str", "seven b"), ("same_str", "more than the fifteen bytes that fit in place: ü"), *(("same_dtype", dtype(d)) for d in SIZES),
    ("same_device", named("cpu")), ("same_device", named("cuda:2")), ("same_ints", [1, 2, 3]), ("same_ints", []),
    ("same_floats", [0.5, -1e300]), ("same_strings", ["a", "more than the fifteen bytes that fit in place"]),
    ("kinds", *KINDS), ("kinds", *OPTIONAL), ("lists", *LISTS), ("lists", *EMPTY), ("lists", *NO_TENSOR), ("defaults",), ("defaults", 5, 2, 0.125),
    ("seen", X), ("seen", TURNED), ("seen", INSIDE), ("seen", bits("int16", [0, 2], 2)), ("nothing", X), ("initialised",),
    ("fail", X, "no"), *(("fail", X, how, "the words\nand a second line") for how in ("runtime", "check", "number")), ("twice", bits("int32", [2], 4)),
]
FULL = [
    ("relu", X), ("relu", bits("int32", [2], 4)), ("relu", TURNED), ("rms_norm", f32([2, 3], *[9] * 6), Y, f32([3], 1, 2, -0.5)),
    ("rms_norm", f32([2, 3], *[9] * 6), Y, f32([3], 1, 2, -0.5), 0.5), ("rms_norm", f32([6], *[9] * 6), X, f32([3], 1, 2, 3)),
    ("turned", X), ("turned", INSIDE), ("with_generator", X), ("with_generator", X, NONE), ("grad_mode",),
    *(("copied", bits(d, [2, 3], size)) for d, size in SIZES.items()), ("copied", f32([0])), ("copied", f32([], 1)),
    *(("fail", X, how) for how in ("no", "runtime", "check", "index")), ("undefined", X),
    *(("lie", X, how) for how in ("no", "copy", "dtype", "turned", "part", "undefined")), ("lie", TURNED, "dtype"), ("lie", f32([0, 3]), "no"),
    ("lie", bits("complex64", [2, 3], 8), "turned"),
]
JOBS = [(kernel, function, list(arguments)) for kernel, jobs in (("stable", STABLE), ("full", FULL)) for function, *arguments in jobs]


def lines(jobs, **more):
    return "".join(json.dumps({"kernel": str(REPOS / k), "function": f, "arguments": a, **more}) + "\n" for k, f, a in jobs)


def ask(*command, jobs, env, **more):
    done = subprocess.run(command, input=lines(jobs, **more), capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(jobs), done.stderr
    return answers


def by_python(jobs):
    stand_ins = BINARY / "tests" / "torch" / "stand_ins"
    subprocess.run([sys.executable, KERNELS / "stand_ins.py", TORCH, stand_ins], check=True, timeout=300)
    env = {**os.environ, "LD_LIBRARY_PATH": str(stand_ins), "PYTHONPATH": str(TORCH.parent), "OMP_NUM_THREADS": "1"}
    return "\n".join(ask(sys.executable, str(HERE / "torch_peer.py"), jobs=jobs, env=env)).encode()


@pytest.fixture(scope="module")
def expected():
    made_from = [HERE / "torch_peer.py", KERNELS / "stand_ins.py", KERNELS / "stable.cc", KERNELS / "full.cc", KERNELS / "CMakeLists.txt",
                 HERE.parents[1] / "deps" / "torch.txt", JOBS]
    return [json.loads(line) for line in kept(made_from, lambda: by_python(JOBS)).decode().splitlines()]


def plain(words):
    """A check says the path that its source was compiled by."""
    return re.sub(r"\S*/stable\.cc", "stable.cc", words)


def test_the_same_bits_as_from_python(expected):
    """Of an error what PyTorch says is the first line; khub says which operator failed, too."""
    answers = ask(BINARY / "tests" / "oracle_torch", jobs=JOBS, env=WITH_TORCH)
    wrong = []
    for job, answer, peer in zip(JOBS, map(json.loads, answers), expected):
        same = answer == peer
        if "error" in peer and "error" in answer:
            words = "UNKNOWN" if "number" in job[2] else peer["error"]  # libtorch's C interface has another word for what isn't an exception
            same = plain(words)[:200] in plain(answer["error"]) and job[1] in answer["error"] and answer["after"] == peer["after"]
        if not same:
            wrong.append(f"{job}\n    khub    {answer}\n    PyTorch {peer}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(JOBS)}", *wrong[:6]])


def test_the_peer_says_what_the_formulas_say(expected):
    """So that two that are wrong in the same way are seen."""
    answers = {json.dumps(job): answer for job, answer in zip(JOBS, expected)}

    def of(kernel, function, *arguments):
        return answers[json.dumps((kernel, function, list(arguments)))]

    x, y = np.float32(SIX), np.float32(SIX[::-1])
    assert of("stable", "axpy", X, Y, 0.1)["result"]["data"] == (np.float32(0.1) * x + y).tobytes().hex()
    assert of("stable", "scale_", X, 3) == {"result": None, "after": [(np.float32(3) * x).tobytes().hex()]}
    assert of("stable", "twice", TURNED)["result"]["data"] == (2 * x).reshape(2, 3).T.tobytes().hex()
    assert [of("stable", "between", TURNED)["result"][i] for i in (0, 2)] == [2, 6]
    assert "error" in of("stable", "fail", X, "runtime", "the words\nand a second line")
    assert sum("error" in answer for answer in expected) == 13


def test_khub_call(tmp_path, expected):
    """The command on files, one of them with Fortran's strides."""
    x, y = (np.float32(six).reshape(2, 3) for six in (SIX, SIX[::-1]))
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    np.save(tmp_path / "y.npy", y)
    done = subprocess.run([KHUB, "call", f"{REPOS / 'stable'}:axpy", "x.npy", "y.npy", "0.1", "-o", "."], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, env=WITH_TORCH)
    assert (done.returncode, done.stderr) == (0, "")
    answer = next(e for j, e in zip(JOBS, expected) if j == ("stable", "axpy", [X, Y, 0.1]))
    assert np.load(tmp_path / "result.npy").tobytes().hex() == answer["result"]["data"]


def test_nothing_leaks(expected):
    """The smallest block is of 32 bytes, so that a leak in one of two calls would be seen. bench/torch.c counts over millions of calls; what is
    thrown takes a millisecond, and cli/test_torch.py has it under the leak sanitizer."""
    calls = 500
    jobs = [job for job, peer in zip(JOBS, expected) if "error" not in peer]
    answers = ask(BINARY / "tests" / "oracle_torch", jobs=jobs, env=WITH_TORCH, repeat=calls)
    grew = [json.loads(answer)["grew"] for answer in answers]
    assert [(job, more) for job, more in zip(jobs, grew) if more > 16 * calls] == []
