"""khub lock, and what a lock does to khub get and khub download, against a small Hub."""
import hashlib
import json
import os
import shutil

import pytest
from small_hub import VARIANT, Hub, blob_id, fake, khub

BUILD = f"build/{VARIANT}"
OTHER = "build/tvm-ffi01-cu128-aarch64-linux"


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/a"] = {"v1": needs({BUILD: ["org/b"], OTHER: ["org/c"]}), "v2": needs({}, "two")}
    hub.repos["kernels/org/b"] = {"v1": needs({BUILD: ["org/d"]}, "b")}
    hub.repos["kernels/org/c"] = {"v1": only_other(needs({OTHER: ["org/d"]}, "c"))}
    hub.repos["kernels/org/d"] = {"v1": needs({}, "d")}
    yield hub
    hub.close()


def needs(of_build, word="a"):
    """The fake kernel, builds of which say that they need version 1 of others."""
    files = {**fake(), "README.md": word.encode()}
    for build, names in of_build.items():
        metadata = json.loads(files[f"{build}/metadata.json"])
        metadata["kernel-depends"] = [{"repo-id": name, "version": 1} for name in names]
        files[f"{build}/metadata.json"] = json.dumps(metadata).encode()
    return files


def only_other(files):
    return {path: content for path, content in files.items() if not path.startswith(BUILD)}


def ok(run):
    assert run.returncode == 0, run.stderr
    return run.stdout


def commit(hub, name, branch="v1"):
    return hub.commit(hub.repos[f"kernels/{name}"][branch])


def lock_of(*entries):
    """(name, version or revision, commit) as a text: what the Python package writes, by hand."""
    return "[" + ",".join(
        "\n  {\n    \"dependency\": {\n      \"repo-id\": %s,\n      %s\n    },\n    \"lock\": {\n      \"commit\": \"%s\"\n    }\n  }" % (
            json.dumps(name), f'"version": {at}' if isinstance(at, int) else f'"revision": "{at}"', c) for name, at, c in entries) + "\n]"


def all_four(hub):
    return lock_of(*[(f"org/{x}", 1, commit(hub, f"org/{x}")) for x in "abcd"])


def test_a_lock_has_what_any_build_needs(hub, cache, tmp_path):
    lock = tmp_path / "kernels.lock"
    run = khub(hub, cache, "lock", "org/a@1", "-o", lock)
    assert ok(run).splitlines() == [f"org/{x}@v1 {commit(hub, f'org/{x}')}" for x in "abcd"]
    assert lock.read_text() == all_four(hub)
    asked = hub.paths()
    assert not [p for p in asked if p.endswith(".so")] and not list(cache.rglob("*.so"))
    assert len([p for p in asked if p.endswith("/refs")]) == 4
    before = lock.stat().st_mtime_ns
    report = json.loads(ok(khub(hub, cache, "lock", "-o", lock, "--json")))  # what is in it, once more
    assert report["current"] and report["gone"] == [] and report["lock"] == str(lock) and lock.stat().st_mtime_ns == before
    assert report["kernels"][0] == {"name": "org/a@v1", "commit": commit(hub, "org/a"), "before": commit(hub, "org/a")}
    assert len([p for p in hub.paths() if "/refs" in p]) == 4  # asked again, however fresh
    assert ok(khub(hub, cache, "lock", "org/a@v1", "-o", "-")) == all_four(hub)
    assert ok(khub(None, cache, "lock", "org/a@v1", "-o", "-", "--offline")) == all_four(hub)
    run = khub(None, cache, "lock", "org/a@v1", "-o", "-", "--no-retry")  # the cache's word isn't enough while there is a network
    assert run.returncode == 6 and run.stdout == "" and "org/a@v1: where it stands couldn't be asked" in run.stderr


