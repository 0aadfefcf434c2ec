"""The built-in kernels in the hands of the real peers: the Python `kernels` package loads them and gets the numbers that
numpy gets and the bits that C gets, kernel-abi-check accepts them. Release build only (CMakeLists.txt)."""
import ctypes
import math
import os
import re
import subprocess
from pathlib import Path

import kernel_abi_check
import ml_dtypes
import numpy as np
import pytest
from kernels import get_local_kernel

STAGE, BINARY = Path(os.environ["KHUB_STAGE"]), Path(os.environ["KHUB_BINARY"])
ROOT = STAGE / "share/khub/kernels/khub"
NAMES = sorted(p.name for p in ROOT.iterdir())
rng = np.random.default_rng(1)


def load(name):
    return get_local_kernel(ROOT / name, backend="cpu")


@pytest.mark.parametrize("name", NAMES)
def test_loads(name):
    module = load(name)
    assert module.__all__ and all(callable(getattr(module, f)) and getattr(module, f).__doc__ for f in module.__all__)
    library = next((ROOT / name).glob("build/*-cpu-*/*.so"))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    functions = re.findall(r"__tvm_ffi_([a-z]\w*)", symbols)
    assert functions
    for function in functions:
        assert module.ops.get_function_metadata(function)["type_schema"].startswith('{"type":"ffi.Function"')
        assert module.ops.get_function_doc(function).startswith(function + "(")


@pytest.mark.parametrize("name", NAMES)
def test_abi(name):
    library = next((ROOT / name).glob("build/*-cpu-*/*.so"))
    file = kernel_abi_check.ObjectFile(library)
    assert file.format() == kernel_abi_check.BinaryFormat.ELF
    assert file.check_manylinux("manylinux_2_28") == []
    assert file.check_python_abi("3.9") == []
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) <= {"libtvm_ffi.so", "libc.so.6", "libm.so.6"}
    assert "libtvm_ffi.so" in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic and "NOW" in dynamic


def objects(pattern):
    found = [p for p in BINARY.glob("kernels/**/*.o") if re.search(pattern, str(p))]
    assert found
    return found


def disassembled(path):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names x86-64's registers")
def test_wide_registers_only_behind_the_dispatch():
    for path in objects(r"kernel-common|-front\.dir|-portable\.dir"):
        assert not re.search(r"%[yz]mm|\tv[a-z]+[ \t].*%xmm", disassembled(path)), path
    for path in objects(r"-avx2\.dir"):
        assert "%zmm" not in disassembled(path), path
    assert all("%ymm" in disassembled(path) for path in objects(r"norm-avx2\.dir"))
    assert all("%zmm" in disassembled(path) for path in objects(r"norm-avx512\.dir"))


# ---- C, by ctypes: DLTensor and TVMFFIAny laid out by hand, nothing of tvm_ffi's Python ----

