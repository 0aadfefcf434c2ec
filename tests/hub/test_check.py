"""khub check of a repository of the Hub: read whoever published it, loaded only when he is trusted."""
import json

import pytest
from small_hub import VARIANT, Hub, fake, khub


@pytest.fixture(scope="module")
def hub():
    hub = Hub()
    for name in "good", "exit_on_load":
        hub.repos[f"kernels/org/{name}"] = {"main": fake(name), "v1": fake(name)}
    yield hub
    hub.close()


def check(hub, cache, *arguments):
    """What is found, without what the build "for another machine" of small_hub is not."""
    run = khub(hub, cache, "check", "--json", *arguments)
    assert run.stdout, run.stderr
    (answer,) = json.loads(run.stdout)["checks"]
    findings = [f for f in answer["findings"] if "aarch64" not in f["file"]]
    assert run.returncode == 1 and ("target", "error") in {(f["about"], f["level"]) for f in answer["findings"] if f not in findings}
    return [(f["about"], f["level"], f["value"]) for f in findings], {f["file"] for f in findings}


def test_a_trusted_publisher(hub, tmp_path):
    hub.trusted["org"] = True
    found, files = check(hub, tmp_path, "org/good@v1")
    commit = hub.commit(hub.repos["kernels/org/good"]["v1"])
    assert {("commit", "note", commit), ("load", "note", "loaded")} <= set(found) and "error" not in {f[1] for f in found}
    assert all(f == "org/good@v1" or f.startswith("org/good@v1/build/") for f in files)
    assert ("load", "error", "exit") in check(hub, tmp_path, "org/exit_on_load@v1")[0]


def test_nothing_of_a_strangers_runs(hub, tmp_path):
    hub.trusted["org"] = False
    found, _ = check(hub, tmp_path, "org/exit_on_load@v1")
    assert [f for f in found if f[0] == "load"] == [("load", "note", "untrusted")]
    assert ("load", "error", "exit") in check(hub, tmp_path, "org/exit_on_load@v1", "--trust", "org")[0]
    assert not [f for f in check(hub, tmp_path, "org/exit_on_load@v1", "--trust", "org", "--no-load")[0] if f[0] == "load"]
    assert khub(hub, tmp_path, "get", "org/exit_on_load@v1").returncode == 4  # that it is in the cache doesn't make it trusted


def test_one_build_alone(hub, tmp_path):
    hub.trusted["org"] = True
    hub.paths()
    run = khub(hub, tmp_path, "check", "org/good@v1", "--variant", VARIANT)
    assert run.returncode == 0 and "aarch64" not in run.stdout and not [p for p in hub.paths() if "aarch64" in p]
    assert khub(hub, tmp_path, "check", "org/good@v1", "--variant", "torch-cpu").returncode == 1


def test_what_was_changed_in_the_cache_does_not_run(hub, tmp_path):
    hub.trusted["org"] = True
    assert ("load", "error", "exit") in check(hub, tmp_path, "org/exit_on_load@v1")[0]
    (library,) = tmp_path.glob(f"kernels--org--exit_on_load/snapshots/*/build/{VARIANT}/*.so")
    blob = library.resolve()
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1] + b"\1")
    found, _ = check(hub, tmp_path, "org/exit_on_load@v1", "--offline")
    assert [f for f in found if f[0] == "load"] == [("load", "error", "refused")]


def test_what_is_missing_in_metadata_comes_with_the_commit(hub, tmp_path):
    """B3"""
    files = {path: (b"{}" if path.endswith("metadata.json") else content) for path, content in fake("good").items()}
    hub.repos["kernels/org/bare"] = {"main": files, "v1": files}
    run = khub(hub, tmp_path, "check", "org/bare@v1")
    assert run.returncode == 1 and "required and missing: name, id, version, license, backend, python-depends" in run.stdout
    assert f"at commit {hub.commit(files)}" in run.stdout and "org/bare@v1/build/" in run.stdout