def test_what_moves(hub, cache, tmp_path):
    lock = tmp_path / "kernels.lock"
    ok(khub(hub, cache, "lock", "org/a@v1", "-o", lock))
    old = lock.read_text()
    was = commit(hub, "org/b")
    hub.repos["kernels/org/b"] = {"old": hub.repos["kernels/org/b"]["v1"], "v1": needs({}, "later")}
    run = khub(hub, cache, "lock", "--check", "-o", lock)
    assert run.returncode == 1 and lock.read_text() == old and f"{lock}: isn't what khub lock would write now" in run.stderr
    assert f"org/b@v1 {commit(hub, 'org/b')} (was {was})" in run.stdout
    assert ok(khub(hub, cache, "lock", "org/a@v1", "org/a@>1", "--keep", "-o", lock)).splitlines()[1] == f"org/a@v2 {commit(hub, 'org/a', 'v2')} (new)"
    assert json.loads(lock.read_text())[2]["lock"]["commit"] == was
    run = khub(hub, cache, "lock", "org/a@v1", "-o", lock)
    assert f"org/a@v2 {commit(hub, 'org/a', 'v2')} (gone)" in ok(run) and lock.read_text() == all_four(hub)
    assert khub(hub, cache, "lock", "--check", "-o", lock).returncode == 0
    lock.write_text(json.dumps(json.loads(lock.read_text())))  # the same in another form
    assert khub(hub, cache, "lock", "--check", "-o", lock).returncode == 1


def test_names_of_a_project(hub, cache, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.kernels.dependencies]\n"org/b" = 1\n')
    ok(khub(hub, cache, "lock", "-o", project / "kernels.lock"))
    assert (project / "kernels.lock").read_text() == lock_of(*[(f"org/{x}", 1, commit(hub, f"org/{x}")) for x in "bd"])
    (project / "pyproject.toml").write_text('[tool.kernels.dependencies]\n"org/b" = ">=1"\n')
    run = khub(hub, cache, "lock", "-o", project / "kernels.lock")
    assert run.returncode == 1 and f"{project}/pyproject.toml:2: the version of org/b isn't a whole number" in run.stderr
    run = khub(hub, cache, "lock", "-o", tmp_path / "none.lock")
    assert run.returncode == 2 and "which kernels?" in run.stderr


def test_ways_that_fail(hub, cache, tmp_path):
    lock = tmp_path / "kernels.lock"
    lock.write_text("[]")
    hub.repos["kernels/evil/x"] = {"v1": needs({}, "x")}
    hub.repos["kernels/org/e"] = {"v1": needs({OTHER: ["evil/x"]})}
    hub.repos["kernels/org/f"] = {"v1": needs({OTHER: ["org/g"]})}
    hub.repos["kernels/org/g"] = {"v1": needs({BUILD: ["org/f"]})}
    hub.repos["kernels/org/h"] = {"v1": {**needs({}), f"{OTHER}/metadata.json": b"{"}}
    hub.repos["kernels/org/i"] = {"v1": {"README.md": b"none"}}
    for name, status, words in [
            ("org/e@v1", 4, "evil"), ("org/f@v1", 1, "org/f@v1 needs org/g@v1 needs org/f@v1"), ("org/h@v1", 1, f"{OTHER}/metadata.json"),
            ("org/i@v1", 1, "is no kernel repository"), ("org/a@v3", 1, "no version 3; its versions: 1, 2"), ("org/a", 2, "Its versions: 1, 2"),
            ("org/a@>5", 1, "org/a@>=6: there is no such version"), ("./x", 2, "./x"), ("org/none@v1", 1, "org/none"), ("khub/norm", 1, "khub/norm")]:
        run = khub(hub, cache, "lock", name, "-o", lock)
        assert (run.returncode, lock.read_text()) == (status, "[]") and words in run.stderr, (name, run.returncode, run.stderr)
    ok(khub(hub, cache, "lock", "org/e@v1", "-o", lock, "--trust", "evil/x"))
    assert "evil/x" in lock.read_text()
    lock.write_text("[{}]")
    run = khub(hub, cache, "lock", "org/a@v1", "-o", lock)  # what can't be read isn't overwritten
    assert run.returncode == 1 and "entry 0" in run.stderr and lock.read_text() == "[{}]"
    run = khub(hub, cache, "lock", "org/a@v1", "-o", tmp_path / "no" / "kernels.lock")
    assert run.returncode == 1 and str(tmp_path / "no") in run.stderr


