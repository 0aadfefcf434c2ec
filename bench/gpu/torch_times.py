"""How long torch's functions take on a GPU: reads [[LAYER, DTYPE, SHAPE], ...] and writes those that it has, each with the median in
seconds, by events around enough calls that launching the first doesn't show."""

import json
import statistics
import sys

import torch
from torch.nn import functional as F

SAMPLES = 20
SAMPLE_MS = 2


def random(*shape, dtype):
    return torch.rand(*shape, dtype=torch.float32, device="cuda").mul_(2).sub_(1).to(dtype)


def of_rows(call, weights=0):
    def make(shape, dtype):
        x, w = random(shape["m"], shape["n"], dtype=dtype), [random(shape["n"], dtype=dtype) for _ in range(weights)]
        return lambda: call(x, shape["n"], *w)
    return make


def attention(shape, dtype):
    b, t, s, h, g, d = (shape[name] for name in "btshgd")
    q, k, v = (random(b, n, heads, d, dtype=dtype).transpose(1, 2) for n, heads in ((t, h), (s, g), (s, g)))
    if shape.get("window") or shape.get("lengths") or (shape.get("causal") and t != s):
        return None
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=bool(shape.get("causal")), enable_gqa=h != g)


LAYERS = {
    "GeLU": of_rows(lambda x, n: F.gelu(x)),
    "GeluTanh": of_rows(lambda x, n: F.gelu(x, approximate="tanh")),
    "SiLU": of_rows(lambda x, n: F.silu(x)),
    "ReLU": of_rows(lambda x, n: F.relu(x)),
    "Softmax": of_rows(lambda x, n: F.softmax(x, -1)),
    "RMSNorm": of_rows(lambda x, n, w: F.rms_norm(x, (n,), w, 1e-5), 1),
    "LayerNorm": of_rows(lambda x, n, w, b: F.layer_norm(x, (n,), w, b, 1e-5), 2),
    "Attention": attention,
}


def milliseconds(call, calls):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def median(call):
    best = min(milliseconds(call, 1) for _ in range(5))
    calls = max(1, min(1000, int(SAMPLE_MS / max(best, 1e-3))))
    return statistics.median(milliseconds(call, calls) / calls for _ in range(SAMPLES)) / 1e3


def main():
    if not torch.cuda.is_available():
        sys.exit("torch has no CUDA device")
    times = []
    for layer, dtype, text in json.load(sys.stdin):
        shape = {name: int(value) for name, value in (part.split("=") for part in text.split(","))}
        call = LAYERS[layer](shape, getattr(torch, dtype)) if layer in LAYERS and shape.get("bias", 1) else None
        if call:
            times.append([layer, dtype, text, median(call)])
    json.dump(times, sys.stdout)


if __name__ == "__main__":
    main()
