"""Who embeds sentences, each in a process of its own that is asked in turns: `python embedders.py NAME`.

A worker reads lines "THREADS WORK REPEATS" and answers with the seconds of so many runs, then with some numbers of the last
vectors. Tokenizing and pooling are part of the work; texts come in one call, and a peer sorts and pads them as its users do."""

import ctypes
import functools
import hashlib
import os
import pathlib
import sys
import time

MODEL = os.environ["KHUB_MODEL"]
STAGE = os.environ["KHUB_STAGE"]
LONGEST = 256  # tokens
BATCH = 32  # as sentence-transformers has it

# One token each in the model's vocabulary.
WORDS = "kernel model layer row vector thread memory number paper river house garden music winter city school".split()


def sentence(words, seed):
    return " ".join(WORDS[(seed + i * i) % len(WORDS)] for i in range(words))


def mixed(count):
    """Most of 6 to 30 tokens, one in sixteen of 60 more."""
    lengths = [4 + (i * 37) % 25 + (60 if i % 16 == 5 else 0) for i in range(count)]
    return [sentence(n, i) for i, n in enumerate(lengths)]


# [CLS] and [SEP] count.
TEXTS = {"12 tokens": [sentence(10, 0)], "252 tokens": [sentence(250, 0)], "256 sentences": mixed(256)}


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1020)]


class ModelOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint), ("standard", ctypes.c_char_p)]


def khub(kernels):
    import numpy

    core = ctypes.CDLL(f"{STAGE}/lib/libkhub.so", ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(f"{STAGE}/lib/libkhub-model.so")
    library.khub_model_layers.restype = ctypes.c_void_p
    library.khub_model_width.restype = core.khub_report_filled.restype = core.khub_report_slots.restype = ctypes.c_size_t
    error = Error()

    def check(status):
        assert status == 0, error.message.decode()

    @functools.cache
    def model(threads):
        opened, report = ctypes.c_void_p(), ctypes.c_void_p()
        options = ModelOptions(ctypes.sizeof(ModelOptions), threads)
        check(library.khub_model_open(ctypes.byref(opened), MODEL.encode(), ctypes.byref(options), ctypes.byref(error)))
        if kernels:
            layers = ctypes.c_void_p(library.khub_model_layers(opened))
            check(core.khub_kernelize(layers, None, ctypes.byref(report), ctypes.byref(error)))
            assert core.khub_report_filled(report) == core.khub_report_slots(report)
        return opened

    def embed(texts, threads):
        of = model(threads)
        out = numpy.empty((len(texts), library.khub_model_width(of)), numpy.float32)
        given = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
        to = ctypes.c_void_p(out.ctypes.data)
        check(library.khub_model_embed(of, given, None, ctypes.c_size_t(len(texts)), to, None, ctypes.byref(error)))
        return out

    return embed


def tokenizer():
    import tokenizers

    of = tokenizers.Tokenizer.from_file(MODEL + "/tokenizer.json")
    of.enable_truncation(LONGEST)
    of.enable_padding()
    return of


def in_batches(texts, embed_batch):
    """Sorted by length, so that little is padded."""
    import numpy

    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    out = [None] * len(texts)
    for at in range(0, len(order), BATCH):
        some = order[at : at + BATCH]
        for i, row in zip(some, embed_batch([texts[i] for i in some])):
            out[i] = row
    return numpy.stack(out)


def pooled(hidden, mask):
    import numpy

    mask = mask[:, :, None].astype(numpy.float32)
    rows = (hidden * mask).sum(1) / mask.sum(1)
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def torch_model():
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModel.from_pretrained(MODEL).eval()
    encode = tokenizer().encode_batch

    @torch.inference_mode()
    def embed_batch(texts):
        encoded = encode(texts)
        ids = torch.tensor([e.ids for e in encoded])
        mask = torch.tensor([e.attention_mask for e in encoded])
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask[:, :, None].float()
        return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1)).numpy()

    def embed(texts, threads):
        torch.set_num_threads(threads)
        return in_batches(texts, embed_batch)

    return embed


def export(path):
    """The model as onnxruntime reads it, from torch's exporter."""
    import torch
    import transformers
    from torch.onnx._internal.torchscript_exporter import onnx_proto_utils

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModel.from_pretrained(MODEL, attn_implementation="eager").eval()

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    onnx_proto_utils._add_onnxscript_fn = lambda proto, functions: proto  # it wants another package, for functions that BERT hasn't
    names, ids = ["ids", "mask"], torch.ones(2, 12, dtype=torch.long)
    axes = {name: {0: "sentences", 1: "tokens"} for name in names}
    to = path.with_suffix(".part")
    torch.onnx.export(Encoder(), (ids, ids), str(to), dynamo=False, input_names=names, dynamic_axes=axes, opset_version=17)
    to.rename(path)


def onnxruntime():
    import numpy
    import onnxruntime as ort

    name = hashlib.sha256(pathlib.Path(MODEL, "config.json").read_bytes()).hexdigest()[:16]
    path = pathlib.Path(os.environ["KHUB_BINARY"], "bench", f"{name}.onnx")
    if not path.exists():
        export(path)
    encode = tokenizer().encode_batch

    @functools.cache
    def session(threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def embed(texts, threads):
        of = session(threads)

        def embed_batch(texts):
            encoded = encode(texts)
            ids = numpy.array([e.ids for e in encoded], numpy.int64)
            mask = numpy.array([e.attention_mask for e in encoded], numpy.int64)
            return pooled(of.run(None, {"ids": ids, "mask": mask})[0], mask)

        return in_batches(texts, embed_batch)

    return embed


def sentence_transformers():
    import sentence_transformers
    import torch

    model = sentence_transformers.SentenceTransformer(MODEL, device="cpu")

    def embed(texts, threads):
        torch.set_num_threads(threads)
        return model.encode(texts, batch_size=BATCH, show_progress_bar=False)

    return embed


WORKERS = {
    "khub": lambda: khub(True),
    "khub, standard functions": lambda: khub(False),
    "onnxruntime": onnxruntime,
    "torch": torch_model,
    "sentence-transformers": sentence_transformers,
}


def work(name):
    embed = WORKERS[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        threads, repeats, what = line.rstrip("\n").split(" ", 2)
        texts, times = TEXTS[what], []
        embed(texts[:1], int(threads))  # caches, threads
        for _ in range(int(repeats)):
            start = time.perf_counter()
            out = embed(texts, int(threads))
            times.append(time.perf_counter() - start)
        print(*times, "|", *(f"{row[i % 384]:.6f}" for i, row in enumerate(out)), flush=True)


if __name__ == "__main__":
    work(sys.argv[1])