def test_odd_builds(hub, cache):
    """A name that isn't understood is nobody's build; one without metadata.json can't be loaded, and needs nothing."""
    files = needs({})
    files["build/future-abi7-cpu-x86_64-linux/metadata.json"] = b"{"
    files["build/torch27-cxx11-cu128-x86_64-linux/x.py"] = b""
    hub.repos["kernels/org/a"]["v1"] = files
    assert ok(khub(hub, cache, "lock", "org/a@v1", "-o", "-")) == lock_of(("org/a", 1, commit(hub, "org/a")))


def test_a_redirect_is_locked_as_both(hub, cache, tmp_path):
    lock = tmp_path / "kernels.lock"
    hub.repos["kernels/org/old"] = {"v1": {"kernel-status.toml": b'kind = "redirect"\ndestination = "org/d"\n'}}
    ok(khub(hub, cache, "lock", "org/old@v1", "-o", lock))
    assert lock.read_text() == lock_of(("org/d", 1, commit(hub, "org/d")), ("org/old", 1, commit(hub, "org/old")))
    assert commit(hub, "org/d") in ok(khub(hub, cache, "get", "org/old@v1", "--lock", lock))
    assert len(ok(khub(hub, cache, "download", "--lock", lock, "--all")).splitlines()) == 2


def test_what_builds_need_is_proven(hub, cache, tmp_path):
    """Another kernel of a trusted publisher doesn't get into a lock because somebody wrote its name into the cache."""
    lock, made = tmp_path / "kernels.lock", tmp_path / "made.lock"
    ok(khub(hub, cache, "lock", "org/b@v1", "-o", lock))
    ok(khub(hub, cache, "lock", "org/c@v1", "-o", made))
    metadata = next(cache.glob(f"kernels--org--b/snapshots/*/{BUILD}/metadata.json"))
    right = metadata.read_bytes()
    wrong = right.replace(b"org/d", b"org/c")
    assert right != wrong and "org/c" not in lock.read_text()
    metadata.write_bytes(wrong)
    refused = khub(None, cache, "lock", "org/b@v1", "--offline", "-o", made)
    assert refused.returncode == 4 and blob_id(right) in refused.stderr and blob_id(wrong) in refused.stderr, refused.stderr
    mended = khub(hub, cache, "lock", "org/b@v1", "-o", made)
    assert "fetched again" in mended.stderr and made.read_text() == lock.read_text() and metadata.read_bytes() == right
    ok(khub(None, cache, "lock", "org/b@v1", "--offline", "-o", made))
    os.chown(next(cache.glob("kernels--org--b/trees/*.json")), 12345, -1)
    refused = khub(None, cache, "lock", "org/b@v1", "--offline", "-o", made)
    assert refused.returncode == 4 and "nothing proves what its" in refused.stderr, refused.stderr


def test_download_takes_what_fits(hub, cache, tmp_path):
    """org/c has no build for this machine, and none is needed here; one that is locked for itself has to fit."""
    lock = tmp_path / "kernels.lock"
    ok(khub(hub, cache, "lock", "org/a@v1", "-o", lock))
    run = khub(hub, cache, "download", "--lock", lock)
    assert [line.split("/snapshots/")[1] for line in ok(run).splitlines()] == [f"{commit(hub, f'org/{x}')}/{BUILD}" for x in "abd"]
    assert "org/c@v1: has no build for this machine, and no kernel here needs it" in run.stderr
    hub.paths()
    ok(khub(hub, cache, "get", "org/a@v1", "--lock", lock))
    ok(khub(None, cache, "download", "--lock", lock, "--offline"))
    assert hub.paths() == []
    ok(khub(hub, cache, "download", "--lock", lock, "--all"))
    assert (cache / "kernels--org--c" / "snapshots" / commit(hub, "org/c") / OTHER / "metadata.json").exists()
    ok(khub(hub, cache, "lock", "org/c@v1", "-o", lock))
    run = khub(hub, cache, "download", "--lock", lock)
    assert run.returncode == 3 and "org/c@v1" in run.stderr


