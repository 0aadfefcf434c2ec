"""Writes small made-up models: a BERT of a few numbers with all the files a real one has."""
import json
import struct

import numpy as np

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world", "a", "cat", "sat", "on", "the", "mat", "."]

CONFIG = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "vocab_size": len(WORDS),
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
POOLING = {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


def ids_of(text):
    """What the tokenizer makes of words of WORDS with spaces between them."""
    return [2, *(WORDS.index(word) if word in WORDS else 1 for word in text.split()), 3]


def make_tensors(config, seed=1):
    """Random weights with the names and shapes that Transformers gives them."""
    random = np.random.default_rng(seed)
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    tensors = {}

    def put(name, *shape, around=0.0):
        tensors[name] = (around + 0.3 * random.standard_normal(shape)).astype(np.float32)

    def norm(name):
        put(name + ".weight", hidden, around=1.0)
        put(name + ".bias", hidden)

    def linear(name, rows, columns):
        put(name + ".weight", rows, columns)
        put(name + ".bias", rows)

    put("embeddings.word_embeddings.weight", config["vocab_size"], hidden)
    put("embeddings.position_embeddings.weight", config["max_position_embeddings"], hidden)
    put("embeddings.token_type_embeddings.weight", config["type_vocab_size"], hidden)
    norm("embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            linear(layer + "attention.self." + part, hidden, hidden)
        linear(layer + "attention.output.dense", hidden, hidden)
        norm(layer + "attention.output.LayerNorm")
        linear(layer + "intermediate.dense", wide, hidden)
        linear(layer + "output.dense", hidden, wide)
        norm(layer + "output.LayerNorm")
    return tensors


def as_bytes(array, dtype):
    if dtype == "BF16":
        return (array.view("<u4") >> 16).astype("<u2").tobytes()
    return array.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]).tobytes()


def safetensors(tensors, dtype="F32", padding=0):
    """A file's bytes; `padding` spaces end the header."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        piece = as_bytes(array, dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """The tensors that are float32."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    floats = {name: t for name, t in header.items() if t.get("dtype") == "F32"}
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]) for name, t in floats.items()}


def split_weights(directory, count=3):
    """Puts `count` files and their index in the place of model.safetensors; tensors in turn, so that every layer is in all files."""
    whole = directory / "model.safetensors"
    tensors = read_safetensors(whole)
    index = {"metadata": {"total_size": sum(array.nbytes for array in tensors.values())}, "weight_map": {}}
    for i in range(count):
        file = f"model-{i + 1:05}-of-{count:05}.safetensors"
        names = list(tensors)[i::count]
        (directory / file).write_bytes(safetensors({name: tensors[name] for name in names}))
        index["weight_map"].update(dict.fromkeys(names, file))
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    whole.unlink()
    return directory


def write_model(directory, config={}, tensors=None, dtype="F32", prefix="", padding=0, modules=MODULES, pooling=POOLING, seed=1):
    """Writes a model; `config` and `pooling` hold what differs, None takes a field out. Returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)

    def put(name, value):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(value if isinstance(value, str) else json.dumps(value))

    config = {key: value for key, value in {**CONFIG, **config}.items() if value is not None}
    put("config.json", config)
    if modules is not None:
        put("modules.json", modules)
        put("1_Pooling/config.json", pooling)
    put("vocab.txt", "\n".join(WORDS) + "\n")
    if tensors is None:
        tensors = make_tensors({**CONFIG, **config}, seed)
    named = {prefix + name: array for name, array in tensors.items()}
    (directory / "model.safetensors").write_bytes(safetensors(named, dtype, padding))
    return directory
