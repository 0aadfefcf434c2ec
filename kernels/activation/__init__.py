"""khub/activation: activations, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place. The last axis is contiguous.
"""
from ._ops import ops

__all__ = ["gelu", "gelu_tanh", "silu", "quick_gelu", "relu", "silu_and_mul", "gelu_and_mul"]


def gelu(out, x):
    """out = x/2 · (1 + erf(x/√2)); out may be x."""
    ops.gelu(out, x)


def gelu_tanh(out, x):
    """out = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); out may be x."""
    ops.gelu_tanh(out, x)


def silu(out, x):
    """out = x / (1 + exp(-x)); out may be x."""
    ops.silu(out, x)


def quick_gelu(out, x):
    """out = x / (1 + exp(-1.702 x)); out may be x."""
    ops.quick_gelu(out, x)


def relu(out, x):
    """out = max(x, 0), NaN stays NaN; out may be x."""
    ops.relu(out, x)


def silu_and_mul(out, x):
    """out (…, n) = silu(first half of x (…, 2n)) · second half."""
    ops.silu_and_mul(out, x)


def gelu_and_mul(out, x):
    """out (…, n) = gelu(first half of x (…, 2n)) · second half."""
    ops.gelu_and_mul(out, x)