def test_a_lock_holds(hub, cache, tmp_path):
    """Whatever the Hub serves later, and whatever is asked for: the lock's commits or nothing."""
    lock = tmp_path / "kernels.lock"
    ok(khub(hub, cache, "lock", "org/a@v1", "-o", lock))
    locked = commit(hub, "org/a")
    hub.repos["kernels/org/a"]["old"] = hub.repos["kernels/org/a"]["v1"]
    hub.repos["kernels/org/a"]["v1"] = needs({}, "another commit")
    assert locked in ok(khub(hub, cache, "get", "org/a@v1", "--lock", lock, "--refresh"))
    assert locked in ok(khub(hub, cache, "get", f"org/a@{locked}", "--lock", lock))
    other = commit(hub, "org/a")
    for command in (["get", f"org/a@{other}"], ["functions", f"org/a@{other}"], ["get", "org/a@v2"], ["get", "org/a@main"]):
        run = khub(hub, cache, *command, "--lock", lock)
        assert run.returncode == 1 and f"isn't in the lock {lock}, which has org/a@v1 at {locked}" in run.stderr, run.stderr
    del hub.repos["kernels/org/a"]["old"]  # the commit is nowhere any more
    assert locked in ok(khub(hub, cache, "get", "org/a@v1", "--lock", lock))
    run = khub(hub, tmp_path / "other", "get", "org/a@v1", "--lock", lock)
    assert run.returncode == 1 and locked in run.stderr
    entries = json.loads(lock.read_text())
    lock.write_text(json.dumps([e for e in entries if e["dependency"]["repo-id"] != "org/b"]))
    run = khub(hub, cache, "get", "org/a@v1", "--lock", lock)  # a kernel that it needs
    assert run.returncode == 1 and "org/b@v1: isn't in the lock" in run.stderr and "needed by org/a@v1" in run.stderr


def entry(name, at, c):
    return {"dependency": {"repo-id": name, "version": at}, "lock": {"commit": c}}


def older(name, at, files, **changed):
    """An entry of the older form, which knows builds for torch only; `changed` replaces a build's hash."""
    builds = {}
    for path in sorted(files):
        if path.startswith("build/torch") and not path.endswith(".pyc"):
            _, build, rest = path.split("/", 2)
            builds.setdefault(build, []).append((rest.encode(), bytes.fromhex(blob_id(files[path]))))
    hashes = {build: hashlib.sha256(b"".join(p + h for p, h in sorted(parts))).hexdigest() for build, parts in builds.items()}
    return {"repo_id": name, "sha": at, "variants": {b: {"hash": f"sha256-{changed.get(b.split('-')[0], h)}", "hash_type": "git_lfs_concat"} for b, h in hashes.items()}}


def test_the_older_form(hub, cache, tmp_path):
    lock, machine = tmp_path / "kernels.lock", tmp_path / "machine.json"
    machine.write_text('{"os":"linux","arch":"x86_64","backend":"cu128","torch":"2.7","torch_cxx11_abi":true,"archs":["9.0"]}')
    files = {path.replace(VARIANT, "torch27-cxx11-cu128-x86_64-linux"): content for path, content in needs({}).items()}
    metadata = json.loads(files["build/torch27-cxx11-cu128-x86_64-linux/metadata.json"])
    metadata["backend"] = {"type": "cuda", "archs": ["9.0"]}
    files["build/torch27-cxx11-cu128-x86_64-linux/metadata.json"] = json.dumps(metadata).encode()
    files["build/torch27-cxx11-cu128-x86_64-linux/layers/x.py"] = b"1"
    files["build/torch27-cxx11-cu128-x86_64-linux/x.pyc"] = b"2"
    files["build/torch28-cxx11-cu128-x86_64-linux/x.py"] = b"3"
    hub.repos["kernels/org/a"]["v1"] = files
    good = older("org/a", commit(hub, "org/a"), files)
    bad = older("org/a", commit(hub, "org/a"), files, torch27="ab" * 32)
    lock.write_text(json.dumps([bad]))
    wanted = good["variants"]["torch27-cxx11-cu128-x86_64-linux"]["hash"].removeprefix("sha256-")
    for more in (["--platform", machine], ["--all"]):
        run = khub(hub, cache, "download", "--lock", lock, *more)
        assert run.returncode == 4 and wanted in run.stderr and "ab" * 32 in run.stderr, run.stderr  # both hashes
    assert not list(cache.rglob("*.so")) and not list(cache.rglob("x.py"))
    lock.write_text(json.dumps([good]))
    assert ok(khub(hub, cache, "download", "--lock", lock, "--platform", machine)).strip().endswith("torch27-cxx11-cu128-x86_64-linux")
    ok(khub(hub, cache, "download", "--lock", lock, "--all"))
    lock.write_text(json.dumps([older("org/a", commit(hub, "org/a"), files, torch28="cd" * 32)]))
    ok(khub(None, cache, "download", "--lock", lock, "--platform", machine, "--offline"))  # the build that is used counts
    run = khub(None, cache, "download", "--lock", lock, "--all", "--offline")
    assert run.returncode == 4 and "cd" * 32 in run.stderr and "torch28" in run.stderr
    run = khub(hub, cache, "lock", "-o", lock)  # it doesn't say which version
    assert run.returncode == 2 and "org/a@v1" in run.stderr
    ok(khub(hub, cache, "lock", "org/a@v1", "--keep", "-o", lock))
    assert lock.read_text() == lock_of(("org/a", 1, commit(hub, "org/a")))


