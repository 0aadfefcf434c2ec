"""Models of the Hub in khub embed and khub tokenize: which files are fetched, when, and that they are the same model."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from small_hub import KHUB, VARIANT, Hub, fake, files_of, khub

TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "cli")]
from serving import serving  # noqa: E402
from tiny_model import MODULES, split_weights, write_model  # noqa: E402

MINILM = pathlib.Path(os.environ["KHUB_MODEL"])
TEXTS = ("hello world", "", "a cat sat on the mat .")
TOKENIZER = {"vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
OTHERS = {"README.md": b"words", "pytorch_model.bin": b"no", "onnx/model.onnx": b"no", "onnx/config.json": b"{}",
          "data_config.json": b"{}", "adapter_model.safetensors": b"no", "vocab.txt.bak": b"no"}


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close()


@pytest.fixture
def model(tmp_path, hub):
    """A model in a directory, and as org/tiny on the Hub, beside files that nothing here reads."""
    made = write_model(tmp_path / "made")
    (made / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    hub.repos["models/org/tiny"] = {"main": {**files_of(made), **OTHERS}}
    return made


def ok(run):
    assert run.returncode == 0, run.stderr
    return run.stdout


def refused(run, status, *words):
    assert (run.returncode, run.stdout) == (status, ""), run.stderr
    for word in words:
        assert word in run.stderr, run.stderr


def fetched(hub):
    return sorted(p.split("/", 5)[-1] for p in hub.paths() if "/resolve/" in p)


def embed(hub, cache, model, *args, **options):
    return khub(hub, cache, "embed", "--model", model, *args, *TEXTS, **options)


# --- what is fetched


def test_what_a_model_needs_is_fetched_once(hub, cache, model):
    expected = ok(embed(None, cache, model))
    assert ok(embed(hub, cache, "org/tiny")) == expected
    assert fetched(hub) == sorted(files_of(model))
    for args in ((), ("--offline",), ("--kernels",)):
        run = embed(hub, cache, "org/tiny", *args)
        assert ok(run) == expected if "--kernels" not in args else ok(run)
        assert hub.paths() == []
    assert ok(embed(hub, cache, "org/tiny", "--refresh")) == expected
    assert len(hub.paths()) == 1


def test_revisions(hub, cache, model, tmp_path):
    other = write_model(tmp_path / "other", seed=2)
    first, second = hub.repos["models/org/tiny"]["main"], files_of(other)
    hub.repos["models/org/tiny"]["next"] = second
    expected = ok(embed(None, cache, other))
    assert ok(embed(hub, cache, "org/tiny@next")) == expected
    assert ok(embed(hub, cache, f"org/tiny@{hub.commit(second)}")) == expected
    assert ok(embed(hub, cache, f"org/tiny@{hub.commit(first)}")) == ok(embed(None, cache, model)) != expected


@pytest.mark.parametrize("count", [1, 3])
def test_weights_in_several_files(hub, cache, model, count):
    expected = ok(embed(None, cache, model))
    split = files_of(split_weights(model, count))
    shards = {name for name in split if name.startswith("model-")}
    assert len(shards) == count
    hub.repos["models/org/split"] = {"main": {**OTHERS, **split}}
    assert ok(embed(hub, cache, "org/split")) == expected
    paths = hub.paths()
    assert len(paths) == len(split) + 2  # branches, list of files
    assert {p.split("/", 5)[-1] for p in paths if "/resolve/" in p} == set(split)
    assert ok(embed(hub, cache, "org/split")) == ok(embed(None, cache, "org/split", "--offline")) == expected
    assert hub.paths() == []


def test_one_file_of_weights_stands_before_several(hub, cache, model, tmp_path):
    split = files_of(split_weights(write_model(tmp_path / "split", seed=2)))
    hub.repos["models/org/both"] = {"main": {**split, **files_of(model)}}
    assert ok(embed(hub, cache, "org/both")) == ok(embed(None, cache, model))
    assert not [name for name in fetched(hub) if name.startswith("model-")]


def test_a_shard_that_the_repository_lacks(hub, cache, model):
    files = files_of(split_weights(model))
    del files["model-00002-of-00003.safetensors"]
    hub.repos["models/org/split"] = {"main": files}
    refused(embed(hub, cache, "org/split"), 1, "model-00002-of-00003.safetensors: there is no such file", "index.json")


def test_a_model_that_was_renamed(hub, cache, model):
    expected = ok(embed(None, cache, model))
    hub.repos["models/new/split"] = {"main": files_of(split_weights(model))}
    hub.moved["models/org/split"] = "new/split"
    for arguments in ((), (), ("--offline",)):
        assert ok(embed(hub, cache, "org/split", *arguments)) == expected
    assert len(list((cache / "models--org--split" / "snapshots").glob("*/model-*.safetensors"))) == 3


def test_an_encoder_in_a_folder_of_its_own(hub, cache, tmp_path):
    modules = [{**MODULES[0], "path": "0_Transformer"}, *MODULES[1:]]
    made = write_model(tmp_path / "old", modules=modules)
    (made / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (made / name).rename(made / "0_Transformer" / name)
    hub.repos["models/org/old"] = {"main": {**files_of(made), **OTHERS}}
    assert ok(embed(hub, cache, "org/old")) == ok(embed(None, cache, made))
    assert fetched(hub) == sorted(files_of(made))


def test_a_tokenizer_comes_alone(hub, cache, model):
    expected = ok(khub(None, cache, "tokenize", "--model", model, *TEXTS))
    assert ok(khub(hub, cache, "tokenize", "--model", "org/tiny", *TEXTS)) == expected
    assert set(fetched(hub)) == set(files_of(model)) & TOKENIZER
    assert ok(khub(hub, cache, "tokenize", "--model", "org/tiny", "--offline", *TEXTS)) == expected
    assert hub.paths() == []
    ok(embed(hub, cache, "org/tiny"))  # the rest
    assert set(fetched(hub)) == set(files_of(model)) - TOKENIZER


def test_no_weights_that_can_be_read(hub, cache):
    hub.repos["models/org/pickled"] = {"main": {"config.json": b"{}", "pytorch_model.bin": b"no"}}
    run = embed(hub, cache, "org/pickled")
    assert run.returncode == 1 and fetched(hub) == ["config.json"]
    hub.repos["models/org/bare"] = {"main": {"README.md": b""}}
    refused(embed(hub, cache, "org/bare"), 1, "org/bare: none of its 1 files")


# --- names


def test_a_directory_stands_before_the_hub(hub, cache, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    model.rename(tmp_path / "org" / "tiny")
    expected = ok(embed(None, cache, tmp_path / "org" / "tiny"))
    for name in ("org/tiny", "./org/tiny", "org/tiny/"):
        assert ok(embed(hub, cache, name)) == expected
    refused(embed(hub, cache, "./org/other"), 1, "./org/other: there is no such directory")
    assert hub.paths() == []


def test_what_is_neither_says_both(hub, cache, model):
    refused(embed(hub, cache, "org/tinny"), 1, "org/tinny", "as a directory, ./org/tinny: No such file")
    refused(embed(hub, cache, "org/tiny@v7"), 1, "v7")
    hub.paths()
    for address in ("hf.co/tiny", "https://huggingface.co/org/tiny", "huggingface.co/org/tiny"):
        refused(embed(hub, cache, address), 1, f"{address}: is an address", "ORG/NAME")
    refused(embed(hub, cache, "tiny"), 1, "tiny: is neither a directory", "ORG/NAME")
    refused(embed(hub, cache, "org/tiny", "--offline"), 5, "org/tiny", "as a directory")
    assert hub.paths() == []


def test_the_cache_that_is_asked_for(hub, cache, model, tmp_path):
    ok(embed(hub, cache, "org/tiny", "--cache-dir", tmp_path / "mine"))
    assert (tmp_path / "mine" / "models--org--tiny" / "snapshots").is_dir() and not cache.exists()


def test_what_the_peer_fetched(hub, cache, model):
    program = "import huggingface_hub as h\nh.snapshot_download('org/tiny')"
    env = {**os.environ, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HOME": str(cache), "HF_HUB_CACHE": str(cache), "HF_ENDPOINT": hub.endpoint}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=env)
    hub.paths()
    assert ok(embed(hub, cache, "org/tiny", "--offline")) == ok(embed(None, cache, model))
    assert hub.paths() == []


def test_ctrl_c_while_a_model_comes(hub, cache, tmp_path):
    """Ended as by Ctrl-C, nothing half-written to be seen; the next call goes on where it stopped."""
    made = write_model(tmp_path / "large", {"max_position_embeddings": 40_000})  # 1.3 MB
    hub.repos["models/org/large"] = {"main": files_of(made)}
    hub.pause = 0.05
    env = {**os.environ, "HF_HUB_CACHE": str(cache), "HF_ENDPOINT": hub.endpoint}
    run = subprocess.Popen([KHUB, "embed", "--model", "org/large", "hello"], env=env, start_new_session=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while not list(cache.glob("*/blobs/*.incomplete")):
        assert run.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)
    out, words = run.communicate(timeout=60)
    assert (run.returncode, out) == (-signal.SIGINT, "") and "stopped" in words
    assert not list(cache.glob("*/snapshots/*/model.safetensors"))
    hub.pause = 0
    assert ok(khub(hub, cache, "embed", "--model", "org/large", "hello")) == ok(khub(None, cache, "embed", "--model", made, "hello"))


# --- kernels of the Hub in a mapping


def slots(run, layer):
    return [slot for slot in json.loads(run.stdout.splitlines()[0])["slots"] if slot["layer"] == layer]


@pytest.fixture
def mapping(tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"GeLU": "org/good@v1", "LayerNorm": "khub/norm"}')
    return f"--kernels={path}"


def report(hub, cache, model, mapping, *args):
    return khub(hub, cache, "embed", "--model", model, mapping, "--report", "--json", *args)


def test_a_kernel_of_a_mapping_comes_with_the_same_options(hub, cache, model, mapping, tmp_path):
    hub.repos["kernels/org/good"] = {"v1": fake()}
    hub.trusted["org"] = False
    run = report(hub, cache, model, mapping)
    assert run.returncode == 0 and "vouch for it: --trust org/good" in slots(run, "GeLU")[0]["reason"]
    hub.paths()
    run = report(hub, cache, model, mapping, "--trust", "org", "--cache-dir", tmp_path / "mine")
    assert all(slot["kernel"].startswith("org/good") for slot in slots(run, "GeLU")), run.stdout
    assert f"build/{VARIANT}/metadata.json" in {p.split("/", 6)[-1] for p in hub.paths()}
    assert (tmp_path / "mine" / "kernels--org--good").is_dir()
    run = report(hub, cache, model, mapping, "--offline", "--cache-dir", tmp_path / "mine")
    assert all(slot["kernel"] for slot in slots(run, "GeLU")) and hub.paths() == []


def test_a_kernel_that_cant_be_had_offline(hub, cache, model, mapping):
    """It is told and counted; only --require makes it an error."""
    hub.repos["kernels/org/good"] = {"v1": fake()}
    run = report(hub, cache, model, mapping, "--offline")
    assert run.returncode == 0
    assert all(slot["kernel"] is None and "org/good@v1: isn't in the cache" in slot["reason"] for slot in slots(run, "GeLU"))
    assert all(slot["kernel"] == "khub/norm" for slot in slots(run, "LayerNorm"))
    run = embed(hub, cache, model, mapping, "--offline")
    assert run.returncode == 0 and run.stderr.count("GeLU: standard function") == 1  # once, not for each slot
    assert len(run.stdout.splitlines()) == len(TEXTS)
    refused(embed(hub, cache, model, mapping, "--offline", "--require"), 3, "GeLU (2 of 2 slots", "org/good")
    run = embed(hub, cache, model, "--kernels", "--offline")  # the built-in ones need nothing
    assert (run.returncode, run.stderr) == (0, "")
    assert hub.paths() == []


def test_a_hub_that_is_away_is_waited_for_once(hub, cache, model, tmp_path):
    """Not for each kernel of a mapping: 8 are asked for side by side, and when they find nobody the others aren't asked for."""
    parts = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"]
    slots = [f"encoder.layer.{i}.{part}" for i in range(2) for part in parts]
    hub.repos.update({f"kernels/org/k{i}": {"v1": fake()} for i in range(len(slots))})
    (tmp_path / "many.json").write_text(json.dumps({f"Linear({slot})": f"org/k{i}@v1" for i, slot in enumerate(slots)}))
    hub.down, hub.retry_after = True, "0"
    run = khub(hub, cache, "embed", "--model", model, f"--kernels={tmp_path / 'many.json'}", "--report", "--json", "hello")
    assert run.returncode == 0
    why = {slot["path"]: slot["reason"] for slot in json.loads(run.stdout.splitlines()[0])["slots"]}
    assert all(f"org/k{i}" in why[slot] for i, slot in enumerate(slots))
    assert len(set(hub.paths())) <= 8


