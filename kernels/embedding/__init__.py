"""khub/embedding: embeddings with LayerNorm, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place.
"""
from ._ops import ops

__all__ = ["embedding_layer_norm"]


def embedding_layer_norm(out, ids, type_ids, position_ids, words, types, positions, weight, bias, eps):
    """out = layer_norm(words[ids] + types[type_ids] + positions[position_ids]); None for a table adds nothing, for indices is 0."""
    ops.embedding_layer_norm(out, ids, type_ids, position_ids, words, types, positions, weight, bias, eps)
