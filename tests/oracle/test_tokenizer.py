"""Token ids equal those of the Python package `tokenizers`: for every character, for generated texts, for real ones."""

import functools
import json
import os
import pathlib
import random
import re
import struct
import subprocess

import pytest
import texts
from kept import kept
from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.normalizers import BertNormalizer

HERE = pathlib.Path(__file__)
MODEL = pathlib.Path(os.environ["KHUB_MODEL"])
TOKENS = os.path.join(os.environ["KHUB_BINARY"], "tests", "oracle_tokens")
KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
USUAL = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}


def packed(batch):
    return b"".join(struct.pack("=I", len(t)) + t for t in batch)


def khub(directory, batch, max_tokens=0):
    """All answers from one process: for each text the number of ids, flags (1 was cut, 2 wasn't UTF-8), and the ids."""
    done = subprocess.run([TOKENS, directory, str(max_tokens)], input=packed(batch), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def texts_in(data):
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("=I", data, at)
        yield data[at + 4 : at + 4 + length]
        at += 4 + length


def unpacked(answers):
    at = 0
    while at < len(answers):
        count, flags = struct.unpack_from("=II", answers, at)
        yield list(struct.unpack_from(f"={count}i", answers, at + 8)), flags
        at += 8 + 4 * count


def is_utf8(text):
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Peer:
    """A tokenizer of the peer's that is made when a question wasn't asked before; `parts` are what `make` makes it from. It has neither
    truncation nor padding."""

    def __init__(self, parts, make):
        self.parts, self.make = parts, functools.lru_cache(make)

    def ids(self, batch):
        return [e.ids for e in self.make().encode_batch_fast([t.decode("utf-8", "replace") for t in batch])]

    def asked(self, batch, max_tokens):
        whole = cut = self.ids(batch)
        if max_tokens:
            self.make().enable_truncation(max_tokens)
            cut = self.ids(batch)
            self.make().no_truncation()
        flags = [(len(full) > len(ids)) + 2 * (not is_utf8(text)) for text, ids, full in zip(batch, cut, whole, strict=True)]
        return b"".join(struct.pack(f"=II{len(ids)}i", len(ids), flag, *ids) for ids, flag in zip(cut, flags))

    def answers(self, batch, max_tokens=0):
        return kept([HERE, *self.parts, packed(batch), max_tokens], lambda: self.asked(batch, max_tokens))


def compare(peer, directory, batch, max_tokens=0):
    expected, found = peer.answers(batch, max_tokens), khub(directory, batch, max_tokens)
    if found == expected:
        return
    both = zip(batch, unpacked(expected), unpacked(found), strict=True)
    wrong = [(text[:200], ids[:50], got[:50], flags, got_flags) for text, (ids, flags), (got, got_flags) in both if (ids, flags) != (got, got_flags)]
    pytest.fail(f"{len(wrong)} of {len(batch)} texts differ, such as\n" + "\n".join(map(repr, wrong[:5])))


def from_file(path):
    peer = Tokenizer.from_file(str(path))
    peer.no_truncation()
    peer.no_padding()
    return peer


def real_peer():
    path = MODEL / "tokenizer.json"
    return Peer([path], lambda: from_file(path))


def pieces():
    return [t.removeprefix("##") for t in (MODEL / "vocab.txt").read_text().splitlines() if not t.startswith("[")]


# ---- tokenizers made here ----


def describe(vocabulary, added=(), prefix="##", max_characters=100, **normalizer):
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added),
        "normalizer": {"type": "BertNormalizer", **USUAL, **normalizer},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                               "[SEP]": {"id": "[SEP]", "ids": [2, 0], "tokens": ["[SEP]", "[UNK]"]}},
        },
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
                  "max_input_chars_per_word": max_characters, "vocab": vocabulary},
    }


def numbered(tokens):
    return {t: i for i, t in enumerate(["[UNK]", "[CLS]", "[SEP]", *tokens])}


def build(directory, description, **how):
    """`description`: a dict, or JSON."""
    path = directory / "tokenizer.json"
    path.write_text(description if isinstance(description, str) else json.dumps(description, **how))
    return Peer([path], lambda: from_file(path))