# --- the real model, from khub serve


def test_minilm_from_khub_serve(cache, tmp_path):
    (tmp_path / "hub" / "models" / "sentence-transformers").mkdir(parents=True)
    place = tmp_path / "hub" / "models" / "sentence-transformers" / MINILM.resolve().name
    subprocess.run(["cp", "-rL", str(MINILM), str(place)], check=True)
    name = "sentence-transformers/all-MiniLM-L6-v2"
    place.rename(place.with_name("all-MiniLM-L6-v2"))
    expected = ok(embed(None, cache, MINILM, timeout=300))
    with serving(tmp_path / "hub") as served:
        reach = {"HF_ENDPOINT": served.url}
        assert ok(embed(None, cache, name, env=reach, timeout=300)) == expected
        asked = len(served.log().splitlines())
        assert asked >= 10
        assert ok(embed(None, cache, name, env=reach, timeout=300)) == expected
        assert len(served.log().splitlines()) == asked
    assert ok(embed(None, cache, name, "--offline", timeout=300)) == expected
    assert ok(khub(None, cache, "tokenize", "--model", name, "--offline", "Hello, world!")).strip() == "[101,7592,1010,2088,999,102]"
    there = {p.name for p in (cache / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots").rglob("*") if p.is_file()}
    assert "model.safetensors" in there and not there & {"README.md", "data_config.json"}
