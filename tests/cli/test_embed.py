"""khub embed from outside: what it prints, what it refuses, and how."""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "oracle")]
from reference import Reference  # noqa: E402
from tiny_model import CONFIG, MODULES, POOLING, ids_of, make_tensors, safetensors, split_weights, write_model  # noqa: E402

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
MODEL = os.path.join(os.environ["KHUB_STAGE"], "libexec", "khub", "khub-model")  # what khub becomes to embed: one start instead of two
TEXTS = ["hello world", "", "a cat sat on the mat .", "the cat", "dog"]


def khub(*args, **options):
    options = {"capture_output": True, "timeout": 120, **options}
    return subprocess.run([MODEL, "embed", *map(str, args)], **options)


def vectors(*args, **options):
    done = khub(*args, **options)
    assert done.returncode == 0, done.stderr.decode()
    return np.array([json.loads(line) for line in done.stdout.splitlines()], np.float32)


def refused(done, status, *words):
    text = done.stderr.decode()
    assert done.returncode == status, (done.returncode, text)
    assert done.stdout == b""
    for word in words:
        assert str(word) in text, text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "good")


# --- right


GOOD = {
    "plain": {},
    "names with a prefix": {"prefix": "bert."},
    "float16": {"dtype": "F16"},
    "bfloat16": {"dtype": "BF16"},
    "data that isn't aligned": {"padding": 3},
    "first token": {"pooling": {"word_embedding_dimension": 8, "pooling_mode_cls_token": True}},
    "not normalized": {"modules": MODULES[:2]},
    "encoder alone": {"modules": None},
    "one head": {"config": {"num_attention_heads": 1}},
    **{act: {"config": {"hidden_act": act}} for act in ("gelu_new", "gelu_pytorch_tanh", "relu", "silu")},
    "another epsilon": {"config": {"layer_norm_eps": 0.1}},
}


@pytest.mark.parametrize("kernels", ["--kernels", "--no-kernels"])
@pytest.mark.parametrize("name", GOOD)
def test_same_as_reference(tmp_path, name, kernels):
    made = write_model(tmp_path / "model", **GOOD[name])
    expected = Reference(made).embed([ids_of(text) for text in TEXTS])
    # float32 through two layers of 8: some roundings of values up to about 10
    np.testing.assert_allclose(vectors("--model", made, kernels, *TEXTS), expected, rtol=0, atol=3e-6)


