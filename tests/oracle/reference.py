"""A BERT sentence encoder in float64, straight from its definition: what khub's embeddings are compared with."""
import json
import math
import struct
from pathlib import Path

import numpy as np


def read_safetensors(path):
    """The tensors of a safetensors file as float64 (integers are left out)."""
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__" or entry["dtype"] not in ("F32", "F16", "BF16"):
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            bits = np.frombuffer(raw[begin:end], "<u2").astype("<u4") << 16
            flat = bits.view("<f4")
        else:
            flat = np.frombuffer(raw[begin:end], {"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        tensors[name] = flat.astype(np.float64).reshape(entry["shape"])
    return tensors


class NormalDistribution:
    """Phi(x) for arrays. NumPy has no erf, and calling math.erf for each of 400 million values takes minutes; a table of it with
    three terms of Taylor's series is right to 1e-14."""

    STEP = 1 / 1024
    AT_ONCE = 8192  # numbers whose intermediate results stay in a cache
    LIMIT = 9  # beyond it, Phi is 0 or 1 in float64

    def __init__(self):
        x = np.arange(-self.LIMIT, self.LIMIT + self.STEP, self.STEP)
        self.value = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
        self.slope = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        self.x = x

    def piece(self, x):
        x = np.clip(x, -self.LIMIT, self.LIMIT)
        i = ((x + self.LIMIT) * (1 / self.STEP) + 0.5).astype(np.int32)
        at = self.x[i]
        d = x - at
        return self.value[i] + self.slope[i] * d * (1 - d * (at / 2 - d * (at * at - 1) / 6))

    def __call__(self, x):
        flat, out = x.reshape(-1), np.empty(x.size)
        for i in range(0, x.size, self.AT_ONCE):
            out[i : i + self.AT_ONCE] = self.piece(flat[i : i + self.AT_ONCE])
        return out.reshape(x.shape)


PHI = NormalDistribution()
ACTIVATIONS = {
    "gelu": lambda x: x * PHI(x),
    "gelu_new": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}
ACTIVATIONS["gelu_pytorch_tanh"] = ACTIVATIONS["gelu_new"]


class Reference:
    """A model's directory, opened."""

    def __init__(self, directory):
        directory = Path(directory)
        self.config = json.loads((directory / "config.json").read_text())
        tensors = read_safetensors(directory / "model.safetensors")
        self.tensors = {name.removeprefix("bert."): t for name, t in tensors.items()}
        pooling, self.normalize = {"pooling_mode_mean_tokens": True}, False
        if (directory / "modules.json").exists():
            modules = json.loads((directory / "modules.json").read_text())
            pooling = json.loads((directory / modules[1]["path"] / "config.json").read_text())
            self.normalize = len(modules) > 2
        self.cls = pooling.get("pooling_mode_cls_token", False)

    def linear(self, x, name):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def attention(self, q, k, v):
        heads = self.config["num_attention_heads"]
        q, k, v = (a.reshape(len(a), heads, -1).transpose(1, 0, 2) for a in (q, k, v))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return (scores @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)

    def layer(self, x, bounds, name):
        q, k, v = (self.linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        context = np.concatenate([self.attention(q[a:b], k[a:b], v[a:b]) for a, b in bounds])
        x = self.norm(x + self.linear(context, name + ".attention.output.dense"), name + ".attention.output.LayerNorm")
        up = ACTIVATIONS[self.config["hidden_act"]](self.linear(x, name + ".intermediate.dense"))
        return self.norm(x + self.linear(up, name + ".output.dense"), name + ".output.LayerNorm")

    def run(self, sentences):
        """The token vectors of some sentences, which lie one after the other without padding."""
        ends = np.cumsum([len(ids) for ids in sentences])
        bounds = list(zip([0, *ends[:-1]], ends))
        t = self.tensors
        x = t["embeddings.word_embeddings.weight"][np.concatenate(sentences)]
        x = x + t["embeddings.token_type_embeddings.weight"][0]
        x = x + t["embeddings.position_embeddings.weight"][np.concatenate([np.arange(b - a) for a, b in bounds])]
        x = self.norm(x, "embeddings.LayerNorm")
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(x, bounds, f"encoder.layer.{i}")
        return [x[a:b] for a, b in bounds]

    def embed(self, sentences, tokens_at_once=2048):
        """(sentences, width): `sentences` is a list of lists of token ids."""
        rows, batch = [], []
        for i, ids in enumerate(sentences):
            batch.append(np.asarray(ids, np.intp))
            if i + 1 == len(sentences) or sum(map(len, batch)) + len(sentences[i + 1]) > tokens_at_once:
                rows += [x[0] if self.cls else x.mean(0) for x in self.run(batch)]
                batch = []
        rows = np.stack(rows)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) if self.normalize else rows
