"""khub compare: kernels that lie are found out, each for its own lie, and honest ones pass."""

import json
import os

import numpy as np
import pytest

from fakes import REPOS, khub

SANITIZE = os.environ["KHUB_SANITIZE"] == "1"


def compare(kernel, *options, status=0):
    run = khub("compare", kernel, *options, "--json")
    assert run.returncode == status, run.stdout + run.stderr
    layers = json.loads(run.stdout)
    assert all(layer["broken"] == (status == 1) for layer in layers)
    return layers


def liar(lie, *options, status=1):
    (layer,) = compare(REPOS / f"liar_{lie}", "--dtype=bfloat16", *options, status=status)
    return layer


def broken(layer):
    return {name for name, check in layer["checks"].items() if check["kept"] is False}


def test_an_honest_kernel():
    layer = liar("honest", status=0)
    assert broken(layer) == set()
    assert all(check["kept"] and check["tried"] > 40 for name, check in layer["checks"].items() if name != "tolerance")
    assert (layer["bit_identical"], layer["deterministic"], layer["batch_invariant"]) == (True, True, True)
    assert all(row["rows"] == row["argmax_same"] > 0 for row in layer["rows"])
    assert all(0.999 < row[whose]["cosine"] <= 1 for row in layer["rows"] for whose in ("kernel", "other"))
    assert layer["worst"]["worst"] == 0 and layer["promises"] == {
        "deterministic": True, "tolerance": {"float32": {"ulp": 0}, "bfloat16": {"ulp": 0}}}
    assert {row["values"] for row in layer["rows"]} == {
        "normal", "tiny", "huge", "subnormal", "zeros", "infinities", "nan", "ties", "mixed", "bits"}


# What each lie must be found as, at least, and words of the first finding of that kind.
LIES = [
    ("forgets", "repeats", "out[0] is"),
    ("reads_behind", "memory", "read behind the end of x (byte 264 from its first)"),
    ("reads_before", "memory", "read before the start of x (byte -1 from its first)"),
    ("writes_behind", "memory", "wrote behind the end of out (byte 264 from its first)"),
    ("writes_before", "memory", "wrote before the start of out (byte -2 from its first)"),
    ("alignment", "places", "with memory that ends where its tensors do"),
    ("strides", "places", "with rows that lie apart"),
    ("strides", "memory", "wrote between the rows of out (byte 66 from its first)"),
    ("in_place", "places", "out[0] is 0 in the memory of the input, 1.6484375 otherwise"),
    ("batch", "batches", "out[0] is 1.6484375 alone, 1.65625 otherwise"),
    ("many_rows", "batches", "out[0] is 1.6484375 alone, 1.65625 otherwise"),
    ("stale", "repeats", "where other numbers lay before"),
    ("threads", "threads", "beside other threads' calls"),
    ("adds", "repeats", "over an out of zeros"),
    ("spoils", "inputs", "changed x, from element 0 on"),
    ("borrows", "inputs", "wrote to x (byte 0 from its first) with memory that ends where its tensors do"),
    ("flushes", "inputs", "left the thread "),
    ("crashes", "returns", "the process ended: SIGABRT (Aborted)"),
    ("hangs", "returns", "it doesn't come back"),
    ("leaves", "returns", "the process ended: it called exit(0)"),
]


@pytest.mark.parametrize("lie, check, words", LIES, ids=["-".join(lie[:2]) for lie in LIES])
def test_a_lie(lie, check, words):
    layer = liar(lie, *["--timeout=1"] * (lie == "hangs"))
    assert check in broken(layer)
    found = layer["checks"][check]
    assert words in found["what"] and found["case"].startswith("bfloat16/normal/")
    if lie in ("crashes", "hangs", "leaves"):
        assert found["case"] == "bfloat16/normal/9x384"
    if check in ("memory", "inputs", "returns", "threads"):
        assert layer["worst"]["worst"] == 0  # numbers are right all the same