def alphabet(directory, batch, **normalizer):
    """A tokenizer that has every character that the peer's normalization leaves of these texts, at the start of a word and
    in it: its ids show the normalized text and where the words end."""


    def make():
        normalize = BertNormalizer(**{**USUAL, **normalizer})
        left = set(normalize.normalize_str(b" ".join(batch).decode("utf-8", "replace"))) - {"\0"}  # no token may hold a NUL
        return json.dumps(describe(numbered([p + c for c in sorted(left) for p in ("", "##")]), max_characters=10**6, **normalizer)).encode()

    return build(directory, kept([HERE, "alphabet", normalizer, packed(batch)], make).decode())


# ---- every character ----

PLANES = [range(n << 16, (n + 1) << 16) for n in range(17)]
WITH_LETTERS = [0, 1]  # the other planes are ideographs, unassigned, or private
ALIKE = [range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xAC00, 0xD7A4), range(0xE000, 0xF900), range(0x17000, 0x18D00), range(0x1B170, 0x1B2FC)]
SETTINGS = {
    "usual": {}, "accents stay": {"strip_accents": False}, "case stays": {"lowercase": False, "strip_accents": True},
    "ideographs stay": {"handle_chinese_chars": False}, "dirt stays": {"clean_text": False},
}
EVERYWHERE = [("usual", plane) for plane in WITH_LETTERS] + [(s, 0) for s in list(SETTINGS)[1:]] + [("accents stay", 1)]


def stands_for_others(c):
    """1: it is none of a long block of ideographs, syllables or private ones, or near the block's end, or one of a few within."""
    block = next((block for block in ALIKE if c in block), None)
    return block is None or c < block[32] or c > block[-32] or c % 61 == 0


def each_in(template, plane, count=64, few=False):
    """Texts in which each character of the plane stands once in the template's {}; `few`: of those alike, some."""
    every = [template.replace("{}", chr(c)) for c in PLANES[plane] if not 0xD800 <= c < 0xE000 and (not few or stands_for_others(c))]
    return ["".join(every[i:i + count]).encode() for i in range(0, len(every), count)]


@pytest.mark.parametrize("settings,plane", EVERYWHERE)
def test_every_character(tmp_path, settings, plane):
    """Alone, within a word, and between two marks that change places unless it parts them."""
    batch = each_in("{} a{}b \U0001D16D{}\U0001D165 ", plane, few=settings != "usual")
    compare(alphabet(tmp_path, batch, **SETTINGS[settings]), tmp_path, batch)


@pytest.mark.parametrize("plane", sorted({*range(17)} - {*WITH_LETTERS}))
def test_every_character_that_is_no_letter(tmp_path, plane):
    """It is unknown, or goes: which of the two, the neighbours' ids show."""
    compare(build(tmp_path, describe(numbered(["a", "##b", "b", "##a"]))), tmp_path, each_in("{} a{}b ", plane))


def added(id, content, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **flags}


@pytest.mark.parametrize("plane", [0, 1])
def test_what_joins_a_word(tmp_path, plane):
    """Beside an added token that must stand alone, and one that takes white space along."""
    peer = build(tmp_path, describe(numbered("abm"), [added(6, "<m>", single_word=True), added(7, "<s>", lstrip=True, rstrip=True)]))
    compare(peer, tmp_path, each_in("{}<m> a{}<s>{}b ", plane))


# ---- generated texts ----

GENERATED = 20000


@pytest.fixture(scope="module")
def generated():
    parts = [pathlib.Path(texts.__file__), MODEL / "vocab.txt", GENERATED]
    made = list(texts_in(kept(parts, lambda: packed(texts.texts(GENERATED, pieces(), seed=3)))))
    assert len(made) == GENERATED
    assert sum(not is_utf8(t) for t in made) > 1000
    assert sum(b"[SEP]" in t for t in made) > 500
    assert len(set("".join(t.decode("utf-8", "replace") for t in made))) > 40000
    return made


