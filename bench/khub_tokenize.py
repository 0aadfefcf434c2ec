"""Tokenizing beside Hugging Face's tokenizers: megabytes of text a second, one thread each, the same texts in the same run.

Texts of about 1,000 bytes are made of words of three scripts from the model's own vocabulary, so that the script needs no other file. The best of several rounds counts; the peer gets its batch call, which costs it the least Python.
"""
import ctypes
import os
import random
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer  # noqa: E402

ROUNDS = 7
MODEL = os.environ["KHUB_MODEL"]


class Tokens(ctypes.Structure):
    _fields_ = [("ids", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_size_t), ("truncated", ctypes.c_int), ("invalid", ctypes.c_int)]


def words(rng, vocabulary, script):
    """Words of one script: whole tokens, and tokens with pieces behind them."""
    fits = {"latin": lambda c: "a" <= c <= "z", "cyrillic": lambda c: "\u0400" <= c <= "\u04FF", "han": lambda c: "\u4E00" <= c <= "\u9FFF"}[script]
    starts = [t for t in vocabulary if all(map(fits, t))]
    ends = [t[2:] for t in vocabulary if t.startswith("##") and all(map(fits, t[2:]))] or [""]
    while True:
        word = rng.choice(starts) + (rng.choice(ends) if rng.random() < 0.3 else "")
        yield word.capitalize() if rng.random() < 0.1 else word


def texts(script, count):
    rng = random.Random(1)
    source = words(rng, [line.rstrip("\n") for line in open(os.path.join(MODEL, "vocab.txt"), encoding="utf-8")], script)
    made = []
    for _ in range(count):
        text = ""
        while len(text.encode()) < 1000:
            text += next(source) + rng.choice([" "] * 8 + [", ", ". "])
        made.append(text)
    return made


def open_khub():
    library = ctypes.CDLL(os.path.join(os.environ["KHUB_STAGE"], "lib", "libkhub-model.so"))
    tokenizer = ctypes.c_void_p()
    library.khub_tokenizer_open.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_void_p]
    library.khub_tokenizer_encode.argtypes = [ctypes.POINTER(Tokens), ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
    library.khub_tokens_free.argtypes = [ctypes.POINTER(Tokens)]
    assert library.khub_tokenizer_open(ctypes.byref(tokenizer), MODEL.encode(), None) == 0
    return library, tokenizer


def time_khub(library, tokenizer, batch):
    tokens, count = Tokens(), 0
    start = time.perf_counter()
    for text in batch:
        assert library.khub_tokenizer_encode(ctypes.byref(tokens), tokenizer, text, len(text), 0, None) == 0
        count += tokens.count
        library.khub_tokens_free(ctypes.byref(tokens))
    return time.perf_counter() - start, count


def time_peer(peer, batch):
    start = time.perf_counter()
    encoded = peer.encode_batch_fast(batch)
    return time.perf_counter() - start, sum(len(e) for e in encoded)


def main():
    library, tokenizer = open_khub()
    peer = Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
    peer.no_truncation()
    peer.no_padding()
    print(f"{'texts':10} {'khub MB/s':>10} {'tokenizers MB/s':>16} {'ratio':>6}")
    for script in ("latin", "cyrillic", "han"):
        batch = texts(script, 1000)
        encoded = [t.encode() for t in batch]
        size = sum(map(len, encoded)) / 1e6
        ours = theirs = float("inf")
        for _ in range(ROUNDS): # in turns, so that both meet the same machine
            (a, n), (b, m) = time_khub(library, tokenizer, encoded), time_peer(peer, batch)
            assert n == m, "the ids differ in number"
            ours, theirs = min(ours, a), min(theirs, b)
        print(f"{script:10} {size / ours:10.1f} {size / theirs:16.1f} {theirs / ours:6.1f}")
    opened = min(open_time() for _ in range(ROUNDS))
    print(f"opening the model's tokenizer.json: {opened * 1e3:.1f} ms, tokenizers {min(peer_open_time() for _ in range(3)) * 1e3:.0f} ms")


def open_time():
    start = time.perf_counter()
    library, tokenizer = open_khub()
    done = time.perf_counter() - start
    library.khub_tokenizer_close.argtypes = [ctypes.c_void_p]
    library.khub_tokenizer_close(tokenizer)
    return done


def peer_open_time():
    start = time.perf_counter()
    Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
    return time.perf_counter() - start


main()