@pytest.mark.parametrize("kernels", ["--kernels", "--no-kernels"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_weights_in_several_files_are_the_same_bits(tmp_path, model, kernels, count):
    split = split_weights(write_model(tmp_path / "model"), count)
    assert len(list(split.glob("model-*.safetensors"))) == count
    assert vectors("--model", split, kernels, *TEXTS).tobytes() == vectors("--model", model, kernels, *TEXTS).tobytes()


def test_printed_numbers_read_back_to_the_same_bits(tmp_path, model):
    out = tmp_path / "out.npy"
    printed = vectors("--model", model, *TEXTS)
    done = khub("--model", model, "-o", out, *TEXTS)
    assert (done.returncode, done.stdout) == (0, b"")
    array = np.load(out)
    assert array.dtype == np.float32
    assert array.tobytes() == printed.tobytes()


def test_lines_of_a_file(tmp_path, model):
    lines = tmp_path / "lines"
    lines.write_bytes(b"hello world\n\na cat sat on the mat .\r\nthe cat\ndog")
    expected = vectors("--model", model, *TEXTS).tobytes()
    assert vectors("--model", model, "--file", lines).tobytes() == expected
    assert vectors("--model", model, "--file", "-", input=lines.read_bytes()).tobytes() == expected


def test_more_lines_than_fit_at_once(tmp_path, model):
    pick = random.Random(5)
    texts = [" ".join(pick.choices(TEXTS, k=pick.randint(0, 3)))[:60] for _ in range(2500)]
    lines, out = tmp_path / "lines", tmp_path / "out.npy"
    lines.write_text("".join(text + "\n" for text in texts))
    done = khub("--model", model, "--file", lines, "-o", out, "--kernels")
    assert done.returncode == 0, done.stderr
    array = np.load(out)
    assert array.shape == (2500, 8)
    expected = Reference(model).embed([(ids_of(text)[:-1][:15] + [3]) for text in texts])
    np.testing.assert_allclose(array, expected, rtol=0, atol=3e-6)


def test_empty_file(tmp_path, model):
    (tmp_path / "lines").write_bytes(b"")
    assert khub("--model", model, "--file", tmp_path / "lines").stdout == b""
    assert khub("--model", model, "--file", tmp_path / "lines", "-o", tmp_path / "out.npy").returncode == 0
    assert np.load(tmp_path / "out.npy").shape == (0, 8)


@pytest.mark.parametrize("kernels", [("--kernels", "--require"), ("--no-kernels",)], ids=["kernels", "standard"])
def test_company_order_and_threads_dont_show(model, kernels):
    together = vectors("--model", model, *kernels, "--threads", 1, *TEXTS)
    if "--kernels" in kernels:  # standard functions may round otherwise in company
        alone = [vectors("--model", model, *kernels, text)[0] for text in TEXTS]
        assert np.array(alone).tobytes() == together.tobytes()
        backwards = vectors("--model", model, *kernels, *reversed(TEXTS))
        assert backwards[::-1].tobytes() == together.tobytes()
    for threads in (2, 3, 7):
        assert vectors("--model", model, *kernels, "--threads", threads, *TEXTS).tobytes() == together.tobytes()


def test_kernels_doesnt_take_the_next_text(model):
    assert vectors("--model", model, "--kernels", "hello").shape == (1, 8)


# --- said


def test_long_text_is_cut_and_said(model):
    done = khub("--model", model, "--kernels", "cat", "cat " * 15, "cat " * 14)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert rows[1] == rows[2]
    assert "1 of 3 texts are longer than the 16 tokens" in done.stderr.decode()
    assert "text 2" in done.stderr.decode()
    assert khub("-q", "--model", model, "cat " * 15).stderr == b""


def test_a_model_may_take_fewer_tokens_than_it_has_positions(model, tmp_path):
    made = write_model(tmp_path / "model")
    (made / "sentence_bert_config.json").write_text('{"max_seq_length": 5}')
    done = khub("--model", made, "--kernels", "cat cat cat cat", "cat cat cat")
    first, second = done.stdout.splitlines()
    assert first == second
    assert "longer than the 5 tokens" in done.stderr.decode()


def test_file_that_isnt_utf8(tmp_path, model):
    (tmp_path / "lines").write_bytes(b"hello\ncat \xff\xfe\nhello\n")
    done = khub("--model", model, "--file", tmp_path / "lines")
    assert done.returncode == 0
    assert "1 of 3 texts aren't UTF-8" in done.stderr.decode()
    assert "line 2" in done.stderr.decode()
    assert len(done.stdout.splitlines()) == 3


# --- reports


def report(model, *args, **options):
    done = khub("--model", model, "--report", "--json", *args, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_report_of_kernels(model):
    found = report(model, "--kernels")
    assert found["count"] == found["filled"] == len([slot for slot in found["slots"] if not slot["parts"]]) == 2 + 12 * CONFIG["num_hidden_layers"]
    by_path = {slot["path"]: slot for slot in found["slots"]}
    slot = by_path["encoder.layer.1.attention.output"]
    assert slot["layer"] == "AddLayerNorm"
    assert slot["kernel"] == "khub/norm"
    assert slot["function"] == "add_layer_norm"
    assert slot["variant"].startswith("tvm-ffi")
    assert slot["reason"] is None
    assert slot["deterministic"] is True
    assert slot["trust"] == [{"about": "publisher", "decision": "accepted", "words": "khub/norm: came with khub"}]


def test_report_without_kernels(model):
    found = report(model)
    assert found["filled"] == 0
    assert all(slot["kernel"] is None and "weren't asked for" in slot["reason"] and slot["trust"] is None for slot in found["slots"])


def test_report_says_what_switched_kernels_off(model):
    found = report(model, "--kernels", env={**os.environ, "USE_HUB_KERNELS": "0"})
    assert found["filled"] == 0
    assert all("USE_HUB_KERNELS" in slot["reason"] for slot in found["slots"])


def test_table_goes_where_no_embeddings_go(tmp_path, model):
    alone = khub("--model", model, "--report")
    assert b"kernels serve 0 of 26 slots" in alone.stdout
    printed = khub("--model", model, "--report", "hello")
    assert b"slots" not in printed.stdout and b"kernels serve 0 of 26 slots" in printed.stderr
    written = khub("--model", model, "--report", "-o", tmp_path / "out.npy", "hello")
    assert b"kernels serve 0 of 26 slots" in written.stdout


def test_json_is_on_stdout_whatever_else_is_said(tmp_path, model):
    """A text that is cut is a notice, and stands on the other stream."""
    texts = ("word " * 1000, "hello")
    plain = khub("--model", model, *texts)
    assert khub("--model", model, "--json", *texts).stdout == plain.stdout
    done = khub("--model", model, "--kernels", "--report", "--json", *texts)
    assert done.returncode == 0 and b"were cut" in done.stderr and b"{" not in done.stderr
    first, *vectors = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["count"] == 26 and [len(v) for v in vectors] == [CONFIG["hidden_size"]] * 2
    written = khub("--model", model, "--report", "--json", "-o", tmp_path / "out.npy", "hello")
    assert json.loads(written.stdout)["count"] == 26
    assert khub("--model", model, "--json", "-o", tmp_path / "out.npy", "hello").stdout == b""


def test_mapping_from_a_file(tmp_path, model):
    (tmp_path / "mapping.json").write_text('{"LayerNorm": "khub/norm", "Linear": "", "GeLU": "khub/no-such-kernel"}')
    args = ("--model", model, f"--kernels={tmp_path / 'mapping.json'}")
    found = report(model, *args[2:])
    assert found["filled"] == 5
    reasons = {slot["layer"]: slot["reason"] for slot in found["slots"]}
    assert "no-such-kernel" in reasons["GeLU"]
    assert "standard" in reasons["Linear"]
    done = khub(*args, "hello")
    assert done.returncode == 0
    assert "kernels serve 5 of 26 slots" in done.stderr.decode()
    refused(khub(*args, "--require", "hello"), 3, "mapping.json: required, but no kernel serves", "GeLU (2 of 2 slots, the first encoder.layer.0.intermediate", "no-such-kernel")


def test_L1_nothing_is_mapped(tmp_path, model):
    """Kernels asked for, none of the model's layers mapped: said, with the reasons; an error where that must not be."""
    (tmp_path / "none.json").write_text('{"Softmax": "khub/softmax"}')
    args = ("--model", model, f"--kernels={tmp_path / 'none.json'}")
    done = khub(*args, "--report")
    assert done.returncode == 0 and b"kernels serve 0 of 26 slots" in done.stdout and b"standard: the mapping has no kernel for Linear" in done.stdout
    assert b"names a kernel for Softmax, and no slot is of this layer" in done.stderr
    refused(khub(*args, "--require", "hello"), 3, "required, but no kernel serves", "Softmax: no slot is of this layer")
    refused(khub(*args, "--fallback", "refuse", "hello"), 3, "no fallback is allowed", "Attention (2 of 2 slots")
    refused(khub("--model", model, "--fallback", "refuse", "hello"), 2, "--fallback without --kernels")


@pytest.mark.parametrize(
    "pattern, like",
    [("encoder.layr.1.**", "encoder.layer.1.intermediate.intermediate_act_fn"), ("encoder.layer.1.*", "encoder.layer.1.intermediate.intermediate_act_fn"), ("**.act", "encoder.layer.0.intermediate.intermediate_act_fn")],
)
def test_a_pattern_that_takes_no_slot_is_told(model, pattern, like):
    """With the path that is most like it; where a kernel is required it is an error."""
    key = f"GeLU({pattern})"
    words = f"none of the 2 slots of GeLU has such a path, as {like} has"
    args = ("--model", model, f"--kernels={key}=khub/activation:GeLU")
    done = khub(*args, "hello")
    assert done.returncode == 0 and done.stderr.decode().count(f"names a kernel for {key}, and {words}") == 1
    refused(khub(*args, "--require", "hello"), 3, "required, but no kernel serves", f"{key}: {words}")
    refused(khub(*args, "--fallback", "refuse", "hello"), 3, "no fallback is allowed", f"{key}: {words}")
    taken = khub("--model", model, "--kernels=GeLU(encoder.layer.1.**)=khub/activation:GeLU", "--require", "hello")
    assert (taken.returncode, taken.stderr) == (0, b"")


def test_only_what_a_mapping_names_is_noticed_and_required(tmp_path, model):
    (tmp_path / "one.json").write_text('{"LayerNorm": "khub/norm", "Linear": ""}')
    done = khub("--model", model, f"--kernels={tmp_path / 'one.json'}", "--require", "hello")
    assert (done.returncode, done.stderr) == (0, b"")
    found = report(model, f"--kernels={tmp_path / 'one.json'}")
    assert {slot["layer"] for slot in found["slots"] if slot["mapped"]} == {"LayerNorm"}


def test_an_entry_that_says_its_layer_serves_no_other(model):
    kernels = "LayerNorm=khub/quantized:LinearInt8,Linear=khub/quantized:LinearInt8Weight"
    slots = report(model, f"--kernels={kernels}", "--threads", "2")["slots"]
    served = {slot["function"] for slot in slots if slot["layer"] == "Linear"}
    assert "linear_int8_weight" in served and "linear_packed" not in served
    assert all("LinearInt8 serves Linear, the slot is a LayerNorm" in slot["reason"] for slot in slots if slot["layer"] == "LayerNorm")


FAILING = Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos", "weighed")


def test_a_kernel_that_fails(tmp_path, model):
    """A failure names slot and kernel; --on-error standard gives the standard function's vectors, and counts."""
    (tmp_path / "map.json").write_text(json.dumps({"GeLU": {"kernel": str(FAILING), "function": "fail_late"}}))
    args = ("--model", model, f"--kernels={tmp_path / 'map.json'}", "--require")
    refused(khub(*args, "hello"), 1, "encoder.layer.0.intermediate.intermediate_act_fn", "weighed", "no more")
    done = khub(*args, "--on-error", "standard", "hello", "and more")
    assert done.returncode == 0 and done.stdout == khub("--model", model, "hello", "and more").stdout
    words = done.stderr.decode()
    assert words.count("the standard function does again what failed") == CONFIG["num_hidden_layers"]
    assert f"kernels failed in {CONFIG['num_hidden_layers']} calls of {CONFIG['num_hidden_layers']} slots" in words


def test_the_report_says_what_was_done_again(tmp_path, model):
    n = CONFIG["num_hidden_layers"]
    (tmp_path / "map.json").write_text(json.dumps({"GeLU": {"kernel": str(FAILING), "function": "fail_late"}}))
    args = ("--model", model, f"--kernels={tmp_path / 'map.json'}", "--report", "--on-error", "standard")
    table = khub(*args, "-o", tmp_path / "out.npy", "hello").stdout.decode().splitlines()
    assert table[-1].split(maxsplit=4)[:4] == [str(n), "×", "encoder.layer.*.intermediate.intermediate_act_fn", "GeLU"]
    assert table[-1].endswith(f"the standard function did {n} calls again that the kernel failed in")
    *_, last = map(json.loads, khub(*args, "--json", "hello", "and more").stdout.splitlines())
    slot = "encoder.layer.{}.intermediate.intermediate_act_fn"
    assert last == {"retried": [{"path": slot.format(i), "layer": "GeLU", "calls": 1} for i in range(n)], "calls": n}
    *_, last = map(json.loads, khub("--model", model, "--kernels", "--report", "--json", "--on-error=standard", "hello").stdout.splitlines())
    assert last == {"retried": [], "calls": 0}


def test_N2_the_exact_ones(tmp_path):
    """--exact keeps the kernels out that may change a bit; so does switching off the one that does."""
    made = write_model(tmp_path / "model", config={"hidden_act": "relu"})
    n, standard = CONFIG["num_hidden_layers"], khub("--model", made, "hello", "a cat").stdout
    done = khub("--model", made, "--kernels=default,LinearReLU=", "--exact", "--report", "--json", "hello", "a cat")
    found = json.loads(done.stdout.splitlines()[0])
    assert {slot["layer"] for slot in found["slots"] if slot["kernel"]} == {"ReLU"} and found["filled"] == n
    reasons = {slot["reason"] for slot in found["slots"] if slot["layer"] == "LayerNorm"}
    assert reasons == {"khub/norm: layer_norm doesn't promise results right to the last bit, as is asked for"}
    assert done.stdout.split(b"\n", 1)[1] == standard
    batch = FAILING.with_name("liar_batch")
    (tmp_path / "map.json").write_text(json.dumps({"ReLU": str(batch)}))
    assert khub("--model", made, f"--kernels={tmp_path / 'map.json'}", "hello", "a cat").stdout != standard
    assert khub("--model", made, f"--kernels={tmp_path / 'map.json'},ReLU=", "hello", "a cat").stdout == standard


@pytest.mark.parametrize("function, how", [("abort_now", "SIGABRT"), ("exit_now", "it called exit(5)")])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_kernel_that_ends_the_process(tmp_path, model, function, how, threads):
    """The slot is named that was running, and its kernel."""
    kernel = FAILING.with_name("in_call")
    pick = f"GeLU(encoder.layer.1.**)"
    (tmp_path / "map.json").write_text(json.dumps({pick: {"kernel": str(kernel), "function": function}}))
    plain = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_abort=0:detect_leaks=0"}
    done = khub("--model", model, f"--kernels={tmp_path / 'map.json'}", "--threads", threads, "hello", env=plain)
    refused(done, 1, f"khub: encoder.layer.1.intermediate.intermediate_act_fn ({kernel}): calling it ended the process: {how}")


def test_what_a_kernel_prints_is_no_result(tmp_path):
    """It goes to stderr."""
    made = write_model(tmp_path / "model", config={"hidden_act": "relu"})
    (tmp_path / "map.json").write_text(json.dumps({"ReLU": str(FAILING.with_name("liar_prints"))}))
    args = ("--model", made, f"--kernels={tmp_path / 'map.json'}", "--require", "--report", "--json", "hello", "a cat")
    done = khub(*args)
    first, *rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and first["filled"] == CONFIG["num_hidden_layers"] and len(rows) == 2
    for word in ("loaded", "relu"):
        assert f'{{"{word}": true}}' in done.stderr.decode()
    nobody = subprocess.run([KHUB, "embed", *map(str, args)], stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2), timeout=120)
    assert (nobody.returncode, nobody.stdout) == (0, done.stdout)


def test_what_may_serve(tmp_path, model):
    n = CONFIG["num_hidden_layers"]
    assert khub("--model", model, "--kernels", "--fallback", "refuse", "--deterministic", "hello").returncode == 0
    refused(khub("--model", model, "--kernels", "--mode", "training", "--fallback=refuse", "hello"), 3, "has no backward", "AddLayerNorm (", "Linear (", f"LinearGeLU ({n} of {n} slots)")
    (tmp_path / "map.json").write_text(json.dumps({"GeLU": {"kernel": str(FAILING), "function": "set"}, "Linear": {"cpu": {"inference": "./nowhere", "fallback": "khub/linear"}}}))
    args = ("--model", model, f"--kernels={tmp_path / 'map.json'}")
    refused(khub(*args, "--fallback", "refuse", "hello"), 3, "no fallback is allowed", "Attention (2 of 2 slots")
    assert b"doesn't promise to be deterministic" in khub(*args, "--deterministic", "--report").stdout
    found = report(model, args[2])
    linear = next(slot for slot in found["slots"] if slot["layer"] == "Linear")
    candidates = [(Path(c["kernel"]).name, c["mode"], c["serves"]) for c in linear["candidates"]]
    assert candidates == [("nowhere", "inference", False), ("linear", "fallback", True)]
    assert linear["candidates"][0]["reason"] and linear["repository"] == "khub/linear" and linear["version"] == 1
    lines = khub(*args, "--report").stdout.decode().splitlines()
    assert any(line.strip().startswith("not ") and "nowhere (cpu, inference)" in line for line in lines)


def test_paths_of_a_mapping_start_from_its_folder(tmp_path, model):
    """As those of a compiler's #include "..." do, so that a mapping can be moved with its kernels."""
    norm = Path(os.environ["KHUB_STAGE"], "share/khub/kernels/khub/norm")
    shutil.copytree(norm, tmp_path / "maps" / "my-norm")
    (tmp_path / "maps" / "map.json").write_text('{"LayerNorm": "./my-norm", "AddLayerNorm": "../maps/my-norm"}')
    for where, name in ((tmp_path, "maps/map.json"), (tmp_path / "maps", "map.json"), ("/", tmp_path / "maps/map.json")):
        done = khub("--model", Path(model).resolve(), f"--kernels={name}", "--require", "hello", cwd=where)
        assert done.returncode == 0, done.stderr


def test_single_layers_over_the_default_mapping(tmp_path, model):
    """--kernels=ITEMS, or ITEMS as the next word: what has the form of an item is no text."""
    norm = Path(os.environ["KHUB_STAGE"], "share/khub/kernels/khub/norm")
    whole = report(model, "--kernels")
    for how in ([f"--kernels=LayerNorm={norm}:LayerNorm,Attention="], ["--kernels", f"LayerNorm={norm}:LayerNorm,Attention="]):
        found = report(model, *how)
        by_layer = {slot["layer"]: slot for slot in found["slots"] if not slot["run"]}
        assert {slot["kernel"] for slot in found["slots"] if slot["layer"] == "LayerNorm"} == {str(norm)}  # and no run in its place
        assert by_layer["LinearGeLU"]["kernel"] == "khub/linear" and by_layer["AddLayerNorm"]["kernel"] is None
        assert by_layer["Attention"]["kernel"] is None and not by_layer["Attention"]["mapped"]
        assert whole["filled"] - found["filled"] == 1 + 3 * CONFIG["num_hidden_layers"]  # embeddings.sum; two Adds, Attention
    (tmp_path / "map.json").write_text('{"Softmax": "", "GeLU": "khub/activation"}')
    items = "GeLU=,LayerNorm(encoder.layer.0.**)=khub/norm,AddLayerNorm(encoder.layer.1.output)=khub/norm"
    found = report(model, f"--kernels={tmp_path / 'map.json'},{items}")
    assert {slot["path"] for slot in found["slots"] if slot["kernel"] and not slot["run"]} == {
        "encoder.layer.0.attention.output.LayerNorm", "encoder.layer.0.output.LayerNorm", "encoder.layer.1.output"}
    found = report(model, "--kernels", "LayerNorm=khub/norm", env={**os.environ, "DISABLE_KERNEL_MAPPING": "1"})
    assert {slot["layer"] for slot in found["slots"] if slot["kernel"]} == {"LayerNorm"}  # asked for by name; the default one is away


def test_a_text_that_looks_like_an_item(model):
    refused(khub("--model", model, "--kernels", "x=5", "hello"), 2, 'x=5: there is no layer "x"', "if x=5 is a text, write --kernels -- x=5")
    refused(khub("--model", model, "--kernels", "Gelu=khub/norm", "hello"), 2, "did you mean GeLU?")
    refused(khub("--model", model, "--kernels", "a + b(c)=d", "hello"), 2, 'there is no layer "a"')
    found = report(model, "--kernels", "Linear(**.dense) + GeLU=")
    assert [slot["kernel"] for slot in found["slots"] if slot["layer"] == "LinearGeLU"] == [None] * CONFIG["num_hidden_layers"]
    for text in ("E = mc2", "a b=c", "=", "2=3+", "so: x=5", "a +", "a + b", "a(b c)=d", "a(b", "+a=b"):
        assert vectors("--model", model, "--kernels", text).shape == (1, 8)
    assert vectors("--model", model, "--kernels", "--", "x=5").shape == (1, 8)


def test_a_mapping_in_place_of_the_first_text(tmp_path, model):
    """--kernels FILE would embed the file's name."""
    (tmp_path / "map.json").write_text("{}")
    refused(khub("--model", model, "--kernels", "map.json", "hello", cwd=tmp_path), 2, "--kernels=map.json", "--kernels -- map.json")
    assert vectors("--model", model, "--kernels", "--", "map.json").shape == (1, 8)
    assert vectors("--model", model, "--kernels", "hello", "map.json").shape == (2, 8)


def test_readable_report_groups_what_is_alike(tmp_path, model):
    lines = khub("--model", model, "--kernels", "--report").stdout.decode().splitlines()
    layers, each = CONFIG["num_hidden_layers"], 12
    assert len(lines) == 1 + 2 + each + 1
    assert lines[1].split()[:4] == ["1", "×", "embeddings.sum", "Embedding"]
    assert lines[2].split()[:4] == ["1", "×", "embeddings.LayerNorm", "LayerNorm"]
    rows = [line.split() for line in lines[3:-1]]
    assert all(row[0] == str(layers) and row[2].startswith("encoder.layer.*.") for row in rows)
    assert sum(int(line.split()[0]) for line in lines[1:-1]) == 2 + each * layers
    assert len({line.index(line.split()[4]) for line in lines[1:-1]}) == 1  # a column


# --- shadow mode


def test_shadow_keeps_the_standard_result(model):
    texts = ["hello", "hello world, twice", "hello"]
    standard = khub("--model", model, *texts)
    shadowed = khub("--model", model, "--shadow", *texts)
    assert (shadowed.returncode, shadowed.stdout) == (0, standard.stdout)
    table = shadowed.stderr.decode().splitlines()
    assert table[0].split()[:2] == ["slots", "layer"] and table[-1].startswith("with the kernels the embeddings differ by at most")
    assert any("encoder.layer.*.intermediate " in line and "LinearGeLU" in line for line in table)


def test_shadow_as_json(model):
    """What is said of the embeddings is what the two commands differ by."""
    texts = ["hello", "hello world"]
    done = khub("--model", model, "--shadow=encoder.layer.1.**", "--json", *texts)
    *rows, last = map(json.loads, done.stdout.decode().splitlines())
    assert {slot["path"].split(".")[2] for slot in last["slots"]} == {"1"}
    assert all(slot["failed"] == 0 for slot in last["slots"])
    called = {slot["path"]: slot for slot in last["slots"] if slot["calls"]}
    assert called["encoder.layer.1.output"]["outputs"][0]["count"] % CONFIG["hidden_size"] == 0
    assert "encoder.layer.1.output.LayerNorm" not in called  # the run was called in its place
    with_kernels = np.array(list(map(json.loads, khub("--model", model, "--kernels", *texts).stdout.decode().splitlines())), np.float32)
    found = np.array(rows, np.float32)
    assert last["embeddings"]["count"] == found.size
    assert last["embeddings"]["identical"] == (found == with_kernels).sum()
    assert last["embeddings"]["absolute"]["value"] == np.abs(found.astype(float) - with_kernels.astype(float)).max()


def test_json_has_what_is_asked_for_in_one_order(tmp_path, model):
    """A line each: the report, the embeddings, what the calls showed. Nobody gets what isn't asked for."""
    def kinds(*args):
        done = khub("--model", model, "--json", *args, "hello")
        assert (done.returncode, done.stderr) == (0, b"")
        lines = map(json.loads, done.stdout.splitlines())
        return ["embedding" if isinstance(line, list) else next(k for k in ("filled", "retried", "embeddings") if k in line) for line in lines]

    assert kinds() == kinds("--kernels") == ["embedding"]
    assert kinds("--report") == kinds("--kernels", "--report") == ["filled", "embedding"]
    assert kinds("--shadow") == ["embedding", "embeddings"]
    everything = ("--shadow", "--report", "--on-error=standard")
    assert kinds(*everything) == ["filled", "embedding", "retried", "embeddings"]
    assert kinds(*everything, "-o", tmp_path / "out.npy") == ["filled", "retried", "embeddings"]


def test_a_function_in_the_place_of_a_layer(model):
    """The error says how a function is named, and its words work as an item."""
    args = ("--model", model, "--report", "--json", "--require")
    refused(khub(*args, "--kernels=GeLU=khub/activation:gelu"), 3, '"gelu", which is a function: a mapping says {"kernel": "khub/activation", "function": "gelu"}')
    item = '--kernels=GeLU={"kernel": "khub/activation", "function": "gelu"},LayerNorm='
    done = khub(*args, item)
    assert (done.returncode, done.stderr) == (0, b"")
    found = {slot["layer"]: slot for slot in json.loads(done.stdout)["slots"]}
    assert found["GeLU"]["function"] == "gelu" and found["LayerNorm"]["function"] is None
    refused(khub(*args, '--kernels=GeLU={"kernel": "khub/activation"'), 1, "GeLU={")


def test_shadow_refused(model):
    refused(khub("--model", model, "--shadow", "--no-kernels", "hello"), 2, "--shadow and --no-kernels at once")
    refused(khub("--model", model, "--shadow", "--report"), 2, "--shadow without a text")
    refused(khub("--model", model, "--shadow=nothing.*", "hello"), 1, "nothing.*", "none of the")


# --- refused


def change(made, name, **fields):
    path = made / name
    value = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({key: v for key, v in value.items() if v is not None}))


def weights(made, **changes):
    """Other tensors: a shape, or None for none of that name."""
    tensors = make_tensors(CONFIG)
    for name, shape in changes.items():
        name = name.replace("__", ".")
        tensors.pop(name)
        if shape:
            tensors[name] = np.zeros(shape, np.float32)
    (made / "model.safetensors").write_bytes(safetensors(tensors))


def cut_file(made, by, name="model.safetensors"):
    raw = (made / name).read_bytes()
    (made / name).write_bytes(raw[:by] if by < 0 else raw + bytes(by))


def edit_header(made, old, new):
    raw = (made / "model.safetensors").read_bytes()
    assert old in raw and len(old) == len(new)
    (made / "model.safetensors").write_bytes(raw.replace(old, new, 1))


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def write(made, name, text):
    (made / name).write_text(text)


QUERY = "encoder__layer__0__attention__self__query__weight"
BAD = {
    "no config": (lambda m: (m / "config.json").unlink(), "config.json", "No such file"),
    "config not JSON": (lambda m: write(m, "config.json", "{"), "config.json:1: not valid JSON"),
    "config an array": (lambda m: write(m, "config.json", "[]"), "config.json: is an array"),
    "config deep": (lambda m: write(m, "config.json", "[" * 100000), "nested deeper"),
    "config a directory": (lambda m: ((m / "config.json").unlink(), (m / "config.json").mkdir()), "is a directory"),
    "architecture": (lambda m: change(m, "config.json", model_type="llama"), "config.json", '"llama"'),
    "no architecture": (lambda m: change(m, "config.json", model_type=None), '"model_type" is missing'),
    "positions": (lambda m: change(m, "config.json", position_embedding_type="relative_key"), '"relative_key"'),
    "activation": (lambda m: change(m, "config.json", hidden_act="mish"), '"mish"'),
    "field missing": (lambda m: change(m, "config.json", vocab_size=None), '"vocab_size" is missing'),
    "field a string": (lambda m: change(m, "config.json", hidden_size="8"), '"hidden_size" is a string, an integer'),
    "field negative": (lambda m: change(m, "config.json", num_hidden_layers=-1), '"num_hidden_layers" is -1'),
    "field huge": (lambda m: change(m, "config.json", intermediate_size=1 << 40), '"intermediate_size" is 1099511627776'),
    "heads": (lambda m: change(m, "config.json", num_attention_heads=3), '"hidden_size" 8', '"num_attention_heads" 3'),
    "more layers": (lambda m: change(m, "config.json", num_hidden_layers=3), "encoder.layer.2.attention.self.query.weight", "missing"),
    "no weights": (lambda m: (m / "model.safetensors").unlink(), "model.safetensors", "no such file"),
    "index without files": (
        lambda m: ((m / "model.safetensors").unlink(), write(m, "model.safetensors.index.json", "{}")),
        'model.safetensors.index.json: "weight_map" is missing',
    ),
    "a file of several missing": (
        lambda m: (split_weights(m) / "model-00002-of-00003.safetensors").unlink(),
        "model-00002-of-00003.safetensors: there is no such file",
        'the tensor "embeddings.position_embeddings.weight"',
    ),
    "a file of several cut off": (
        lambda m: cut_file(split_weights(m), -4, "model-00002-of-00003.safetensors"),
        "model-00002-of-00003.safetensors: tensor",
        "cut off?",
    ),
    "a tensor in none of several files": (
        lambda m: (weights(m, **{QUERY: None}), split_weights(m)),
        'model.safetensors.index.json: the tensor "encoder.layer.0.attention.self.query.weight" [8,8] is missing',
    ),
    "a tensor of another shape in several files": (
        lambda m: (weights(m, **{QUERY: (8, 4)}), split_weights(m, 1)),
        "model-00001-of-00001.safetensors: the tensor",
        "[8,4]",
    ),
    "an index that leads out": (
        lambda m: edit(split_weights(m) / "model.safetensors.index.json", "model-00003-of", "../model-00003-of"),
        'is said to be in "../model-00003-of-00003.safetensors"',
    ),
    "weights are a pointer": (
        lambda m: write(m, "model.safetensors", "version https://git-lfs.github.com/spec/v1\n"),
        "model.safetensors",
        "not a safetensors file?",
    ),
    "tensor missing": (
        lambda m: weights(m, **{QUERY: None}),
        'the tensor "encoder.layer.0.attention.self.query.weight" [8,8] is missing',
    ),
    "tensor of another shape": (lambda m: weights(m, **{QUERY: (8, 4)}), "query.weight", "[8,4]", "[8,8]"),
    "float64": (lambda m: (m / "model.safetensors").write_bytes(safetensors(make_tensors(CONFIG), "F64")), "F64"),
    "unknown dtype": (lambda m: edit_header(m, b'"F32"', b'"X32"'), "unknown dtype", "X32"),
    "weights cut off": (lambda m: cut_file(m, -4), "model.safetensors", "cut off?"),
    "weights too long": (lambda m: cut_file(m, 4), "model.safetensors", "the file holds"),
    "header too long": (lambda m: edit_header(m, (m / "model.safetensors").read_bytes()[:8], b"\xff" * 8), "header"),
    "offsets": (lambda m: edit_header(m, b'"data_offsets": [0, ', b'"data_offsets": [1, '), "data_offsets [1,"),
    "no tokenizer": (lambda m: (m / "vocab.txt").unlink(), "tokenizer.json", "vocab.txt"),
    "modules an object": (lambda m: write(m, "modules.json", "{}"), "modules.json: is an object"),
    "module after": (
        lambda m: write(m, "modules.json", json.dumps([*MODULES[:2], {**MODULES[2], "type": "sentence_transformers.models.Dense"}])),
        "sentence_transformers.models.Dense",
    ),
    "path leads out": (
        lambda m: write(m, "modules.json", json.dumps([MODULES[0], {**MODULES[1], "path": "x/../../y"}, MODULES[2]])),
        '"x/../../y" leads out',
    ),
    "no pooling": (lambda m: (m / "1_Pooling" / "config.json").unlink(), "1_Pooling/config.json"),
    "pooling by max": (
        lambda m: write(m, "1_Pooling/config.json", '{"pooling_mode_max_tokens": true}'),
        '"max_tokens"',
    ),
    "two poolings": (
        lambda m: write(m, "1_Pooling/config.json", '{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}'),
        "mean_tokens",
        "cls_token",
    ),
    "no mode": (lambda m: write(m, "1_Pooling/config.json", "{}"), "pooling_mode"),
    "width": (
        lambda m: write(m, "1_Pooling/config.json", json.dumps({**POOLING, "word_embedding_dimension": 9})),
        "vectors of 9",
        '"hidden_size" 8',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_model(tmp_path, name):
    spoil, *words = BAD[name]
    made = write_model(tmp_path / "model")
    spoil(made)
    before = sorted(tmp_path.rglob("*"))
    refused(khub("--model", made, "-o", tmp_path / "out.npy", "hello"), 1, *words)
    assert sorted(tmp_path.rglob("*")) == before  # nothing written


def test_no_model(tmp_path):
    refused(khub("--model", tmp_path / "nowhere", "hello"), 1, tmp_path / "nowhere", "there is no such directory")
    (tmp_path / "empty").mkdir()
    done = khub("--model", tmp_path / "empty", "hello")
    refused(done, 1, "empty: is no model: it holds neither modules.json nor config.json")
    assert len(done.stderr.splitlines()) == 1
    (tmp_path / "file").write_text("")
    refused(khub("--model", tmp_path / "file", "hello"), 1, "is a file")


@pytest.mark.parametrize("name", ["nowhere", "a/b/c", "~/model", "model/", "@main", ".hidden/model"])
def test_neither_a_directory_nor_a_name_of_the_hub(tmp_path, name):
    refused(khub("--model", name, "hello", cwd=tmp_path), 1, "neither a directory", "No such file", "ORG/NAME")


def test_no_lines(tmp_path, model):
    refused(khub("--model", model, "--file", tmp_path / "nowhere"), 1, tmp_path / "nowhere", "No such file")
    refused(khub("--model", model, "--file", tmp_path), 1, tmp_path, "directory")


def test_bad_mapping(tmp_path, model):
    refused(khub("--model", model, f"--kernels={tmp_path / 'nowhere'}", "hello"), 1, tmp_path / "nowhere")
    (tmp_path / "mapping").write_text("[")
    refused(khub("--model", model, f"--kernels={tmp_path / 'mapping'}", "hello"), 1, f"{tmp_path / 'mapping'}:1: not valid JSON")
    (tmp_path / "mapping").write_text('{"GeLU": 1, "Gelu": "khub/activation"}')
    done = khub("--model", model, f"--kernels={tmp_path / 'mapping'}", "hello")
    assert f"GeLU: standard function: {tmp_path / 'mapping'}: GeLU: is an integer" in done.stderr.decode()
    assert f'warning: {tmp_path / "mapping"}: Gelu: there is no layer "Gelu": did you mean GeLU?' in done.stderr.decode()


@pytest.mark.parametrize(
    "args, words",
    [
        ([], "--model NAME is missing"),
        (["--model"], "--model needs a value"),
        (["--model", "x"], "no text"),
        (["--model", "x", "--file", "y", "z"], "not both"),
        (["--model", "x", "--kernels", "--no-kernels", "y"], "at once"),
        (["--model", "x", "--kernels=", "y"], '--kernels needs a value'),
        (["--model", "x", "--require", "y"], "--require without --kernels"),
        (["--model", "x", "--deterministic", "y"], "--deterministic without --kernels"),
        (["--model", "x", "--kernels", "--require", "--fallback", "refuse", "y"], "--require and --fallback at once"),
        (["--model", "x", "--kernels", "--fallback", "no", "y"], "--fallback no: it is one of allow, named, refuse"),
        (["--model", "x", "--kernels", "--on-error", "no", "y"], "--on-error no: it is one of fail, standard"),
        (["--model", "x", "--kernels", "--mode", "fallback", "y"], "--mode fallback: it is inference or training"),
        (["--model", "x", "--report", "-o", "z"], "-o without a text"),
        (["--model", "x", "--threads", "0", "y"], "--threads"),
        (["--model", "x", "--no-such-option", "y"], "--no-such-option"),
    ],
)
def test_usage(args, words):
    refused(khub(*args), 2, words)


def test_help_starts_with_an_example():
    assert khub("--help").stdout.startswith(b"khub embed --model ")


# --- disks and pipes


def test_full_disk(tmp_path, model):
    with open("/dev/full", "wb") as full:
        done = khub("--model", model, "hello", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 1
    assert b"No space left" in done.stderr

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    out = tmp_path / "out.npy"
    done = khub("--model", model, "-o", out, "hello", preexec_fn=small_files)
    refused(done, 1, out)
    assert list(tmp_path.iterdir()) == []


def test_place_that_isnt_there(tmp_path, model):
    out = tmp_path / "nowhere" / "out.npy"
    refused(khub("--model", model, "-o", out, "hello"), 1, out, "No such file")


def test_closed_stdout(tmp_path, model):
    done = khub("--model", model, "hello", stdout=None, stderr=subprocess.PIPE, capture_output=False, preexec_fn=lambda: os.close(1))
    assert done.returncode == 1
    assert b"stdout" in done.stderr or b"write" in done.stderr


def test_reader_that_goes_away(tmp_path, model):
    lines = tmp_path / "lines"
    lines.write_text("hello world\n" * 5000)
    process = subprocess.Popen([KHUB, "embed", "--model", model, "--file", lines], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""  # as head does: that is no fault of anybody
    assert process.wait(60) == 1


@pytest.mark.parametrize("target", ["../../blobs/4d7a", "loop"])
@pytest.mark.parametrize("name", ["modules.json", "sentence_bert_config.json", "tokenizer_config.json", "tokenizer.json"])
def test_a_link_that_leads_nowhere_is_no_absent_file(tmp_path, name, target):
    """As in a cache that lost a file: without modules.json the vectors would be others."""
    model = write_model(tmp_path / "m")
    (model / name).unlink(missing_ok=True)
    (model / name).symlink_to(name if target == "loop" else target)
    refused(khub("--model", model, "hello"), 1, f"{model}/{name}: can't open it: ")
