"""khub call: what words become, what is written, and what is said when it can't be done."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess

import numpy as np
import pytest

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
GOOD = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "fake" / "repos" / "good"


def call(*arguments, cwd, **options):
    return subprocess.run([KHUB, "call", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=60, **options)


def good(function, *arguments, cwd, **options):
    return call(f"{GOOD}:{function}", *arguments, cwd=cwd, **options)


def succeeds(done):
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def fails(done, status, *words):
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    return done.stderr


def files(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture
def x(tmp_path):
    array = np.arange(6, dtype="float32").reshape(2, 3) / 4
    np.save(tmp_path / "x.npy", array)
    return array


# What first_argument_kind sees: tvm-ffi's type indices.
NONE, INT, BOOL, FLOAT, TENSOR, TEXT = 0, 1, 2, 3, 7, 8
WORDS = {
    "none": NONE, "None": NONE, "true": BOOL, "True": BOOL, "false": BOOL,
    "0": INT, "3": INT, "-3": INT, "+3": INT, "9223372036854775807": INT, "-9223372036854775808": INT,
    "2.5": FLOAT, "-2.5": FLOAT, ".5": FLOAT, "-.5": FLOAT, "1.": FLOAT, "1e-3": FLOAT, "1E5": FLOAT, "nan": FLOAT,
    "inf": FLOAT, "-inf": FLOAT, "1e-400": FLOAT,
    "x.npy": TENSOR, "out=int8[]": TENSOR, "y=x.npy": TENSOR, "[1]": TENSOR, "[]": TENSOR,
    "": TEXT, "text": TEXT, "str:3": TEXT, "str:x.npy": TEXT, "str:a=b": TEXT, "3 apples": TEXT, "0x10": TEXT, "1e": TEXT,
    "infinity": TEXT, "1-2": TEXT, "a b=c": TEXT, "=": TEXT, "TRUE": TEXT, ".": TEXT, "1.2.3": TEXT, ".npy": TEXT, "e5": TEXT,
}


@pytest.mark.parametrize("word", WORDS)
def test_words_become_values(word, tmp_path, x):
    lines = succeeds(good("first_argument_kind", word, cwd=tmp_path)).splitlines()
    assert lines[-1] == str(WORDS[word])


def test_no_argument_is_taken_for_an_option(tmp_path):
    assert succeeds(good("first_argument_kind", "--", "-x", cwd=tmp_path)) == f"{TEXT}\n"
    fails(good("first_argument_kind", "-x", cwd=tmp_path), 2, 'no option "-x"')


def test_results_are_printed(tmp_path):
    assert succeeds(good("forty_two", cwd=tmp_path)) == "42\n"
    assert succeeds(good("half", "3.0", cwd=tmp_path)) == "1.5\n"
    assert succeeds(good("half", "0.2", cwd=tmp_path)) == "0.1\n"
    assert succeeds(good("half", "inf", cwd=tmp_path)) == "inf\n"
    assert succeeds(good("negate", "true", cwd=tmp_path)) == "false\n"
    assert succeeds(good("nothing", "1", "text", cwd=tmp_path)) == ""
    assert succeeds(good("short_text", cwd=tmp_path)) == "seven b\n"
    assert succeeds(good("repeat", "long enough ", cwd=tmp_path)) == "long enough long enough \n"
    assert succeeds(good("ones", "3", cwd=tmp_path)) == "float32[3]: 1 1 1\n"
    assert succeeds(good("ones", "9", cwd=tmp_path)) == "float32[9]: 1 1 1 1 1 1 1 1 ...\n"


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e22, 5e-324, 1.7976931348623157e308, -0.0])
def test_a_float_comes_out_as_it_is(number, tmp_path):
    """half of it doubled is exact but for the smallest, which text alone shows."""
    printed = float(succeeds(good("half", repr(number), cwd=tmp_path)))
    assert printed.hex() == (number / 2).hex()


def test_outputs_are_written(tmp_path, x):
    assert succeeds(good("add_one", "out=float32[2,3]", "x.npy", cwd=tmp_path)).startswith("out.npy: float32[2,3]: 1 1.25 1.5 ")
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.float32 and np.array_equal(out, x + 1)
    assert files(tmp_path) == ["out.npy", "x.npy"]


def test_an_output_starts_as_zeros_or_as_a_file(tmp_path, x):
    succeeds(good("nothing", "a=float64[ 2 , 2 ]", "b=x.npy", "c=bool[]", "d=int16[0,5]", cwd=tmp_path))
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.zeros((2, 2)))
    assert np.array_equal(np.load(tmp_path / "b.npy"), x)
    assert np.load(tmp_path / "c.npy").shape == () and np.load(tmp_path / "d.npy").shape == (0, 5)
    succeeds(good("add_one", "x=x.npy", "x.npy", cwd=tmp_path))  # an output may replace the file an input was read from
    assert np.array_equal(np.load(tmp_path / "x.npy"), x + 1)


@pytest.mark.parametrize("text", ["[-1, 0, 2.5]", "[[1,2],[3,4],[5,6]]", "[]", "[[],[]]", "[[[1e-3]]]", "[16777217, 0.1, 1e-50]"])
def test_arrays_are_written_out(text, tmp_path):
    array = np.array(json.loads(text), np.float32)
    shape = ",".join(map(str, array.shape))
    succeeds(good("add_one", f"out=float32[{shape}]", text, cwd=tmp_path))
    assert np.array_equal(np.load(tmp_path / "out.npy"), array + np.float32(1))


@pytest.mark.parametrize("text", ["[", "[1,2", "[1,[2]]", "[[1],2]", "[[1],[2,3]]", "[true]", "[null]", '["1"]', "[1,]", "[nan]", "[1] x", "[[[[[[[[[1]]]]]]]]]", "[" * 100000])
def test_what_starts_as_an_array_and_is_none(text, tmp_path):
    fails(good("add_one", "out=float32[1]", text, cwd=tmp_path), 2, "isn't an array of numbers", "str:[")
    assert succeeds(good("first_argument_kind", "str:[1", cwd=tmp_path)) == f"{TEXT}\n"


def test_another_directory(tmp_path, x):
    (tmp_path / "to").mkdir()
    done = good("add_one", "out=float32[2,3]", "x.npy", "-o", "to", cwd=tmp_path)
    assert succeeds(done).startswith("to/out.npy: ")
    assert files(tmp_path / "to") == ["out.npy"]
    assert succeeds(good("ones", "2", "-o", "to/", cwd=tmp_path)) == "to/result.npy: float32[2]: 1 1\n"
    assert np.array_equal(np.load(tmp_path / "to" / "result.npy"), np.ones(2, "float32"))
    fails(good("forty_two", "-o", "nowhere", cwd=tmp_path), 1, "nowhere", "No such file")
    fails(good("forty_two", "-o", "x.npy", cwd=tmp_path), 1, "x.npy", "no directory")
    fails(good("nothing", "result=int8[1]", "-o", "to", cwd=tmp_path), 2, "result=int8[1]")


def test_an_existing_file_is_replaced_at_once(tmp_path, x):
    (tmp_path / "out.npy").write_text("old")
    os.link(tmp_path / "out.npy", tmp_path / "kept")
    succeeds(good("add_one", "out=float32[2,3]", "x.npy", cwd=tmp_path))
    assert (tmp_path / "kept").read_text() == "old"  # the name moved to a new file
    assert np.array_equal(np.load(tmp_path / "out.npy"), x + 1)
    assert (tmp_path / "out.npy").stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    now = os.umask(0)
    os.umask(now)
    return now


def test_json(tmp_path, x):
    out = json.loads(succeeds(good("add_one", "out=float32[2,3]", "x.npy", "--json", cwd=tmp_path)))
    assert out["kernel"] == str(GOOD) and out["function"] == "add_one" and out["variant"].startswith("tvm-ffi")
    assert out["result"] is None
    assert out["outputs"] == {"out": {"dtype": "float32", "shape": [2, 3], "file": "out.npy"}}

    def result(*arguments):
        return json.loads(succeeds(good(*arguments, "--json", cwd=tmp_path)))["result"]

    assert result("forty_two") == 42
    assert result("half", "0.2") == 0.1
    assert result("half", "nan") == "nan"
    assert result("half", "-inf") == "-inf"
    assert result("negate", "false") is True
    assert result("repeat", 'quote " and \\ and ü') == 'quote " and \\ and ü' * 2
    assert result("ones", "3") == {"dtype": "float32", "shape": [3], "file": None}
    assert result("ones", "3", "-o", ".")["file"] == "./result.npy"


@pytest.mark.parametrize("spec,words", {
    "out=": "a dtype is missing",
    "out=float32": "the shape is missing",
    "out=flaot32[3]": '"flaot32" is no dtype',
    "out=[3]": "a dtype is missing",
    "out=float32[3": '"]" is expected',
    "out=float32[3]x": '"]" is expected',
    "out=float32[3,]": "numbers between commas",
    "out=float32[,3]": "numbers between commas",
    "out=float32[-3]": "numbers between commas",
    "out=float32[a]": "numbers between commas",
    "out=float32[3;4]": '"]" is expected',
    "out=float32[1,1,1,1,1,1,1,1,1]": "more than 8 dimensions",
    "out=float32[9223372036854775808]": "more than 2^63 - 1",
    "out=float32[4611686018427387904]": "more than 2^63 bytes",
    "out=float32[4294967296,4294967296]": "more than 2^63 bytes",
    "mode=fast": '"fast" is no dtype',
    "9223372036854775808": "doesn't fit 64 bits",
    "-9223372036854775809": "doesn't fit 64 bits",
    "1e999": "too large for a float",
    "-1e999": "too large for a float",
}.items())
def test_words_that_mean_nothing(spec, words, tmp_path):
    fails(good("nothing", spec, cwd=tmp_path), 2, spec, words)
    assert files(tmp_path) == []


def test_memory_that_nobody_has(tmp_path):
    fails(good("nothing", "small=int8[1]", "out=int8[4611686018427387904]", cwd=tmp_path), 1,
          "int8[4611686018427387904]", "out of memory for 4611686018427387904 bytes")
    assert files(tmp_path) == []


def test_two_outputs_of_one_name(tmp_path):
    fails(good("nothing", "a=int8[1]", "a=int8[2]", cwd=tmp_path), 2, "a=int8[1]", "a=int8[2]", "a.npy")


def test_files_that_cannot_be_read(tmp_path, x):
    fails(good("nothing", "missing.npy", cwd=tmp_path), 1, "missing.npy", "No such file")
    fails(good("nothing", "y=missing.npy", cwd=tmp_path), 1, "missing.npy", "No such file")
    (tmp_path / "bad.npy").write_text("hello")
    fails(good("nothing", "out=int8[1]", "bad.npy", cwd=tmp_path), 1, "bad.npy", "is no .npy file")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    fails(good("nothing", "out=int8[1]", "cut.npy", cwd=tmp_path), 1, "cut.npy", "float32[2,3] takes 24 bytes, 23 follow")
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    fails(good("nothing", "objects.npy", cwd=tmp_path), 1, "objects.npy", "Python objects")
    assert files(tmp_path) == ["bad.npy", "cut.npy", "objects.npy", "x.npy"]


def test_a_call_that_fails_writes_nothing(tmp_path, x):
    (tmp_path / "out.npy").write_text("old")
    done = good("fail", "ValueError", "that won't do", cwd=tmp_path)
    fails(done, 1, "ValueError", "that won't do")
    fails(good("add_one", "out=float32[2,2]", "x.npy", cwd=tmp_path), 1)
    fails(good("add_one", "out=float64[2,3]", "x.npy", cwd=tmp_path), 1)
    fails(good("fail_with_result", cwd=tmp_path), 1)
    assert files(tmp_path) == ["out.npy", "x.npy"] and (tmp_path / "out.npy").read_text() == "old"


def test_functions_and_kernels_that_are_not_there(tmp_path):
    message = fails(good("ad_one", cwd=tmp_path), 1, "ad_one", "add_one", "scale")
    assert "Traceback" not in message
    fails(call("./nowhere:f", cwd=tmp_path), 1, "nowhere")
    for target in ("", ":", "khub/norm", "khub/norm:", ":f"):
        fails(call(target, cwd=tmp_path), 2, "REPO:FUNCTION")
    fails(call(cwd=tmp_path), 2, "which function?")


@pytest.mark.parametrize("function,how", {"abort_now": "SIGABRT", "exit_now": "exit("}.items())
def test_a_function_that_ends_the_process(function, how, tmp_path):
    repository = GOOD.with_name("in_call")
    fails(call(f"{repository}:{function}", "out=int8[1]", cwd=tmp_path), 1, f"{repository}:{function}", how)
    assert files(tmp_path) == []


def test_only_the_last_colon_separates(tmp_path):
    shutil.copytree(GOOD, tmp_path / "a:b" / "good")
    assert succeeds(call("./a:b/good:forty_two", cwd=tmp_path)) == "42\n"


def test_a_full_disk(tmp_path, x):
    """A limit on the size of files stands for it."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    (tmp_path / "big.npy").write_text("old")
    done = good("nothing", "big=float32[10000]", cwd=tmp_path, preexec_fn=limit, restore_signals=False)
    fails(done, 1, "big.npy", "can't write it", "too large")
    assert files(tmp_path) == ["big.npy", "x.npy"] and (tmp_path / "big.npy").read_text() == "old"


