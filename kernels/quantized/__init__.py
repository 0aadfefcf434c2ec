"""khub/quantized: x weightᵀ + bias on the CPU with a weight of 8 or 4 bits, the same bits on every processor.

Tensors are anything with DLPack that tvm_ffi takes; outputs are written in place. x, bias and out are float32 or bfloat16,
bias may be None. The weight is packed once, by quantize_int8 or quantize_int4, into bytes of shape packed_shape(n, k, bits).
linear_int8… and linear_int4… round x to 8 bits, each row with a scale of its own; …_weight… to 16 bits, a scale for each 32
elements of a row, which is near x itself.
"""
from ._ops import ops

__all__ = ["packed_shape", "quantize_int8", "quantize_int4"]


def packed_shape(n, k, bits):
    """The shape of the packed form of a weight (n, k), of uint8; bits is 8 or 4."""
    groups = -(-k // 32)
    return (-(-n // 16), groups * 512 + 128 if bits == 8 else groups * 256 + -(-groups // 2) * 64)


def quantize_int8(prepared, weight):
    """Packs weight (n, k) into prepared: 8 bits an element, a scale for each of n."""
    ops.quantize_int8(prepared, weight)


def quantize_int4(prepared, weight):
    """Packs weight (n, k) into prepared: 4 bits an element, a scale for each 32 along k."""
    ops.quantize_int4(prepared, weight)


def _define(name, activation, weight, x):
    def function(out, x, weight, bias=None):
        getattr(ops, name)(out, x, weight, bias)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"out = {activation}(x weightᵀ + bias), weight as {weight} packs it, {x}." if activation else f"out = x weightᵀ + bias, weight as {weight} packs it, {x}."
    globals()[name] = function
    __all__.append(name)


for _bits in (8, 4):
    for _form, _x in (("", "x's rows rounded to 8 bits"), ("_weight", "x rounded to 16 bits")):
        for _activation in ("", "gelu", "gelu_tanh", "silu", "relu"):
            _define(f"linear_int{_bits}{_form}" + (_activation and "_" + _activation), _activation, f"quantize_int{_bits}", _x)
