"""khub get and its companions against a Hub: what is asked for, in which order, what the cache then holds, and what is said."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest
from small_hub import VARIANT, Hub, fake, khub

BUILD = f"build/{VARIANT}"
LOOKS = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "hub_looks"


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/good"] = {"main": fake(), "v1": fake()}
    yield hub
    hub.close()


def ok(run):
    assert run.returncode == 0, run.stderr
    return run.stdout


def snapshot(cache, hub, name="org/good", branch="v1"):
    return cache / f"kernels--{name.replace('/', '--')}" / "snapshots" / hub.commit(hub.repos[f"kernels/{name}"][branch])


def test_cold_get_asks_for_what_it_needs(hub, cache):
    there = ok(khub(hub, cache, "get", "org/good@v1")).strip()
    asked = hub.paths()
    wanted = {p for p in hub.repos["kernels/org/good"]["v1"] if p.startswith(BUILD)}
    assert len(asked) <= len(wanted) + 3
    fetched = [p.split("/", 6)[-1] for p in asked if "/resolve/" in p]
    assert set(fetched) == wanted and len(fetched) == len(wanted)
    assert fetched[0] == f"{BUILD}/metadata.json"
    order = [next(i for i, p in enumerate(asked) if what in p) for what in ("metadata.json", "organizations", ".so")]
    assert order == sorted(order), asked
    assert pathlib.Path(there) == snapshot(cache, hub) / BUILD
    assert (snapshot(cache, hub).parents[1] / "refs" / "v1").read_text() == snapshot(cache, hub).name


def test_a_matrix_asks_the_hub_once(hub, cache):
    """However many machines it decides for: the list of files, and what describes the builds."""
    ok(khub(hub, cache, "matrix", "org/good@v1"))
    asked = hub.paths()
    assert len(asked) == len(set(asked)) and not [p for p in asked if p.endswith(".so")], asked


def test_the_user_agent_names_the_backend(hub, cache, tmp_path):
    machine = tmp_path / "machine.json"
    machine.write_text('{"os":"linux","arch":"aarch64","backend":"cu128","tvm_ffi":"0.1"}')
    hub.repos["kernels/org/a"] = {"v1": with_needs("a", ["org/good"])}
    ok(khub(hub, cache, "download", "org/good@v1", "--platform", machine))  # known from the start
    assert all(agent.startswith("khub/") and agent.endswith("; backend/cu128") for agent in hub.agents)
    seen = len(hub.agents)
    ok(khub(hub, cache, "get", "org/a@v1", "--backend", "cpu"))  # known once a build is chosen; the needed kernel's, too
    named = [agent.count("; backend/cpu") for agent in hub.agents[seen:]]
    assert named == sorted(named) and set(named) == {0, 1} and named[2] == 1
    seen = len(hub.agents)
    ok(khub(hub, tmp_path / "other", "get", "org/a@v1", "--backend", "cpu", env={"DO_NOT_TRACK": "1"}))
    assert len({agent for agent in hub.agents[seen:]}) == 1 and ";" not in hub.agents[-1]


def test_warm_gets(hub, cache):
    ok(khub(hub, cache, "get", "org/good@v1"))
    hub.paths()
    commit = snapshot(cache, hub).name
    ok(khub(hub, cache, "get", f"org/good@{commit}"))
    ok(khub(hub, cache, "get", "org/good@v1"))
    ok(khub(hub, cache, "functions", "org/good@1"))
    assert hub.paths() == []
    ok(khub(hub, cache, "get", "org/good@v1", env={"KHUB_REFRESH_SECONDS": "0"}))
    assert hub.paths() == ["GET /api/kernels/org/good/refs"]
    ok(khub(hub, cache, "get", "org/good@v1", "--refresh"))
    assert len(hub.paths()) == 1


def test_a_warm_start_looks_at_little(hub, cache, tmp_path):
    """At what decides: no library of other commands, nothing of the machine that is only shown, and no file again and again."""
    for _ in range(100):  # none is written of files that changed a moment ago
        if list(cache.glob("*/receipt.*.txt")):
            break
        ok(khub(hub, cache, "get", "org/good@v1"))
    env = {"CUDA_VISIBLE_DEVICES": ""}  # no driver is asked
    if "ASAN_OPTIONS" in os.environ:
        env["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"] + ":detect_leaks=0"  # which doesn't go together with ptrace
    ok(khub(hub, cache, "get", f"org/good@{snapshot(cache, hub).name}", env=env, under=[LOOKS, tmp_path / "looks"]))
    paths = [line.split(" ", 1)[1] for line in (tmp_path / "looks").read_text().splitlines() if " " in line]
    unneeded = re.compile(r"^/sys/|^/proc/(?!self|sys/kernel/random/boot_id)|lib(khub-model|utf8proc|torch_cpu|cudart|curl|crypto|elf)\b")
    assert not [p for p in paths if unneeded.search(p)]
    build = [p for p in paths if p.startswith(f"{snapshot(cache, hub) / BUILD}/")]
    assert len(set(build)) >= 3 and max(map(build.count, build)) <= 8 and len(paths) <= 250, sorted(paths)


def test_a_clock_a_year_off_is_no_freshness(hub, cache):
    ok(khub(hub, cache, "get", "org/good@v1"))
    ref = snapshot(cache, hub).parents[1] / "refs" / "v1"
    os.utime(ref, (time.time() + 365 * 86400,) * 2)
    hub.paths()
    ok(khub(hub, cache, "get", "org/good@v1"))
    assert len(hub.paths()) == 1


def test_a_version_that_moves(hub, cache):
    ok(khub(hub, cache, "get", "org/good@v1"))
    old = snapshot(cache, hub)
    hub.repos["kernels/org/good"]["v1"] = {**fake(), "README.md": b"second"}
    assert ok(khub(hub, cache, "get", "org/good@v1", "--refresh")).strip() == str(snapshot(cache, hub) / BUILD)
    assert old.is_dir() and old != snapshot(cache, hub)
    assert ok(khub(None, cache, "get", f"org/good@{old.name}", "--offline")).strip() == str(old / BUILD)


def test_offline_and_unreachable(hub, cache):
    run = khub(hub, cache, "get", "org/good@v1", "--offline")
    assert run.returncode == 5 and f"khub download org/good@v1 --cache-dir {cache}" in run.stderr
    assert hub.paths() == [] and not cache.exists()
    ok(khub(hub, cache, "get", "org/good@v1"))
    hub.paths()
    run = khub(hub, cache, "get", "org/good@v1", env={"HF_HUB_OFFLINE": "1", "KHUB_REFRESH_SECONDS": "0"})
    assert run.returncode == 0 and run.stderr == "" and hub.paths() == []
    start = time.monotonic()
    run = khub(None, cache, "get", "org/good@v1", "--refresh")  # nothing listens there
    assert run.returncode == 0 and "can't be reached" in run.stderr
    assert time.monotonic() - start < 10  # one short attempt, not six
    hub.down = True
    assert khub(hub, cache, "get", "org/good@v1", "--refresh").returncode == 0
    assert len(hub.paths()) == 1


def test_no_version_lists_them(hub, cache):
    hub.repos["kernels/org/good"]["v3"] = fake()
    run = khub(hub, cache, "get", "org/good")
    assert run.returncode == 2 and "1, 3" in run.stderr and "org/good@v1" in run.stderr
    run = khub(hub, cache, "get", "org/good@v2")
    assert run.returncode == 1 and "no version 2" in run.stderr and "1, 3" in run.stderr
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 0 and "there is version 3" in run.stderr
    run = khub(hub, cache, "get", "org/nothing@v1")
    assert run.returncode == 1 and "org/nothing" in run.stderr


def test_ranges(hub, cache, tmp_path):
    """The highest version that is in it; no more requests than for a version, cold, warm and stale."""
    for version in (0, 2, 3, 10):
        hub.repos["kernels/org/good"][f"v{version}"] = {**fake(), "README.md": b"%d" % version}
    at = lambda version: str(snapshot(cache, hub, branch=f"v{version}") / BUILD)
    assert ok(khub(hub, cache, "get", "org/good@>=1,<3")).strip() == at(2)
    ranged = hub.paths()
    assert ok(khub(hub, tmp_path / "other", "get", "org/good@v2"))
    assert sorted(hub.paths()) == sorted(ranged)
    for name, version in (("org/good@ >= 1.0, < 3.0", 2), ("org/good@<=2.9,>0", 2)):  # the same range, written differently
        assert ok(khub(hub, cache, "get", name)).strip() == at(version)
    assert ok(khub(hub, cache, "get", "org/good@v2")).strip() == at(2)  # known by now
    assert hub.paths() == []
    refs = snapshot(cache, hub, branch="v2").parents[1] / "refs"
    assert sorted(p.name for p in refs.iterdir()) == [">=1,<3", "v2"]
    assert ok(khub(hub, cache, "get", "org/good@>=1,<3", env={"KHUB_REFRESH_SECONDS": "0"})).strip() == at(2)
    assert hub.paths() == ["GET /api/kernels/org/good/refs"]
    assert ok(khub(hub, cache, "get", "org/good@v3")).strip() == at(3)
    hub.paths()
    assert ok(khub(hub, cache, "get", "org/good@>=2,!=10")).strip() == at(3)
    assert hub.paths() == ["GET /api/kernels/org/good/refs"]
    assert ok(khub(hub, cache, "download", "org/good@>2")).strip() == at(10)
    run = khub(hub, cache, "get", "org/good@>10")
    assert run.returncode == 1 and "no version is in the range >=11; its versions: 0, 1, 2, 3, 10" in run.stderr
    hub.paths()
    for wrong, words in ((">=3,<1", "no version is in this range"), ("~=1", "is like >=1,<3"), (">=1.5,<2", "no version is in")):
        run = khub(hub, cache, "get", f"org/good@{wrong}")
        assert run.returncode == 2 and words in run.stderr and wrong in run.stderr
    assert hub.paths() == []
    answer = json.loads(ok(khub(hub, cache, "versions", "org/good@>1,<5", "--json")))
    assert [v["version"] for v in answer["versions"]] == [2, 3]


def test_ranges_offline(hub, cache, tmp_path):
    """What the Hub said last about the range; else what the cache has, with a word about it."""
    for version in (2, 3):
        hub.repos["kernels/org/good"][f"v{version}"] = {**fake(), "README.md": b"%d" % version}
        ok(khub(hub, cache, "get", f"org/good@v{version}"))
    run = khub(None, cache, "get", "org/good@>=1,<3", "--offline")
    assert ok(run).strip() == str(snapshot(cache, hub, branch="v2") / BUILD)
    assert "doesn't know which version is the highest in >=1,<3; its version 2 is used" in run.stderr
    ok(khub(hub, cache, "get", "org/good@>=1"))
    run = khub(None, cache, "get", "org/good@>=1", "--offline")
    assert ok(run).strip() == str(snapshot(cache, hub, branch="v3") / BUILD) and run.stderr == ""
    run = khub(None, cache, "get", "org/good@>3", "--offline")
    assert run.returncode == 5 and f"khub download 'org/good@>=4' --cache-dir {cache}" in run.stderr
    shutil.rmtree(cache / "kernels--org--good" / "refs")  # the builds say that they are of version 1
    assert "its version 1 is used" in khub(None, cache, "get", "org/good@>0", "--offline").stderr
    lock = tmp_path / "kernels.lock"
    commits = {version: hub.commit(hub.repos["kernels/org/good"][f"v{version}"]) for version in (2, 3)}
    lock.write_text(json.dumps([{"dependency": {"repo-id": "org/good", "version": v}, "lock": {"commit": c}} for v, c in commits.items()]))
    assert commits[3] in ok(khub(None, cache, "get", "org/good@>=1", "--lock", lock, "--offline"))
    assert commits[2] in ok(khub(None, cache, "get", "org/good@<3", "--lock", lock, "--offline"))


@pytest.mark.parametrize("trusted", [False, None])
def test_publishers(hub, cache, trusted):
    if trusted is None:
        del hub.trusted["org"]  # a person, not an organization
    else:
        hub.trusted["org"] = trusted
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 4 and "--trust org/good" in run.stderr
    assert not [p for p in hub.paths() if p.endswith(".so")]
    assert not list(cache.rglob("*.so"))
    assert khub(hub, cache, "download", "org/good@v1", "--all").returncode == 4
    assert khub(hub, cache, "get", "org/good@v1", "--trust", "other").returncode == 4
    ok(khub(hub, cache, "get", "org/good@v1", "--trust", "x", "--trust", "org"))
    ok(khub(hub, cache, "get", "org/good@v1", "--trust=org/good"))
    assert khub(hub, cache, "get", "org/good@v1").returncode == 4  # that it is there doesn't make it trusted
    run = khub(hub, cache, "info", "org/good@v1")
    assert run.returncode == 0 and "doesn't call org a trusted publisher" in run.stdout


def test_the_publishers_answer_is_remembered(hub, cache):
    ok(khub(hub, cache, "get", "org/good@v1"))
    hub.trusted["org"] = False
    hub.paths()
    ok(khub(hub, cache, "get", "org/good@v1"))
    assert hub.paths() == []
    record = snapshot(cache, hub).parents[1] / "publisher.json"
    assert json.loads(record.read_text())["trusted"] is True
    record.unlink()
    run = khub(hub, cache, "get", "org/good@v1", "--offline")
    assert run.returncode == 0 and "taken from the cache as it is" in run.stderr


def test_a_publisher_that_couldnt_be_asked(hub, cache):
    ok(khub(hub, cache, "get", "org/good@v1", "--trust", "org"))
    hub.trusted["org"] = "yes"  # no answer at all is the same, after all the waits
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 4 and "couldn't be found out" in run.stderr


def test_renamed(hub, cache):
    hub.repos["kernels/new/good"] = hub.repos.pop("kernels/org/good")
    hub.moved["kernels/org/good"] = "new/good"
    hub.trusted = {"org": True, "new": False}
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 4 and "new" in run.stderr  # the new owner is judged
    hub.trusted["new"] = True
    run = khub(hub, cache, "get", "org/good@v1", "--refresh")
    assert run.returncode == 0 and "is called new/good now" in run.stderr
    ok(khub(None, cache, "get", "org/good@v1", "--offline"))


def test_redirects_keep_the_version(hub, cache):
    status = b'kind = "redirect"\ndestination = "new/good"\nrevision = "main"\n'
    hub.repos["kernels/new/good"] = {"main": {"README.md": b""}, "v2": fake()}
    hub.repos["kernels/org/good"]["v2"] = {"kernel-status.toml": status}
    hub.trusted = {"org": True, "new": False}
    run = khub(hub, cache, "get", "org/good@v2")
    assert run.returncode == 4 and "new" in run.stderr
    hub.trusted = {"org": False, "new": True}
    run = khub(hub, cache, "get", "org/good@v2")
    assert run.returncode == 0 and "redirects to new/good@v2" in run.stderr
    assert str(snapshot(cache, hub, "new/good", "v2") / BUILD) == run.stdout.strip()
    ok(khub(None, cache, "get", "org/good@v2", "--offline"))
    hub.repos["kernels/new/good"]["v2"] = {"kernel-status.toml": status.replace(b"new/", b"org/")}
    run = khub(hub, cache, "get", "org/good@v2", "--refresh")
    assert run.returncode == 1 and "a circle?" in run.stderr


def with_needs(name, needs):
    """The fake kernel, which says that it needs others."""
    files = fake()
    metadata = json.loads(files[f"{BUILD}/metadata.json"])
    metadata["kernel-depends"] = [{"repo-id": n, "version": 1} for n in needs]
    files[f"{BUILD}/metadata.json"] = json.dumps(metadata).encode()
    files["README.md"] = name.encode()
    return files


def test_needs_are_a_tree(hub, cache):
    hub.repos["kernels/org/a"] = {"v1": with_needs("a", ["org/b", "org/c"])}
    hub.repos["kernels/org/b"] = {"v1": with_needs("b", ["org/c"])}
    hub.repos["kernels/org/c"] = {"v1": fake()}
    ok(khub(hub, cache, "download", "org/a@v1"))
    for name in "abc":
        assert (snapshot(cache, hub, f"org/{name}") / BUILD).is_dir()
    ok(khub(None, cache, "get", "org/a@v1", "--offline"))
    hub.repos["kernels/org/c"]["v1"] = with_needs("c", ["org/a"])
    run = khub(hub, cache, "get", "org/a@v1", "--refresh")
    assert run.returncode == 1
    assert "org/a@v1 needs org/b@v1 needs org/c@v1 needs org/a@v1" in run.stderr
    del hub.repos["kernels/org/c"]
    run = khub(hub, cache, "get", "org/a@v1", "--refresh")
    assert run.returncode == 1 and "org/c" in run.stderr and "needed by org/b@v1" in run.stderr


def test_locks(hub, cache, tmp_path):
    lock = tmp_path / "kernels.lock"
    first = hub.commit(hub.repos["kernels/org/good"]["v1"])
    lock.write_text(json.dumps([{"dependency": {"repo-id": "org/good", "version": 1}, "lock": {"commit": first}}]))
    hub.repos["kernels/org/good"]["old"] = hub.repos["kernels/org/good"]["v1"]  # the commit is still there
    hub.repos["kernels/org/good"]["v1"] = {**fake(), "README.md": b"later"}
    run = khub(hub, cache, "download", "--lock", lock)
    assert ok(run).strip().endswith(f"snapshots/{first}/{BUILD}")
    hub.paths()
    assert first in ok(khub(hub, cache, "get", "org/good@v1", "--lock", lock))
    assert hub.paths() == []
    run = khub(hub, cache, "get", "org/other@v1", "--lock", lock)
    assert run.returncode == 1 and "isn't in the lock" in run.stderr and str(lock) in run.stderr
    ok(khub(hub, cache, "download", "--lock", lock, "--all"))
    assert (cache / "kernels--org--good" / "snapshots" / first / "build" / "tvm-ffi01-cu128-aarch64-linux").is_dir()


def test_downloads(hub, cache, tmp_path):
    ok(khub(hub, cache, "download", "org/good@v1", "--include", "build/*/metadata.json"))
    got = sorted(p.name for p in snapshot(cache, hub).rglob("*") if p.is_file())
    assert got == ["metadata.json", "metadata.json"]
    run = khub(hub, cache, "download", "org/good@v1", "--include", "nothing*")
    assert run.returncode == 1 and "matches the pattern nothing*" in run.stderr
    machine = tmp_path / "machine.json"
    machine.write_text('{"os":"linux","arch":"aarch64","backend":"cu128","tvm_ffi":"0.1"}')
    run = khub(hub, cache, "download", "org/good@v1", "--platform", machine)
    assert ok(run).strip().endswith("build/tvm-ffi01-cu128-aarch64-linux")
    assert not (snapshot(cache, hub) / BUILD / "__init__.py").exists()


@pytest.mark.parametrize("name", ["https://huggingface.co/org/good", "hf.co/org/good@v1", "huggingface.co/org/good"])
def test_an_address_is_no_name(hub, cache, name):
    run = khub(hub, cache, "get", name)
    assert run.returncode == 2 and "is an address" in run.stderr and "ORG/NAME@VERSION" in run.stderr


def test_versions(hub, cache):
    hub.repos["kernels/org/good"].update({"v0": fake(), "v12": fake(), "v2": fake(), "vx": fake()})
    ok(khub(hub, cache, "get", "org/good@v2"))
    answer = json.loads(ok(khub(hub, cache, "versions", "org/good", "--json")))
    assert [v["version"] for v in answer["versions"]] == [0, 1, 2, 12]
    assert not answer["offline"]
    answer = json.loads(ok(khub(None, cache, "versions", "org/good", "--json", "--offline")))
    assert answer["offline"] and [(v["version"], v["cached"]) for v in answer["versions"]] == [(2, True)]


def test_variants_of_the_hub(hub, cache):
    answer = json.loads(ok(khub(hub, cache, "variants", "org/good@v1", "--json")))
    assert answer["chosen"] == VARIANT and answer["revision"] == snapshot(cache, hub).name
    assert [v["decision"] for v in answer["variants"]] == ["accepted", "rejected"]
    assert not [p for p in hub.paths() if "/resolve/" in p]  # names decide; nothing is fetched for a remark


def test_info_asks_each_thing_once(hub, cache, tmp_path):
    answer = json.loads(ok(khub(hub, cache, "info", "org/good@v1", "--json")))
    assert [p.split("?")[0] for p in hub.paths()] == [
        "GET /api/kernels/org/good/refs", f"GET /api/kernels/org/good/tree/{snapshot(cache, hub).name}",
        f"GET /kernels/org/good/resolve/{snapshot(cache, hub).name}/{BUILD}/metadata.json", "GET /api/organizations/org/overview"]
    assert answer["commit"] == snapshot(cache, hub).name and answer["chosen"] == VARIANT and answer["metadata"]["version"] == 1
    assert json.loads(ok(khub(hub, cache, "info", "org/good@v1", "--json", "--refresh"))) == answer
    assert hub.paths() == ["GET /api/kernels/org/good/refs"]
    machine = tmp_path / "machine.json"
    machine.write_text('{"os":"linux","arch":"riscv64"}')  # no build fits; the commit is known all the same
    assert json.loads(ok(khub(hub, cache, "info", "org/good@v1", "--json", "--platform", machine)))["commit"] == answer["commit"]


def test_info_and_variants_follow_a_redirect(hub, cache):
    hub.repos["kernels/new/good"] = {"v1": fake()}
    hub.repos["kernels/org/good"]["v1"] = {"kernel-status.toml": b'kind = "redirect"\ndestination = "new/good"\nrevision = "main"\n'}
    hub.trusted = {"org": False, "new": True}
    answer = json.loads(ok(khub(hub, cache, "info", "org/good@v1", "--json")))
    assert answer["commit"] == snapshot(cache, hub, "new/good").name and answer["chosen"] == VARIANT
    assert answer["trusted"] is True  # of who publishes what would be loaded
    assert len([p for p in hub.paths() if p.endswith("/refs")]) == 2
    assert json.loads(ok(khub(hub, cache, "variants", "org/good@v1", "--json")))["revision"] == answer["commit"]


def test_info_is_of_the_hub(hub, cache):
    here = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos", "good")
    for name, env in ((str(here), {}), ("khub/norm", {}), ("org/good@v1", {"LOCAL_KERNELS": f"org/good={here}"})):
        run = khub(hub, cache, "info", name, env=env)
        assert run.returncode == 2 and f"{name} is a directory of this machine" in run.stderr and hub.paths() == []


def test_local_kernels_stand_first(hub, cache):
    here = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos", "good")
    run = khub(hub, cache, "get", "org/good@v1", env={"LOCAL_KERNELS": f"org/good={here}"})
    assert ok(run).strip().startswith(str(here)) and hub.paths() == []


def test_files_that_were_changed_in_the_cache(hub, cache):
    """As docs/cache.md says: another size is noticed at once, the same size when a kernel is loaded, and by cache verify."""
    ok(khub(hub, cache, "get", "org/good@v1"))
    file = next((snapshot(cache, hub) / BUILD).glob("*.so"))
    right = file.read_bytes()
    file.write_bytes(right[:-1])  # through the link
    hub.paths()
    run = khub(hub, cache, "get", "org/good@v1", "--offline")
    assert run.returncode == 5 and f"1 of its files isn't in the cache ({BUILD}/{file.name}," in run.stderr
    ok(khub(hub, cache, "get", "org/good@v1"))
    assert [p.split("/")[-1] for p in hub.paths()] == [file.name] and file.read_bytes() == right
    file.write_bytes(bytes(b ^ 1 for b in right))
    run = khub(hub, cache, "cache", "verify")
    assert run.returncode == 4 and file.name in run.stdout
    ok(khub(hub, cache, "cache", "rm", "org/good@v1"))
    ok(khub(hub, cache, "get", "org/good@v1"))
    assert file.read_bytes() == right and khub(hub, cache, "cache", "verify").returncode == 0


PEER = """
import os, sys
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
from huggingface_hub import snapshot_download
print(snapshot_download("org/good", repo_type="kernel", revision=sys.argv[1], allow_patterns="build/*"))
"""


def peer(hub, cache, revision, **env):
    return subprocess.run([sys.executable, "-c", PEER, revision], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": str(cache), "HF_HUB_CACHE": str(cache),
                               "HF_ENDPOINT": hub.endpoint, **env})


@pytest.mark.parametrize("path, most", [(f"{BUILD}/metadata.json", 16 << 20), ("kernel-status.toml", 64 << 10)])
def test_what_is_read_before_its_publisher_is_judged_is_short(hub, cache, path, most):
    """Or whoever publishes could fill the disk."""
    hub.repos["kernels/org/good"]["v1"][path] = b" " * (most + 1)
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 1 and f"{path} is {most + 1} bytes long, at most {most} are read" in run.stderr, run.stderr
    assert not [p for p in hub.paths() if "/resolve/" in p]


def test_what_the_peer_fetched_works_offline_by_version(hub, cache):
    commit = hub.commit(hub.repos["kernels/org/good"]["v1"])
    ok(peer(hub, cache, commit))  # by commit, as the kernels package does: no refs/v1
    hub.paths()
    run = khub(hub, cache, "get", "org/good@v1", "--offline")
    assert commit in ok(run) and "newest snapshot of version 1" in run.stderr
    hub.repos["kernels/org/good"]["v1"] = {**fake(), "README.md": b"moved on"}
    run = khub(hub, cache, "get", "org/good@v1")  # the Hub knows; what the cache would have guessed doesn't count
    assert run.returncode == 0 and run.stderr == "" and commit not in run.stdout
    (cache / "kernels--org--good" / "refs" / "v1").unlink()
    hub.paths()
    run = khub(hub, cache, "get", "org/good@v2", "--offline")
    assert run.returncode == 5 and commit in run.stderr  # doesn't guess; says what there is
    assert hub.paths() == []


def test_what_khub_fetched_works_for_the_peer_offline(hub, cache):
    ok(khub(hub, cache, "download", "org/good@v1", "--all"))
    hub.paths()
    there = ok(peer(hub, cache, "v1", HF_HUB_OFFLINE="1")).strip()
    assert pathlib.Path(there) == snapshot(cache, hub)
    assert hub.paths() == []


def test_a_cache_of_the_retired_type(hub, cache):
    ok(khub(hub, cache, "download", "org/good@v1", "--all"))
    (cache / "kernels--org--good").rename(cache / "models--org--good")
    run = khub(None, cache, "get", "org/good@v1", "--offline")
    assert run.returncode == 0 and "retired type" in run.stderr


def test_revisions_with_slashes(hub, cache):
    hub.repos["kernels/org/good"]["feature/x"] = fake()
    run = khub(hub, cache, "get", "org/good@feature/x")
    assert run.returncode == 0, run.stderr
    assert khub(None, cache, "get", "org/good@feature/x", "--offline").returncode == 0
    assert khub(hub, cache, "get", "org/good/x@v1").returncode == 2


def test_each_need_is_got_once(hub, cache):
    """Two that need two that need two …: 20 kernels, and 2**10 ways to the last two."""
    steps = 10
    for i in range(steps):
        needs = [f"org/n{i + 1}{side}" for side in "ab"] if i + 1 < steps else []
        for side in "ab":
            hub.repos[f"kernels/org/n{i}{side}"] = {"v1": with_needs(f"n{i}{side}", needs * 50)}
    hub.repos["kernels/org/a"] = {"v1": with_needs("a", ["org/n0a", "org/n0b"])}
    run = khub(hub, cache, "get", "org/a@v1", "-v")
    assert run.returncode == 0
    assert run.stderr.count(": loaded") == 1 + 2 * steps + run.stderr.count("libtvm_ffi.so") // 2
    run = khub(hub, cache, "get", "org/a@v1", "--refresh")
    assert run.returncode == 0


@pytest.mark.parametrize("need", ["{}", ".", "..", "org/x/y", "org/good@v1", "org", "", "org/" + "x" * 5000])
def test_a_need_names_a_kernel_of_the_hub(hub, cache, tmp_path, need):
    """and never a directory of this machine, which its publisher has no say in."""
    local = tmp_path / "local@v1"
    local.mkdir()
    (local / "build").symlink_to(pathlib.Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos", "good", "build"))
    hub.repos["kernels/org/a"] = {"v1": with_needs("a", [need.format(tmp_path / "local")])}
    run = khub(hub, cache, "get", "org/a@v1")
    assert run.returncode == 1 and "kernel-depends" in run.stderr and "needed by org/a@v1" in run.stderr


@pytest.mark.parametrize("asked", [-2**63, 2**63 - 1, -1, 0])
def test_any_age_of_the_publishers_answer(hub, cache, asked):
    ok(khub(hub, cache, "get", "org/good@v1"))
    record = snapshot(cache, hub).parents[1] / "publisher.json"
    record.write_text(json.dumps({"publisher": "org", "trusted": True, "asked": asked}))
    ok(khub(hub, cache, "get", "org/good@v1"))
    next(snapshot(cache, hub).rglob("*.so")).unlink()
    hub.trusted["org"] = False
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 4  # old, or from the future: asked again before anything comes


def test_a_publishers_answer_that_is_no_file(hub, cache, tmp_path):
    ok(khub(hub, cache, "get", "org/good@v1"))
    record = snapshot(cache, hub).parents[1] / "publisher.json"
    record.unlink()
    os.mkfifo(record)  # nobody reads it, so that writing to it would wait for ever
    ok(khub(hub, cache, "get", "org/good@v1"))
    assert json.loads(record.read_text())["trusted"] is True
    elsewhere = tmp_path / "elsewhere.json"
    record.rename(elsewhere)
    record.symlink_to(elsewhere)
    hub.trusted["org"] = False
    before = elsewhere.read_text()
    assert khub(hub, cache, "get", "org/good@v1").returncode == 4  # a link out of the cache isn't read
    assert elsewhere.read_text() == before  # nor written through


def locked(name, version, commit):
    return {"dependency": {"repo-id": name, "version": version}, "lock": {"commit": commit}}


def test_a_redirect_stays_in_the_lock(hub, cache, tmp_path):
    hub.repos["kernels/org/good"]["v2"] = {"kernel-status.toml": b'kind = "redirect"\ndestination = "new/good"\n'}
    hub.repos["kernels/new/good"] = {"old": fake(version=2), "v2": {**fake(version=2), "README.md": b"later"}}
    hub.trusted["new"] = True
    asked, moved = (hub.commit(hub.repos[name][branch]) for name, branch in [("kernels/org/good", "v2"), ("kernels/new/good", "old")])
    lock = tmp_path / "kernels.lock"
    lock.write_text(json.dumps([locked("org/good", 2, asked)]))
    run = khub(hub, cache, "get", "org/good@v2", "--lock", lock)
    assert run.returncode == 1 and "new/good@v2: isn't in the lock" in run.stderr
    lock.write_text(json.dumps([locked("org/good", 2, asked), locked("new/good", 2, moved)]))
    assert moved in ok(khub(hub, cache, "get", "org/good@v2", "--lock", lock))


@pytest.mark.parametrize("destination, revision", [("/tmp/x", "main"), ("./x", "main"), ("a/b/c", "main"), ("new/good@v1", "main"), ("new/good", ".."), ("http://x/y", "main")])
def test_a_redirect_to_what_is_no_kernel(hub, cache, destination, revision):
    status = f'kind = "redirect"\ndestination = "{destination}"\nrevision = "{revision}"\n'
    hub.repos["kernels/org/good"]["x"] = {"kernel-status.toml": status.encode()}
    run = khub(hub, cache, "get", "org/good@x")
    assert run.returncode == 1 and "org/good: its kernel-status.toml" in run.stderr


@pytest.mark.parametrize("entries, words", [
    ([], None), ([locked("../x", 1, "a" * 40)], "entry 0"), ([locked("org/good", -2, "a" * 40)], "versions start at 0"), ([locked("org/good", 1, "a" * 39)], "is no commit")])
def test_locks_that_are_wrong(hub, cache, tmp_path, entries, words):
    lock = tmp_path / "kernels.lock"
    lock.write_text(json.dumps(entries))
    run = khub(hub, cache, "download", "--lock", lock)
    assert run.returncode == (1 if words else 0)
    assert run.stderr == "" if not words else words in run.stderr and str(lock) in run.stderr


@pytest.mark.parametrize("copies", [True, False])
def test_a_snapshot_that_leads_out_of_the_cache(hub, cache, tmp_path, copies):
    ok(khub(hub, cache, "get", "org/good@v1"))
    folder, away = snapshot(cache, hub) / BUILD, tmp_path / "a" / "b" / "c" / "away"
    if copies:
        shutil.copytree(folder, away)
    else:  # links in the usual words, which lead to another blobs/ from there
        shutil.copytree(folder, away, symlinks=True)
        shutil.copytree(cache / "kernels--org--good" / "blobs", tmp_path / "blobs")
    shutil.rmtree(folder)
    folder.symlink_to(away)
    run = khub(hub, cache, "get", "org/good@v1")
    assert run.returncode == 1 and "leads out of the cache" in run.stderr
    assert khub(None, cache, "get", "org/good@v1", "--offline").returncode == 5


def test_a_repository_that_is_kept_elsewhere(hub, cache, tmp_path):
    for links in ({}, {"HF_HUB_DISABLE_SYMLINKS": "1"}):
        cache = tmp_path / f"cache{len(links)}"
        ok(khub(hub, cache, "get", "org/good@v1", env=links))
        (cache / "kernels--org--good").rename(tmp_path / f"away{len(links)}")
        (cache / "kernels--org--good").symlink_to(tmp_path / f"away{len(links)}")
        ok(khub(None, cache, "get", "org/good@v1", "--offline", env=links))
