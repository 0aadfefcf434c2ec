"""khub/linear: x weightᵀ + bias on the CPU, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place. bias may be None. The functions
linear_packed… take a weight that linear_pack has packed once, into an array of shape packed_shape(n, k).
"""
from ._ops import ops

_BEHIND = ["", "_gelu", "_gelu_tanh", "_silu", "_relu", "_add"]
__all__ = ["packed_shape", "linear_pack", "rms_norm_linear", "rms_norm_linear_packed"] + [f"linear{packed}{a}" for packed in ("", "_packed") for a in _BEHIND]


def packed_shape(n, k):
    """The shape of the packed form of a weight (n, k)."""
    return (-(-n // 16), k, 16)


def linear_pack(prepared, weight):
    """Packs weight (n, k) into prepared, of shape packed_shape(n, k)."""
    ops.linear_pack(prepared, weight)


def linear(out, x, weight, bias=None):
    """out = x weightᵀ + bias for out (m, n), x (m, k), weight (n, k), bias (n)."""
    ops.linear(out, x, weight, bias)


def linear_gelu(out, x, weight, bias=None):
    """out = gelu(x weightᵀ + bias)."""
    ops.linear_gelu(out, x, weight, bias)


def linear_gelu_tanh(out, x, weight, bias=None):
    """out = gelu_tanh(x weightᵀ + bias)."""
    ops.linear_gelu_tanh(out, x, weight, bias)


def linear_silu(out, x, weight, bias=None):
    """out = silu(x weightᵀ + bias)."""
    ops.linear_silu(out, x, weight, bias)


def linear_relu(out, x, weight, bias=None):
    """out = relu(x weightᵀ + bias)."""
    ops.linear_relu(out, x, weight, bias)


def linear_packed(out, x, weight, bias=None):
    """linear on a packed weight."""
    ops.linear_packed(out, x, weight, bias)


def linear_packed_gelu(out, x, weight, bias=None):
    """linear_gelu on a packed weight."""
    ops.linear_packed_gelu(out, x, weight, bias)


def linear_packed_gelu_tanh(out, x, weight, bias=None):
    """linear_gelu_tanh on a packed weight."""
    ops.linear_packed_gelu_tanh(out, x, weight, bias)


def linear_packed_silu(out, x, weight, bias=None):
    """linear_silu on a packed weight."""
    ops.linear_packed_silu(out, x, weight, bias)


def linear_packed_relu(out, x, weight, bias=None):
    """linear_relu on a packed weight."""
    ops.linear_packed_relu(out, x, weight, bias)


def linear_add(out, x, weight, bias, residual):
    """out = x weightᵀ + bias + residual for residual (m, n), which may be out; bias may be None."""
    ops.linear_add(out, x, weight, bias, residual)


def linear_packed_add(out, x, weight, bias, residual):
    """linear_add on a packed weight."""
    ops.linear_packed_add(out, x, weight, bias, residual)


def rms_norm_linear(out, x, norm_weight, eps, weight, bias=None):
    """out = rms_norm(x, norm_weight, eps) weightᵀ + bias for out (m, n), x (m, k), norm_weight (k), weight (n, k), bias (n)."""
    ops.rms_norm_linear(out, x, norm_weight, eps, weight, bias)


def rms_norm_linear_packed(out, x, norm_weight, eps, weight, bias=None):
    """rms_norm_linear on a packed weight."""
    ops.rms_norm_linear_packed(out, x, norm_weight, eps, weight, bias)