def test_a_stdout_that_takes_nothing(tmp_path):
    command = f"'{KHUB}' call '{GOOD}:forty_two'"
    full = subprocess.run(["sh", "-c", command + " >/dev/full"], capture_output=True, text=True)
    assert full.returncode == 1 and "No space left" in full.stderr
    closed = subprocess.run(["sh", "-c", command + " >&-"], capture_output=True, text=True)
    assert closed.returncode == 1 and "can't write the result" in closed.stderr


def test_a_directory_that_nobody_may_write_to(tmp_path, x):
    done = good("add_one", "out=float32[2,3]", "x.npy", "-o", "/proc/self", cwd=tmp_path)
    fails(done, 1, "/proc/self/out.npy", "can't create it")


def test_a_built_in_kernel(tmp_path, x):
    np.save(tmp_path / "x.npy", x - 0.5)
    succeeds(call("khub/activation:relu", "out=float32[2,3]", "x.npy", cwd=tmp_path))
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.maximum(x - 0.5, 0))
    fails(call("khub/activation:relu", "out=float32[2,2]", "x.npy", cwd=tmp_path), 1, "shape")


@pytest.mark.parametrize("blocked", ["a", "b"])
def test_all_outputs_or_none(tmp_path, blocked):
    """One of two can't be put in place."""
    (tmp_path / f"{blocked}.npy").mkdir()
    done = good("nothing", "a=float32[2]", "b=float32[2]", cwd=tmp_path)
    fails(done, 1, f"{blocked}.npy: can't create it: Is a directory")
    assert files(tmp_path) == [f"{blocked}.npy"]