def test_nothing_runs_that_a_lock_refuses(hub, cache, tmp_path):
    """The kernel ends the process while it is loaded: that a refusal is told is the proof that it wasn't."""
    lock, evil = tmp_path / "kernels.lock", fake("exit_on_load")
    hub.repos["kernels/org/x"] = {"v1": evil, "v2": {**evil, "README.md": b"metadata.json says 1"}}
    at = {branch: commit(hub, "org/x", branch) for branch in ("v1", "v2")}
    run = khub(hub, cache, "get", "org/x@v1")
    assert "loading it ends the process" in run.stderr  # it does
    ok(khub(hub, cache, "download", "org/x@v2"))
    changed = {"repo_id": "org/x", "sha": at["v1"], "variants": {VARIANT: {"hash": "sha256-" + "ab" * 32, "hash_type": "git_lfs_concat"}}}
    for entries, name, status, words in [
            ([changed], "org/x@v1", 4, "ab" * 32), ([changed], f"org/x@{at['v2']}", 1, "isn't in the lock"),
            ([entry("org/x", 1, at["v1"])], "org/x@v2", 1, "isn't in the lock"), ([entry("org/x", 1, "c" * 40)], "org/x@v1", 1, "c" * 40),
            ([entry("org/x", 2, at["v2"])], "org/x@v2", 4, "version 2 was asked for"),
            ([entry("org/a", 1, at["v1"])], "org/a@v1", 1, at["v1"]), ([], "org/x@v1", 1, "isn't in the lock")]:
        lock.write_text(json.dumps(entries))
        for command in ("get", "functions"):
            run = khub(hub, cache, command, name, "--lock", lock)
            assert run.returncode == status and words in run.stderr and " the process" not in run.stderr, (entries, name, run.stderr)


def test_a_lock_of_the_older_form_in_a_cache_of_the_peer(hub, cache, tmp_path):
    """Without the list of files that khub keeps, the names of the contents are those of the links."""
    lock = tmp_path / "kernels.lock"
    ok(khub(hub, cache, "get", "org/d@v1"))
    files = {p.replace(VARIANT, "torch27"): c for p, c in hub.repos["kernels/org/d"]["v1"].items()}
    good = older("org/d", commit(hub, "org/d"), files)["variants"]["torch27"]
    shutil.rmtree(cache / "kernels--org--d" / "trees")
    for receipt in (cache / "kernels--org--d").glob("receipt.*"):
        receipt.unlink()
    for build, status in ((good, 0), ({**good, "hash": "sha256-" + "0" * 64}, 4)):
        lock.write_text(json.dumps([{"repo_id": "org/d", "sha": commit(hub, "org/d"), "variants": {VARIANT: build}}]))
        run = khub(None, cache, "get", "org/d@v1", "--lock", lock, "--offline")
        assert run.returncode == status and (not status or good["hash"].removeprefix("sha256-") in run.stderr), run.stderr
