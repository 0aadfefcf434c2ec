"""Mappings that name kernels of the Hub: what each entry fetches, and that one entry's trouble is its own (B1, L2 of the user reports)."""

import json
import os
import pathlib
import re
import sys

import pytest
from small_hub import Hub, files_of, khub

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))
from tiny_model import write_model  # noqa: E402

LOOKS = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "hub_looks"
KERNELS = pathlib.Path(os.environ["KHUB_STAGE"], "share/khub/kernels/khub")


def built_in(name, **more):
    """A built-in kernel as a repository of the Hub."""
    return {**files_of(KERNELS / name), **more}


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/norm"] = {"v1": built_in("norm"), "v2": {}}
    hub.repos["kernels/org/act"] = {f"v{v}": built_in("activation", README=b"%d" % v) for v in (0, 1, 2, 3)}
    hub.repos["kernels/org/linear"] = {"v0": {}, "v3": built_in("linear")}
    yield hub
    hub.close()


def test_one_entry_has_no_version(hub, tmp_path):
    """What is named without a version is version 1; where that isn't there, the others are filled all the same."""
    model, cache, mapping = write_model(tmp_path / "m"), tmp_path / "cache", tmp_path / "map.json"
    mapping.write_text('{"LayerNorm": "org/norm:LayerNorm", "Linear": "org/linear:Linear", "GeLU": "org/act@>=1,<3:GeLU"}')
    words = ["embed", "--model", model, "--report", "--json"]
    run = khub(hub, cache, *words, f"--kernels={mapping}")
    assert run.returncode == 0, run.stderr
    slots = {slot["layer"]: slot for slot in json.loads(run.stdout)["slots"]}
    assert slots["LayerNorm"]["kernel"] == "org/norm@v1" and slots["GeLU"]["kernel"] == "org/act@>=1,<3"
    assert slots["Linear"]["kernel"] is None
    assert slots["Linear"]["reason"] == "org/linear: there is no version 1; its versions: 0, 3"
    asked = hub.paths()
    assert sorted(p for p in asked if p.endswith("/refs")) == [f"GET /api/kernels/org/{n}/refs" for n in ("act", "linear", "norm")]
    assert any(f"/org/act/resolve/{hub.commit(hub.repos['kernels/org/act']['v2'])}/" in p for p in asked)  # of the range the highest
    assert {d["about"] for d in slots["GeLU"]["trust"]} >= {"publisher", "content"} and all(d["words"].startswith("org/act: ") for d in slots["GeLU"]["trust"])
    run = khub(hub, cache, *words, f"--kernels={mapping}", "--trust-level", "signed")
    slots = {slot["layer"]: slot for slot in json.loads(run.stdout)["slots"]}
    assert slots["GeLU"]["kernel"] is None and "org/act: metadata.json has no signature" in slots["GeLU"]["reason"]
    record, = cache.glob("kernels--org--act/publisher.json")
    known = record.read_text()
    record.unlink()
    run = khub(hub, cache, *words[:-1], f"--kernels={mapping}", "--offline")  # the table says what is noted, once a kernel
    assert run.stdout.count("\npublisher: org/act: offline, and nothing here says whether org ") == 1 and "signature" not in run.stdout
    record.write_text(known)
    run = khub(hub, cache, *words, f"--kernels={mapping}", "--require", "hello")
    assert run.returncode == 3 and "Linear" in run.stderr and "its versions: 0, 3" in run.stderr
    hub.paths()
    run = khub(hub, cache, *words, "--kernels", "LayerNorm=org/norm@v1,GeLU=org/act@>=1,<3:GeLU")  # the same again: nothing is asked
    assert run.returncode == 0 and hub.paths() == []
    by_layer = {slot["layer"]: slot["kernel"] for slot in json.loads(run.stdout)["slots"]}
    assert by_layer["LayerNorm"] == "org/norm@v1" and by_layer["GeLU"] == "org/act@>=1,<3" and by_layer["Linear"] == "khub/linear"


def test_L2_a_kernel_that_cannot_be_had(hub, tmp_path):
    """Asked for by name and required: the error has each build and why it doesn't fit; else it is a reason, and nothing else."""
    builds = {f"build/{name}/metadata.json": b"{}" for name in ("torch212-cxx11-cu126-x86_64-linux", "torch212-cxx11-cu130-aarch64-linux")}
    hub.repos["kernels/org/fa"] = {"v3": builds}
    model, cache = write_model(tmp_path / "m"), tmp_path / "cache"
    words = ["embed", "--model", model, "--kernels", "Attention=org/fa@v3"]
    run = khub(hub, cache, *words, "--require", "hello")
    assert run.returncode == 3 and all(name.split("/")[1] in run.stderr for name in builds)
    run = khub(hub, cache, *words, "--report", "--json", "hello")
    slots = json.loads(run.stdout.splitlines()[0])["slots"]
    reason = next(slot["reason"] for slot in slots if slot["layer"] == "Attention")
    assert run.returncode == 0 and all(name.split("/")[1] in reason for name in builds)
    assert {slot["kernel"] for slot in slots if slot["layer"] == "AddLayerNorm"} == {"khub/norm"}


