"""khub embed beside torch, on two threads, tokenizing and pooling included: a short sentence, a long one, and a whole process.

khub and its peers each live in a process of their own and are asked in turns, so that whatever else the machine does meets them
alike. Goals: 12 tokens at most 0.35 of torch's time, 252 tokens at most 1.0; a process 0.15 s and 250 MB."""

import ctypes
import importlib.util
import os
import statistics
import subprocess
import sys
import time

MODEL = os.environ["KHUB_MODEL"]
STAGE = os.environ["KHUB_STAGE"]
THREADS = 2
WORD = "kernel "  # one token
TEXTS = {12: WORD * 10, 252: WORD * 250}  # with [CLS] and [SEP]
ROUNDS, REPEATS = 15, {12: 20, 252: 4}


# --- one worker each: a function that embeds a text


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1020)]


class ModelOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint)]


def khub(kernels):
    import numpy

    core = ctypes.CDLL(f"{STAGE}/lib/libkhub.so", ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(f"{STAGE}/lib/libkhub-model.so")
    library.khub_model_layers.restype = ctypes.c_void_p
    library.khub_model_width.restype = ctypes.c_size_t
    error, model = Error(), ctypes.c_void_p()
    options = ModelOptions(ctypes.sizeof(ModelOptions), THREADS)

    def check(status):
        assert status == 0, error.message.decode()

    check(library.khub_model_open(ctypes.byref(model), MODEL.encode(), ctypes.byref(options), ctypes.byref(error)))
    if kernels:
        report = ctypes.c_void_p()
        layers = ctypes.c_void_p(library.khub_model_layers(model))
        check(core.khub_kernelize(layers, None, ctypes.byref(report), ctypes.byref(error)))
        core.khub_report_filled.restype = core.khub_report_count.restype = ctypes.c_size_t
        assert core.khub_report_filled(report) == core.khub_report_count(report)
    out = numpy.empty(library.khub_model_width(model), numpy.float32)
    to = ctypes.c_void_p(out.ctypes.data)

    def embed(text):
        texts = (ctypes.c_char_p * 1)(text.encode())
        check(library.khub_model_embed(model, texts, None, ctypes.c_size_t(1), to, None, ctypes.byref(error)))
        return out

    return embed


def torch_model():
    import tokenizers
    import torch
    import transformers

    torch.set_num_threads(THREADS)
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModel.from_pretrained(MODEL).eval()
    tokenizer = tokenizers.Tokenizer.from_file(MODEL + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)

    @torch.inference_mode()
    def embed(text):
        ids = torch.tensor([tokenizer.encode(text).ids])
        tokens = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
        return torch.nn.functional.normalize(tokens.mean(0), dim=0).numpy()

    return embed


def sentence_transformers():
    import sentence_transformers
    import torch

    torch.set_num_threads(THREADS)
    model = sentence_transformers.SentenceTransformer(MODEL, device="cpu")
    return lambda text: model.encode(text, show_progress_bar=False)


WORKERS = {
    "torch (BertModel)": torch_model,
    "sentence-transformers": sentence_transformers,
    "khub --no-kernels": lambda: khub(False),
    "khub --kernels": lambda: khub(True),
}


def work(name):
    """A worker: reads token counts, answers with the times of that text in ns, then with the first numbers of its vector."""
    embed = WORKERS[name]()
    for length, text in TEXTS.items():
        for _ in range(3):
            vector = embed(text)
    print("ready", flush=True)
    for line in sys.stdin:
        length, repeats = map(int, line.split())
        times = []
        for _ in range(repeats):
            start = time.perf_counter_ns()
            vector = embed(TEXTS[length])
            times.append(time.perf_counter_ns() - start)
        print(*times, *(f"{v:.6f}" for v in vector[:4]), flush=True)


# --- the table


class Worker:
    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.times = {length: [] for length in TEXTS}
        self.vector = {}

    def ready(self):
        return self.process.stdout.readline() == "ready\n"

    def ask(self, length):
        self.process.stdin.write(f"{length} {REPEATS[length]}\n")
        self.process.stdin.flush()
        *times, a, b, c, d = self.process.stdout.readline().split()
        self.times[length] += [int(t) / 1e6 for t in times]
        self.vector[length] = [float(v) for v in (a, b, c, d)]
        time.sleep(0.01)  # a peer's threads may go on looking for work for a while


def compare():
    names = [n for n in WORKERS if n.startswith("khub") or importlib.util.find_spec(n.split()[0].replace("-", "_"))]
    workers = [w for w in map(Worker, names) if w.ready()]
    for _ in range(ROUNDS):
        for length in TEXTS:
            for worker in workers:
                worker.ask(length)
    peer = next((w for w in workers if w.name.startswith("torch")), workers[0])
    for length in TEXTS:
        print(f"\n{length} tokens, {THREADS} threads, {ROUNDS * REPEATS[length]} runs of each in turns")
        for w in workers:
            best, median = min(w.times[length]), statistics.median(w.times[length])
            ratio = best / min(peer.times[length]), median / statistics.median(peer.times[length])
            print(f"  {w.name:24} best {best:8.3f} ms ({ratio[0]:5.2f})   median {median:8.3f} ms ({ratio[1]:5.2f})")
            assert all(abs(a - b) < 1e-5 for a, b in zip(w.vector[length], peer.vector[length])), (w.name, w.vector, peer.vector)
    for w in workers:
        w.process.stdin.close()
        w.process.wait()


def process(what, command, runs):
    seconds, peak = [], 0
    with open(os.devnull, "w") as null:
        for _ in range(runs):
            start = time.perf_counter()
            pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null.fileno(), n) for n in (1, 2)])
            _, status, usage = os.wait4(pid, 0)
            seconds.append(time.perf_counter() - start)
            assert status == 0, command
            peak = max(peak, usage.ru_maxrss / 1024)
    print(f"  {what:24} best {min(seconds):6.3f} s   median {statistics.median(seconds):6.3f} s   peak {peak:5.0f} MB")


def processes():
    print("\none sentence, a whole process")
    khub = [STAGE + "/bin/khub", "embed", "--model", MODEL, TEXTS[12]]
    process("khub embed --kernels", [*khub, "--kernels"], 20)
    process("khub embed", khub, 20)
    if importlib.util.find_spec("sentence_transformers"):
        code = "import sys, sentence_transformers as s; s.SentenceTransformer(sys.argv[1], device='cpu').encode(sys.argv[2])"
        process("sentence-transformers", [sys.executable, "-c", code, MODEL, TEXTS[12]], 3)


if len(sys.argv) > 1:
    work(sys.argv[1])
else:
    compare()
    processes()
