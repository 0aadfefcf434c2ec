"""khub tokenize, from outside: what it prints, how it reads lines, how it ends."""

import json
import os
import subprocess

import pytest

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
MODEL = os.environ["KHUB_MODEL"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c", '"', "\u4E2D"]


def khub(*arguments, **options):
    return subprocess.run([KHUB, "tokenize", *map(str, arguments)], capture_output=True, timeout=60, **options)


@pytest.fixture
def model(tmp_path):
    """A model of which only the tokenizer is there."""
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    return directory


def ids(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def fails(done, status, *words):
    assert done.returncode == status, done
    assert done.stdout == b""
    for word in words:
        assert word in done.stderr.decode(), done.stderr


def test_ids_as_json_lines(model):
    done = khub("--model", model, "ab c", "", "[MASK]")
    assert done.stdout == b"[2,5,6,7,3]\n[2,3]\n[2,4,3]\n"
    assert done.stderr == b"" and done.returncode == 0


def test_tokens_too(model):
    answer = {"ids": [2, 5, 6, 8, 9, 3], "tokens": ["[CLS]", "a", "##b", '"', "\u4E2D", "[SEP]"]}
    assert ids(khub("--model", model, "--tokens", 'ab"\u4E2D')) == [answer]


def test_the_real_model():
    """Ids of BERT's vocabulary, as printed in many a tutorial."""
    assert ids(khub("--model", MODEL, "Hello, world!")) == [[101, 7592, 1010, 2088, 999, 102]]


def test_lines(model, tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(b"a\n\nc\r\na\rc\na\0b\n\r\nc")
    expected = [[2, 5, 3], [2, 3], [2, 7, 3], [2, 5, 7, 3], [2, 5, 6, 3], [2, 3], [2, 7, 3]]
    assert ids(khub("--model", model, "--file", file)) == expected
    assert ids(khub("--model", model, "--file", "-", input=file.read_bytes())) == expected
    assert ids(khub("--model", model, "--file", "-", input=b"")) == []
    assert ids(khub("--model", model, "--file", "-", input=b"\n")) == [[2, 3]]


def test_a_file_that_is_not_utf8(model, tmp_path):
    (tmp_path / "lines").write_bytes(b"a\nc\xFF\na\na\xC3\n")
    done = khub("--model", model, "--file", tmp_path / "lines")
    assert ids(done) == [[2, 5, 3], [2, 7, 3], [2, 5, 3], [2, 5, 3]]
    assert done.stderr.count(b"\n") == 1
    assert b"lines: line 2: not UTF-8" in done.stderr and b"2 of 4 texts" in done.stderr
    assert khub("-q", "--model", model, "--file", tmp_path / "lines").stderr == b""
    assert b"text 2: not UTF-8" in khub("--model", model, "a", b"\xFF".decode(errors="surrogateescape")).stderr


def test_cut_and_said(model):
    done = khub("--model", model, "-n", 3, "a", "a c", "c a")
    assert ids(done) == [[2, 5, 3], [2, 5, 3], [2, 7, 3]]
    assert b"text 2: longer than 3 tokens, cut (2 of 3 texts)" in done.stderr
    fails(khub("--model", model, "-n", 1, "a"), 2, "special tokens alone are 2")


def test_wrong_usage(model):
    fails(khub("a"), 2, "--model")
    fails(khub("--model", model), 2, "texts or --file")
    fails(khub("--model", model, "--file", "x", "a"), 2, "texts or --file")
    fails(khub("--model", model, "-n", "0", "a"), 2, "-n")
    fails(khub("--model", model, "--no-such", "a"), 2, "--no-such")


def test_what_is_missing(model, tmp_path):
    fails(khub("--model", tmp_path / "nowhere", "a"), 1, "nowhere: has no tokenizer")
    fails(khub("--model", model, "--file", tmp_path / "nothing"), 1, "nothing: can't open it")
    fails(khub("--model", model, "--file", tmp_path), 1, "can't read it: Is a directory")


@pytest.mark.parametrize("content,words", [
    (b"", "not valid JSON"),
    (b"[" * 10**6, "nested deeper"),
    (b"{}", 'no "model"'),
    (b'{"model":{"type":"BPE"}}', 'model "BPE" is not supported'),
    (b'{"model":{"type":"WordPiece","vocab":{"a":-1}}}', "id of token"),
])
def test_files_that_are_refused(model, content, words):
    (model / "tokenizer.json").write_bytes(content)
    fails(khub("--model", model, "a"), 1, "tokenizer.json", words)


def test_a_file_that_is_too_long(model):
    with open(model / "tokenizer.json", "wb") as file:
        file.truncate((16 << 20) + 1)
    fails(khub("--model", model, "a"), 1, "16777217 bytes long")


def test_a_closed_output(model):
    done = subprocess.run(["sh", "-c", 'exec "$0" tokenize --model "$1" a >/dev/full', KHUB, model], capture_output=True, timeout=60)
    assert done.returncode == 1 and b"can't write the result" in done.stderr


def test_a_line_of_ten_megabytes(model, tmp_path):
    (tmp_path / "long").write_bytes(b"a" * 10**7)
    assert ids(khub("--model", model, "--file", tmp_path / "long")) == [[2, 1, 3]]