def test_one_number_of_a_million():
    """Off by one ULP at one number of a million: the pass over float32 is dense enough, and says where."""
    sweep = "--case=float32/bits1/1024x1024" if SANITIZE else "--dtype=float32"  # one million, or eight
    (layer,) = compare(REPOS / "liar_one_in_million", sweep, status=1)
    assert broken(layer) == {"tolerance", "identical"}
    worst = layer["worst"]
    assert worst["worst"] == 1 and worst["case"].startswith("float32/bits")
    got, exact = np.float32(worst["got"]), np.float32(worst["exact"])
    assert np.nextafter(exact, np.float32(np.inf)) == got
    (again,) = compare(REPOS / "liar_one_in_million", "--case", worst["case"], status=1)
    assert (again["worst"]["index"], again["worst"]["got"], again["cases"]) == (worst["index"], worst["got"], 1)


def test_an_error_is_no_broken_promise():
    layer = liar("raises", status=0)
    assert layer["refused"] == 3 and broken(layer) == {"returns"}
    assert layer["checks"]["returns"]["what"].endswith("ValueError: relu: nothing to do")


def test_a_kernel_that_prints():
    """Not into our JSON."""
    assert broken(liar("prints", status=0)) == set()


def test_a_function_that_crashes():
    """What the caller said of it holds in the process that goes on, too."""
    (layer,) = compare(f"{REPOS}/liar_crashes:relu", "--layer=ReLU", "--dtype=bfloat16", status=1)
    assert layer["error"] is None and layer["cases"] > 20 and "SIGABRT" in layer["checks"]["returns"]["what"]


def test_no_call_succeeds():
    """Nothing was compared: no success."""
    run = khub("compare", f"{REPOS}/good:scale", "--layer=ReLU", "--case=float32/normal/3x5")
    assert run.returncode == 1 and "no call succeeded: an error: ReLU" in run.stdout and "not compared: 1 cases" in run.stdout


def test_the_other_one_crashes():
    """Which is told, and no fault of the first."""
    (layer,) = compare(REPOS / "liar_honest", REPOS / "liar_crashes", "--dtype=bfloat16")
    assert "in the other implementation: SIGABRT" in layer["checks"]["identical"]["what"]
    assert broken(layer) == {"identical"} and layer["checks"]["slices"]["tried"] > 50


def test_N2_the_largest_of_a_row():
    """Another layer's function in its place: how far it is off, and how often the largest is another."""
    (layer,) = compare(f"{REPOS}/liar_honest:relu", "--layer=SiLU", "--case=float32/normal/9x384")
    (row,) = layer["rows"]
    assert (row["rows"], row["argmax_same"]) == (9, 9) and row["kernel"]["absolute"] > 0.2 and row["kernel"]["relative"] > 0.9
    (layer,) = compare(f"{REPOS}/good:add_one", "--layer=SiLU", "--case=float32/normal/9x384", status=1)
    assert layer["rows"][0]["rows"] == 9
    assert broken(layer) == {"memory", "places", "identical"}  # it takes strided rows for neighbours
    run = khub("compare", f"{REPOS}/liar_honest:relu", "--layer=SiLU", "--case=float32/normal/9x384")
    assert "the largest of a row is at the same place in 9 of 9 rows" in run.stdout
    assert "float32: normal results are 0." in run.stdout


def test_other_layers_go_on(tmp_path):
    """One layer whose function crashes, one that layers.md doesn't have; the third is compared."""
    from fakes import copy
    build = copy("liar_crashes", tmp_path / "repo")
    entry = {"function": "relu"}
    (build / "layers.json").write_text(json.dumps({"layers": {"ReLU": entry, "Nonsense": entry, "Softmax": {"function": "none"}, "SiLU": entry}}))
    run = khub("compare", tmp_path / "repo", "--json", "--dtype=bfloat16")
    relu, nonsense, softmax, silu = json.loads(run.stdout)
    assert run.returncode == 1 and relu["broken"] and silu["broken"]
    assert "there is no layer \"Nonsense\"" in nonsense["error"] and "no function \"none\"" in softmax["error"]
    assert silu["worst"]["worst"] > 1  # it is ReLU
    assert not silu["promises"]["deterministic"]