def test_all_outputs_or_none_on_a_full_disk(tmp_path):
    """The first would fit."""
    done = good("nothing", "a=float32[2]", "b=float32[5000]", cwd=tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    fails(done, 1, "b.npy: can't write it")
    assert files(tmp_path) == []


def test_a_function_that_changes_its_arguments(tmp_path):
    """A tensor is a struct that the function gets a pointer to; what it does to it must not change what is written."""
    source = tmp_path / "change.c"
    source.write_text("""
#include <stdint.h>
struct tensor { void *data; int32_t device[2]; int32_t ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; };
struct value { int32_t type, zero; struct tensor *t; };
int __tvm_ffi_change(void *self, const struct value *args, int32_t n, struct value *result)
{
    struct tensor *t = args[0].t;
    (void)self, (void)n, (void)result;
    *(float *)t->data = 7;
    t->shape[0] = (int64_t)1 << 40;
    t->ndim = 100, t->bits = 64, t->data = (char *)1;
    return 0;
}
""")
    shutil.copytree(GOOD.with_name("empty"), tmp_path / "repo")
    library = next((tmp_path / "repo").glob("build/*/*.so"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert succeeds(call("./repo:change", "out=float32[2]", cwd=tmp_path)) == "out.npy: float32[2]: 7 0\n"
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.float32([7, 0]))