def test_generated_texts(generated):
    compare(real_peer(), MODEL, generated)


@pytest.mark.parametrize("max_tokens", [2, 3, 16, 128])
def test_cut_texts(generated, max_tokens):
    compare(real_peer(), MODEL, generated[:2000], max_tokens)


@pytest.mark.parametrize("settings", SETTINGS)
def test_generated_texts_to_the_character(tmp_path, generated, settings):
    batch = generated[:1500]
    compare(alphabet(tmp_path, batch, **SETTINGS[settings]), tmp_path, batch)


def test_the_command(tmp_path, generated):
    lines = [t for t in generated if b"\n" not in t and not t.endswith(b"\r")][:3000]
    assert len(lines) == 3000
    (tmp_path / "lines").write_bytes(b"".join(t + b"\n" for t in lines))
    done = subprocess.run([KHUB, "tokenize", "--model", MODEL, "--tokens", "--file", tmp_path / "lines"], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr

    def make():
        peer = from_file(MODEL / "tokenizer.json")
        return json.dumps([{"ids": e.ids, "tokens": e.tokens} for e in peer.encode_batch([t.decode("utf-8", "replace") for t in lines])]).encode()

    expected = json.loads(kept([HERE, MODEL / "tokenizer.json", "tokens", packed(lines)], make))
    for line, answer, right in zip(lines, done.stdout.splitlines(), expected, strict=True):
        assert json.loads(answer) == right, line


def test_marks_in_any_order(tmp_path):
    """Runs of marks, most of which stay, with what may part them."""
    rng = random.Random(5)
    staying = [*"\u302E\u302F\u1B44\u1BAA\u1BF2\uA953\uA9C0\U000111C0\U0001D165\U0001D166\U0001D16D\U0001D16E\u08D4\u1DFB\U0001E000\U0001E94A"]
    others = [*"\u0301\u0345\u05B0\u064B\u0F71\u3099\u0488\u20DD\u0903\u1715\U00016FF0a .\x00\x07\u00AD\u200D\uFFFD\u4E2D\u1E69\u0344"]
    batch = ["".join(rng.choice(staying if rng.random() < 0.8 else others) for _ in range(rng.randint(1, 60))).encode() for _ in range(5000)]
    for settings in ({}, {"clean_text": False}, {"handle_chinese_chars": False}):
        compare(alphabet(tmp_path, batch, **settings), tmp_path, batch)


# ---- added tokens, prefixes, lengths of words ----

CONTENTS = ["<a>", "<a", "a>", "ab", "a b", " a", "b ", "A", "\u00C9", "e\u0301", "[X]", "\u4E2D", "\u4E2Da", "<<", "a-b", "\u1E9E", "_", "B  A"]
SCRAPS = [*CONTENTS, " ", "  ", "\u3000", "\t", "b", "x", "<", ">", "-", ".", "\u0301", "\u00AD", "E", "\xE9", "\x01"]


def random_added(rng, vocabulary):
    chosen = rng.sample(CONTENTS, rng.randint(1, 8))
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    ids = iter(range(len(vocabulary), len(vocabulary) + len(chosen)))
    return [added(vocabulary[c] if c in vocabulary else next(ids), c, **{f: rng.random() < 0.4 for f in flags}) for c in chosen]


@pytest.mark.parametrize("seed", range(60))
def test_added_tokens(tmp_path, seed):
    rng = random.Random(seed)
    tokens = numbered([p + c for c in "abexs<>-._\xE9\u4E2D\xDF" for p in ("", "##")] + (["ab"] if seed % 2 else []))
    settings = {k: rng.random() < 0.7 for k in USUAL}
    peer = build(tmp_path, describe(tokens, random_added(rng, tokens), **settings))
    compare(peer, tmp_path, ["".join(rng.choice(SCRAPS) for _ in range(rng.randint(0, 30))).encode() for _ in range(300)])


@pytest.mark.parametrize("prefix", ["##", "", "\u2581\xE9", "a"])
@pytest.mark.parametrize("max_characters", [0, 1, 7, 1000])
def test_pieces(tmp_path, prefix, max_characters):
    """Every mix of pieces over two letters, so that the longest isn't always the one to take."""
    rng = random.Random(7)
    some = {"".join(rng.choice("a\xE9b") for _ in range(rng.randint(1, 6))) for _ in range(60)}
    tokens = sorted({p + t for t in some for p in ("", prefix) if rng.random() < 0.6})
    peer = build(tmp_path, describe(numbered(tokens), prefix=prefix, max_characters=max_characters, strip_accents=False))
    compare(peer, tmp_path, [" ".join("".join(rng.choice("aa\xE9b") for _ in range(rng.randint(1, 20))) for _ in range(5)).encode() for _ in range(500)])


@pytest.mark.parametrize("how", [{}, {"indent": 1}, {"ensure_ascii": False}, {"sort_keys": True}, {"separators": (",", ":")}])
def test_ways_to_write_the_file(tmp_path, how):
    tokens = numbered(["a", "##a", '"', "\\", "/", "\x7F", "\u4E2D", "\U0001F600", "\u2028", "{", "}", "]", ":", ","])
    peer = build(tmp_path, describe(tokens), **how)
    compare(peer, tmp_path, ['a aa " \\ / \u4E2D \U0001F600 \u2028 {} ]:, x'.encode()])


def test_no_post_processor_no_normalizer(tmp_path):
    description = {**describe(numbered(["A", "a", "##a"])), "post_processor": None, "normalizer": None}
    compare(build(tmp_path, description), tmp_path, [b"A a aa AA", b""])


@pytest.mark.parametrize("config", [{}, {"do_lower_case": False}, {"do_lower_case": False, "strip_accents": True},
                                    {"strip_accents": False}, {"tokenize_chinese_chars": False}])
def test_vocab_txt(tmp_path, generated, config):
    (tmp_path / "vocab.txt").write_bytes((MODEL / "vocab.txt").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))

    def make():
        return BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=config.get("do_lower_case", True), strip_accents=config.get("strip_accents"),
                                      handle_chinese_chars=config.get("tokenize_chinese_chars", True))._tokenizer

    compare(Peer([tmp_path / "vocab.txt", config], make), tmp_path, generated[:2000])