def test_only_shapes_that_it_takes(tmp_path):
    """A kernel that says which shapes it takes isn't blamed for others: this one ends the process beyond 500 elements."""
    from fakes import copy
    build = copy("liar_crashes", tmp_path / "repo")
    layers = json.loads((build / "layers.json").read_text())
    layers["layers"]["ReLU"]["shapes"] = {"x:-1": {"min": 1, "max": 100}}
    (build / "layers.json").write_text(json.dumps(layers))
    (layer,) = compare(tmp_path / "repo", "--dtype=bfloat16")
    assert broken(layer) == set() and 20 < layer["cases"] < liar("honest", status=0)["cases"]


# Sanitized, a few of them: that they do nothing undefined.
@pytest.mark.parametrize("kernel", ["norm:AddLayerNorm", "attention", "linear:LinearGeLU"] if SANITIZE else
                         ["norm", "softmax", "rotary", "attention", "linear:LinearGeLU", "activation:SiluAndMul",
                          "quantized:LinearInt8", "quantized:LinearGeLUInt4Weight"])
def test_built_in_kernels_keep_their_promises(kernel):
    options = ["--dtype=bfloat16"] if SANITIZE or "SiluAndMul" in kernel or "Weight" in kernel else []
    for layer in compare(f"khub/{kernel}", *options):
        assert layer["promises"]["deterministic"] and layer["deterministic"] and layer["batch_invariant"]
        assert broken(layer) <= {"identical", "classes"} and layer["refused"] == 0
        assert layer["checks"]["slices"]["tried"] > 50
        assert layer["promises"]["tolerance"] or layer["layer"] == "SiluAndMul"


def test_the_reference_agrees_with_the_standard_implementation():
    """Where that computes in double and rounds once: half an ULP."""
    (layer,) = compare("khub/norm:LayerNorm", "--dtype=float32")
    normal = next(row for row in layer["rows"] if row["values"] == "normal")
    assert 0.49 < normal["other"]["worst"] < 0.5001 and normal["kernel"]["worst"] < 4


def test_a_case_and_its_files(tmp_path):
    """What is saved is what the kernel got: called with it, it gives the worst element."""
    name = "float32/normal/5x15/bias"
    (layer,) = compare("khub/norm:LayerNorm", "--case", name, "--save", tmp_path)
    assert layer["cases"] == 1 and layer["worst"]["case"] == name
    files = {p.name: np.load(p) for p in tmp_path.iterdir()}
    assert set(files) == {f"LayerNorm.{arg}.npy" for arg in ("out.exact", "x", "weight", "bias")}
    x, weight, bias = (files[f"LayerNorm.{arg}.npy"].astype(np.float64) for arg in ("x", "weight", "bias"))
    exact = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(files["LayerNorm.out.exact.npy"], exact, rtol=1e-12)
    run = khub("call", "khub/norm:layer_norm", "out=float32[5,15]", *(tmp_path / f"LayerNorm.{arg}.npy" for arg in ("x", "weight", "bias")),
               "1e-05", "-o", tmp_path)
    assert run.returncode == 0, run.stderr
    assert np.load(tmp_path / "out.npy").flat[layer["worst"]["index"]] == np.float32(layer["worst"]["got"])
    (other,) = compare("khub/norm:LayerNorm", "--case", name, "--seed", 5)
    assert other["worst"] != layer["worst"]


