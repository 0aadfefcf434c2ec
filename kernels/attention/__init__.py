"""khub/attention: attention, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place.
"""
from ._ops import ops

__all__ = ["attention"]


def attention(out, q, k, v, lengths=None, scale=None, causal=False, window=None):
    """out = softmax(scale · q kᵀ) v for out, q (b, t, h, d) and k, v (b, s, g, d); lengths (b) int32; scale: 1/√d; window: the keys nearer than that."""
    ops.attention(out, q, k, v, lengths, q.shape[-1] ** -0.5 if scale is None else scale, causal, window)
