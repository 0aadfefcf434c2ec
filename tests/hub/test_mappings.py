"""Mappings that name kernels of the Hub: what each entry fetches, and that one entry's trouble is its own (B1, L2 of the user reports)."""

import json
import os
import pathlib
import sys

import pytest
from small_hub import Hub, files_of, khub

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))
from tiny_model import write_model  # noqa: E402

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


def test_offline(hub, tmp_path):
    """A kernel that isn't there leaves the standard function; asked for with --require it is an error that says what to do."""
    model, cache = write_model(tmp_path / "m"), tmp_path / "cache"
    words = ["embed", "--model", model, "--report", "--json", "--offline", "--kernels", "GeLU=org/act@>=1,<3"]
    run = khub(None, cache, *words)
    assert run.returncode == 0
    slot = next(slot for slot in json.loads(run.stdout)["slots"] if slot["layer"] == "GeLU")
    assert slot["kernel"] is None and "khub download 'org/act@>=1,<3'" in slot["reason"]
    run = khub(None, cache, *words, "--require", "hello")
    assert run.returncode == 3 and "khub download 'org/act@>=1,<3'" in run.stderr