def test_how_far_a_quantized_layer_is_off(tmp_path):
    """What rounding to 8 bits costs, worked out from what the kernel got. A tie that falls otherwise changes it by less than the bound."""
    (layer,) = compare("khub/quantized:LinearInt8", "--case=float32/normal/20x30x300/bias", "--save", tmp_path)
    x, weight, bias, exact = (np.load(tmp_path / f"Linear.{arg}.npy").astype(np.float64) for arg in ("x", "weight", "bias", "out.exact"))

    def rounded(rows):
        scale = np.abs(rows).max(1, keepdims=True) / 127
        return np.rint(rows / scale) * scale

    near = rounded(x) @ rounded(weight).T + bias
    rms, cosine = np.linalg.norm(near - exact) / np.linalg.norm(exact), np.sum(near * exact) / np.linalg.norm(near) / np.linalg.norm(exact)
    assert (layer["layer"], layer["serves"], layer["other"]) == ("LinearInt8", "Linear", "standard")
    assert layer["worst"]["rms"] == pytest.approx(rms, rel=1e-3) and layer["worst"]["cosine"] == pytest.approx(cosine, abs=1e-7)
    assert layer["promises"]["tolerance"]["float32"] == {"relative": 0.02} and 0.003 < rms < 0.02


def test_two_kernels_and_a_function():
    (layer,) = compare("khub/activation:ReLU", REPOS / "liar_honest", "--dtype=bfloat16")
    assert layer["bit_identical"] and layer["other"] == str(REPOS / "liar_honest")
    (layer,) = compare(f"{REPOS}/liar_forgets:relu", "--layer=ReLU", "--args=out,x", "--case=float32/normal/4x33", status=0)
    assert layer["deterministic"] is False and layer["promises"] == {"deterministic": False, "tolerance": {}}
    assert layer["checks"]["slices"]["tried"] == 0  # nobody said where it may be cut


def test_for_people():
    run = khub("compare", REPOS / "liar_writes_behind", "--case=float32/normal/3x5")
    lines = run.stdout.splitlines()
    assert run.returncode == 1 and run.stderr == ""
    assert lines[0].endswith("liar_writes_behind:ReLU (relu, " + os.path.basename(str(next((REPOS / "liar_honest/build").iterdir()))) + ") beside standard")
    assert any(line.startswith("  memory: ") and "first in float32/normal/3x5: wrote behind the end of out (byte 60 from its first)" in line
               for line in lines)
    assert lines[-1].startswith("  BROKEN: 1 cases, ")
    assert any(line.startswith("  bit-identical: yes; deterministic: ") for line in lines)


@pytest.mark.parametrize("arguments, status, words", [
    ([], 2, "which kernel?"),
    (["khub/norm", "khub/norm", "khub/norm"], 2, "is a third"),
    (["khub/norm:LayerNorm", "--args=out,x"], 2, "--args goes with --layer"),
    (["khub/norm", "--layer=LayerNorm"], 2, "names no function"),
    (["khub/norm:Softmax"], 1, "it has: RMSNorm"),
    (["khub/norm", "--dtype=float33"], 2, "float33"),
    (["khub/norm:f", "--layer=Nonsense"], 2, "there is no layer \"Nonsense\""),
    (["khub/norm:f", "--layer=GeLU", "--case=float32/odd/3"], 2, "there is no such class of values"),
    (["khub/norm:LayerNorm", "--save=/nowhere"], 1, "--save /nowhere"),
    ([f"{REPOS}/empty"], 1, "has no layers.json"),
    ([f"{REPOS}/crash_on_load"], 1, "loading the kernel ended the process: SIGSEGV"),
    ([f"{REPOS}/exit_on_load"], 1, "loading the kernel ended the process: it called exit(3)"),
    (["./no-such-kernel"], 1, "no-such-kernel"),
])
def test_what_cannot_be(arguments, status, words):
    run = khub("compare", *arguments)
    assert (run.returncode, run.stdout) == (status, "") and words in run.stderr, run.stderr


def test_a_case_that_a_layer_cannot_have():
    run = khub("compare", "khub/norm:LayerNorm", "--case=float32/normal/3x0")
    assert run.returncode == 1 and "its extents are" in run.stdout
