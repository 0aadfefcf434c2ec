"""khub/softmax: softmax, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place. The last axis is contiguous.
"""
from ._ops import ops

__all__ = ["softmax"]


def softmax(out, x):
    """out = exp(x - max) / Σ exp(x - max) over the last axis; out may be x."""
    ops.softmax(out, x)