# ---- real texts ----

LOCALES = pathlib.Path("/usr/share/i18n/locales") # of the package locales
FORTUNES = pathlib.Path("/usr/share/games/fortunes") # of fortunes-ru, fortunes-zh


def locale_texts():
    """Names of days, months, countries and what goes with them, in every language that glibc knows."""
    files = sorted(p for p in LOCALES.iterdir() if re.fullmatch(r"[a-z]{2,3}_[A-Z]{2}(@\w+)?", p.name))
    assert len({p.name.split("_")[0] for p in files}) >= 180, f"{LOCALES}: too few languages"
    for path in files:
        body = path.read_text("utf-8", "replace").partition("LC_TIME")[2]
        yield re.sub(r"<U([0-9A-F]{4,8})>", lambda m: chr(int(m[1], 16)), body)


def fortune_texts():
    files = [p for p in sorted(FORTUNES.rglob("*")) if p.is_file() and not p.is_symlink() and p.suffix not in (".dat", ".u8")]
    read = [p.read_bytes() for p in files]
    texts_of = [t.decode("utf-8") for t in read if is_utf8(t)]
    joined = "".join(texts_of)
    assert len(re.findall("[\u0400-\u04FF]", joined)) > 100000, f"{FORTUNES}: too little Russian"
    assert len(re.findall("[\u4E00-\u9FFF]", joined)) > 30000, f"{FORTUNES}: too little Chinese"
    for one in texts_of:
        yield from one.split("\n%\n")[::4]


def python_texts():
    """English and code."""
    files = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
    assert len(files) > 150
    for path in files[::4]:
        yield path.read_text("utf-8")


@pytest.mark.parametrize("source", [locale_texts, fortune_texts, python_texts])
def test_real_texts(source):
    batch = [t.encode() for t in source()]
    assert sum(map(len, batch)) > 500000
    compare(real_peer(), MODEL, batch)
