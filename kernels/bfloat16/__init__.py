"""khub/bfloat16: x weightᵀ + bias on the CPU by instructions that multiply pairs of bfloat16 (AMX, AVX512-BF16), widened to float32
where there are none. The bits depend on which of them the processor has, and on nothing else beside the numbers.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place. x, bias and out are float32 or bfloat16, bias may be
None; x is rounded to bfloat16. The weight is rounded and packed once, by linear_dot_pack, into bfloat16 of shape packed_shape(n, k).
"""
from ._ops import ops

__all__ = ["packed_shape", "linear_dot_pack"]


def packed_shape(n, k):
    """The shape of the packed form of a weight (n, k), of bfloat16."""
    return (-(-n // 16), -(-k // 32) * 16, 32)


def linear_dot_pack(prepared, weight):
    """Rounds weight (n, k) to bfloat16 and packs it into prepared."""
    ops.linear_dot_pack(prepared, weight)


def _define(name, activation):
    def function(out, x, weight, bias=None):
        getattr(ops, name)(out, x, weight, bias)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"out = {activation}(x weightᵀ + bias), weight as linear_dot_pack makes it." if activation else "out = x weightᵀ + bias, weight as linear_dot_pack makes it."
    globals()[name] = function
    __all__.append(name)


for _activation in ("", "gelu", "gelu_tanh", "silu", "relu"):
    _define("linear_dot" + (_activation and "_" + _activation), _activation)
