"""khub/rotary: rotary position embedding, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place. The last axis is contiguous.
"""
from ._ops import ops

__all__ = ["rotary_pos_emb", "rotary"]


def rotary_pos_emb(q_out, k_out, q, k, cos, sin):
    """rotary of q (tokens, heads, dim) and of k (tokens, its heads, dim) by one cos and sin (tokens, dim/2)."""
    ops.rotary_pos_emb(q_out, k_out, q, k, cos, sin)


def rotary(out, x, cos, sin):
    """Turns each pair (x[i], x[i + dim/2]) of x (tokens, heads, dim) by the angle of cos and sin (tokens, dim/2); out may be x."""
    ops.rotary(out, x, cos, sin)
