"""khub/norm: RMSNorm and LayerNorm, float32 and bfloat16, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place.
"""
from ._ops import ops

__all__ = ["rms_norm", "add_rms_norm", "layer_norm", "add_layer_norm"]


def rms_norm(out, x, weight, eps):
    """out = x / sqrt(mean(x²) + eps) · weight over the last axis; out may be x."""
    ops.rms_norm(out, x, weight, eps)


def add_rms_norm(out, sum, x, residual, weight, eps):
    """sum = x + residual (sum may be None or residual), out = rms_norm(sum); out may be x."""
    ops.add_rms_norm(out, sum, x, residual, weight, eps)


def layer_norm(out, x, weight, bias, eps):
    """out = (x - mean) / sqrt(var + eps) · weight + bias (bias may be None) over the last axis; out may be x."""
    ops.layer_norm(out, x, weight, bias, eps)


def add_layer_norm(out, sum, x, residual, weight, bias, eps):
    """sum = x + residual (sum may be None or residual), out = layer_norm(sum); out may be x."""
    ops.add_layer_norm(out, sum, x, residual, weight, bias, eps)