def test_L6_fetched_beforehand(hub, tmp_path):
    """khub download, then a model that needs no network at all."""
    model, cache = write_model(tmp_path / "m"), tmp_path / "cache"
    run = khub(hub, cache, "download", "org/norm@v1", "org/act@>=1,<3")
    assert run.returncode == 0, run.stderr
    hub.paths()
    (tmp_path / "map.json").write_text(json.dumps({"LayerNorm": "org/norm@v1", "GeLU": "org/act@>=1,<3"}))
    run = khub(hub, cache, "embed", "--model", model, "--report", "--json", f"--kernels={tmp_path / 'map.json'}", "--offline", "hello")
    slots = json.loads(run.stdout.splitlines()[0])["slots"]
    kernels = {slot["layer"]: slot["kernel"] for slot in slots if not slot["run"]}
    assert kernels["LayerNorm"] == "org/norm@v1" and kernels["GeLU"] == "org/act@>=1,<3" and hub.paths() == []


def test_L4_whose_arguments(hub, tmp_path):
    """A layers.json, or an entry of the mapping, whose arguments aren't the layer's: who says so is named; the other layers go on."""
    files = built_in("activation")
    for path in files:
        if path.endswith("/layers.json"):
            files[path] = files[path].replace(b'"args": ["out", "x"]', b'"args": ["out", "x", "y"]')
        if path.endswith("/metadata.json"):
            files[path] = json.dumps({k: v for k, v in json.loads(files[path]).items() if k != "digest"}).encode()
    hub.repos["kernels/org/odd"] = {"v1": files}
    entry = {"kernel": "org/act@v2", "function": "gelu", "args": ["out", "input"]}
    (tmp_path / "map.json").write_text(json.dumps({"GeLU": "org/odd@v1", "Linear": entry, "LayerNorm": "khub/norm"}))
    run = khub(hub, tmp_path / "cache", "embed", "--model", write_model(tmp_path / "m"), "--report", "--json", f"--kernels={tmp_path / 'map.json'}", "hello")
    slots = {slot["layer"]: slot for slot in json.loads(run.stdout.splitlines()[0])["slots"]}
    assert run.returncode == 0 and slots["LayerNorm"]["kernel"] == "khub/norm"
    assert f"org/odd@v1 (commit {hub.commit(files)}): arguments of gelu for GeLU" in slots["GeLU"]["reason"]
    assert slots["GeLU"]["reason"].endswith("found: out, x, y; the layer has: out, x")
    assert "map.json: Linear: org/act@v2: arguments of gelu for Linear" in slots["Linear"]["reason"]
    assert slots["Linear"]["reason"].endswith("found: out, input; the layer has: out, x, weight, bias")


def test_offline(hub, tmp_path):
    """A kernel that isn't there leaves the standard function; asked for with --require it is an error that says what to do."""
    model, cache = write_model(tmp_path / "m"), tmp_path / "cache"
    words = ["embed", "--model", model, "--report", "--json", "--offline", "--kernels", "GeLU=org/act@>=1,<3"]
    env = {"ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":detect_leaks=0"} if "ASAN_OPTIONS" in os.environ else {}  # ptrace is theirs, too
    run = khub(None, cache, *words, env=env, under=[LOOKS, tmp_path / "looks"])
    assert run.returncode == 0
    looks = (tmp_path / "looks").read_text()  # nothing is asked, resolved or waited for (L2): so it starts as soon as without that kernel
    assert "openat " in looks and not re.search(r"^(socket|(clock_)?nanosleep)$|libcurl|resolv\.conf|/etc/(hosts|nsswitch)", looks, re.MULTILINE)
    slot = next(slot for slot in json.loads(run.stdout)["slots"] if slot["layer"] == "GeLU")
    assert slot["kernel"] is None and "khub download 'org/act@>=1,<3'" in slot["reason"]
    run = khub(None, cache, *words, "--require", "hello")
    assert run.returncode == 3 and "khub download 'org/act@>=1,<3'" in run.stderr