class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class Any(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", ctypes.c_uint64)]


DTYPES = {"float32": (2, 32), "bfloat16": (4, 16), "int32": (0, 32), "int64": (0, 64)}


def call_c(repository, function, *args):
    # libtvm_ffi is in this process already (importing tvm_ffi loads it), and only once may it be
    library = ctypes.CDLL(str(next((ROOT / repository).glob("build/*-cpu-*/*.so"))))
    keep, values = [], (Any * len(args))()
    for value, arg in zip(values, args):
        if isinstance(arg, np.ndarray):
            shape = (ctypes.c_int64 * arg.ndim)(*arg.shape)
            strides = (ctypes.c_int64 * arg.ndim)(*(s // arg.itemsize for s in arg.strides))
            tensor = DLTensor(arg.ctypes.data, 1, 0, arg.ndim, *DTYPES[str(arg.dtype)], 1, ctypes.addressof(shape), ctypes.addressof(strides), 0)
            keep += [shape, strides, tensor]
            value.type, value.value = 7, ctypes.addressof(tensor)
        elif arg is not None:
            value.type, value.value = 3, np.float64(arg).view(np.uint64)
    result = Any()
    assert getattr(library, "__tvm_ffi_" + function)(None, values, len(args), ctypes.byref(result)) == 0


# ---- the numbers ----

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_norm(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def gelu(x):
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def rotary(x, cos, sin):
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos[:, None] - b * sin[:, None], b * cos[:, None] + a * sin[:, None]], -1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ROWS, N = (4, 3), 100
# repository, function, shape of the output, shapes of the inputs, scalars after them, the formula
CASES = [
    ("norm", "rms_norm", (*ROWS, N), [(*ROWS, N), (N,)], [1e-6], rms_norm),
    ("norm", "layer_norm", (*ROWS, N), [(*ROWS, N), (N,), (N,)], [1e-5], layer_norm),
    ("softmax", "softmax", (*ROWS, N), [(*ROWS, N)], [], softmax),
    ("activation", "gelu", (*ROWS, N), [(*ROWS, N)], [], gelu),
    ("activation", "gelu_tanh", (*ROWS, N), [(*ROWS, N)], [], lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    ("activation", "silu", (*ROWS, N), [(*ROWS, N)], [], lambda x: x * sigmoid(x)),
    ("activation", "quick_gelu", (*ROWS, N), [(*ROWS, N)], [], lambda x: x * sigmoid(1.702 * x)),
    ("activation", "relu", (*ROWS, N), [(*ROWS, N)], [], lambda x: np.maximum(x, 0)),
    ("activation", "silu_and_mul", (*ROWS, N), [(*ROWS, 2 * N)], [], lambda x: x[..., :N] * sigmoid(x[..., :N]) * x[..., N:]),
    ("activation", "gelu_and_mul", (*ROWS, N), [(*ROWS, 2 * N)], [], lambda x: gelu(x[..., :N]) * x[..., N:]),
    ("rotary", "rotary", (*ROWS, N), [(*ROWS, N), (4, N // 2), (4, N // 2)], [], rotary),
    ("linear", "linear", (12, N), [(12, 64), (N, 64), (N,)], [], lambda x, weight, bias: x @ weight.T + bias),
    ("linear", "linear_add", (12, N), [(12, 64), (N, 64), (N,), (12, N)], [], lambda x, weight, bias, residual: x @ weight.T + bias + residual),
]
IDS = [case[1] for case in CASES]


@pytest.mark.parametrize("repository, function, shape, inputs, scalars, formula", CASES, ids=IDS)
def test_python_and_c_get_the_same_bits_and_the_right_numbers(repository, function, shape, inputs, scalars, formula):
    arrays = [rng.standard_normal(s, dtype=np.float32) for s in inputs]
    by_python, by_c = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    getattr(load(repository), function)(by_python, *arrays, *scalars)
    call_c(repository, function, by_c, *arrays, *scalars)
    assert by_python.tobytes() == by_c.tobytes()
    exact = formula(*(a.astype(np.float64) for a in arrays), *scalars)
    assert np.all(np.abs(by_c - exact) <= 1e-5 * (1 + np.abs(exact)))  # tight bounds: unit tests


@pytest.mark.parametrize("repository, function, shape, inputs, scalars, formula", CASES, ids=IDS)
def test_bfloat16(repository, function, shape, inputs, scalars, formula):
    arrays = [rng.standard_normal(s, dtype=np.float32).astype(ml_dtypes.bfloat16) for s in inputs]
    out = np.full(shape, np.nan, np.float32).astype(ml_dtypes.bfloat16)
    call_c(repository, function, out, *arrays, *scalars)
    exact = formula(*(a.astype(np.float64) for a in arrays), *scalars)
    # one rounding to 8 bits, of a number that is right to 1e-5
    assert np.all(np.abs(out.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) + 2e-5 * (1 + np.abs(exact)))


def test_a_norm_before_linear():
    x, norm_weight, weight, bias = (rng.standard_normal(s, dtype=np.float32) for s in [(12, 64), (64,), (N, 64), (N,)])
    outs = [np.full((12, N), np.nan, np.float32) for _ in range(3)]
    packed = np.zeros(load("linear").packed_shape(N, 64), np.float32)
    load("linear").linear_pack(packed, weight)
    load("linear").rms_norm_linear(outs[0], x, norm_weight, 1e-5, weight, bias)
    load("linear").rms_norm_linear_packed(outs[1], x, norm_weight, 1e-5, packed, bias)
    call_c("linear", "rms_norm_linear", outs[2], x, norm_weight, 1e-5, weight, bias)
    assert outs[0].tobytes() == outs[1].tobytes() == outs[2].tobytes()
    exact = rms_norm(*(a.astype(np.float64) for a in (x, norm_weight)), 1e-5) @ weight.T.astype(np.float64) + bias
    assert np.all(np.abs(outs[0] - exact) <= 1e-5 * (1 + np.abs(exact)))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_embedding(index):
    tables = [rng.standard_normal((rows, N), dtype=np.float32) for rows in (50, 2, 9)]
    weight, bias = rng.standard_normal((2, N), dtype=np.float32)
    ids = [rng.integers(0, len(table), ROWS).astype(index) for table in tables]
    outs = [np.full((*ROWS, N), np.nan, np.float32) for _ in range(2)]
    load("embedding").embedding_layer_norm(outs[0], *ids, *tables, weight, bias, 1e-5)
    call_c("embedding", "embedding_layer_norm", outs[1], *ids, *tables, weight, bias, 1e-5)
    assert outs[0].tobytes() == outs[1].tobytes()
    exact = layer_norm(sum(table[i].astype(np.float64) for table, i in zip(tables, ids)), weight, bias, 1e-5)
    assert np.all(np.abs(outs[0] - exact) <= 1e-5 * (1 + np.abs(exact)))
    ids[1][2, 1] = 2
    with pytest.raises(IndexError, match=r"embedding_layer_norm: type_ids\[7\] is 2, types has 2 rows"):
        load("embedding").embedding_layer_norm(outs[0], *ids, *tables, weight, bias, 1e-5)


def test_pairs_of_bfloat16():
    x, weight, bias = (rng.standard_normal(s, dtype=np.float32) for s in [(12, 77), (N, 77), (N,)])
    module, out = load("bfloat16"), np.full((12, N), np.nan, np.float32)
    packed = np.zeros(module.packed_shape(N, 77), ml_dtypes.bfloat16)
    call_c("bfloat16", "linear_dot_pack", packed, weight)
    call_c("bfloat16", "linear_dot_gelu", out, x, packed, bias)
    rounded = (a.astype(ml_dtypes.bfloat16).astype(np.float64) for a in (x, weight.T))
    exact = gelu(np.matmul(*rounded) + bias)
    assert np.all(np.abs(out - exact) <= 1e-5 * (1 + np.abs(exact)))


def test_messages_arrive_in_python():
    x = np.zeros((2, 3), np.float64)
    with pytest.raises(TypeError, match="relu: out is float64, float32 or bfloat16 is expected"):
        load("activation").relu(x, x)
