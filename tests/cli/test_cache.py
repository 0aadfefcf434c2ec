"""khub cache: what it lists, takes out and finds, on caches that were written file by file."""
import json
import os
import time

import pytest

from caches import A, B, C, add, git_hash, khub_cache, sha256

KERNEL = "kernels-community/activation"
SHARED, ONE, TWO = b"shared\n" * 1000, b"only in one", b"only in two!"


@pytest.fixture
def cache(tmp_path):
    """A kernel with two commits that share a blob, and a model."""
    cache = tmp_path / "cache"
    add(cache, "kernel", KERNEL, A, {"README.md": SHARED, "build/x/lib.so": ONE}, ["v1", "main"])
    add(cache, "kernel", KERNEL, B, {"README.md": SHARED, "build/x/lib.so": TWO})
    add(cache, "model", "gpt2", C, {"model.safetensors": TWO}, ["main"], name=sha256)
    return cache


def listed(cache, *arguments):
    done = khub_cache(cache, "ls", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_list_as_json(cache):
    answer = listed(cache)
    assert answer["cache"] == str(cache)
    assert answer["bytes"] == len(SHARED) + len(ONE) + 2 * len(TWO)
    assert answer["warnings"] == []
    one, two, model = answer["revisions"]
    assert (one["kind"], one["repository"], one["commit"], one["refs"]) == ("kernel", KERNEL, A, ["main", "v1"])
    assert (one["bytes"], one["own_bytes"], one["files"]) == (len(SHARED) + len(ONE), len(ONE), 2)
    assert (two["commit"], two["refs"], two["own_bytes"]) == (B, [], len(TWO))
    assert (model["kind"], model["repository"]) == ("model", "gpt2")
    assert os.path.isdir(one["path"])
    blob = cache / "models--gpt2" / "blobs" / sha256(TWO)
    assert model["last_used"] == int(blob.stat().st_atime) and model["last_modified"] == int(blob.stat().st_mtime)
    assert [r["commit"] for r in listed(cache, KERNEL)["revisions"]] == [A, B]
    assert [r["commit"] for r in listed(cache, "--model")["revisions"]] == [C]


def test_list_for_people(cache):
    blob = cache / "models--gpt2" / "blobs" / sha256(TWO)
    then = time.time() - 3 * 86400 - 60
    os.utime(blob, (then, then))
    done = khub_cache(cache, "ls")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and lines[0].split() == ["kind", "repository", "commit", "size", "files", "last", "used", "refs"]
    assert lines[1].split()[:6] == ["kernel", KERNEL, A[:12], "7.0", "KB", "2"] and lines[1].endswith(" main v1")
    assert lines[3].split() == ["model", "gpt2", C[:12], "12", "B", "1", "3", "days", "ago", "main"]
    assert done.stderr == f"khub: {cache}: 7.0 KB\n"


def test_an_empty_cache(tmp_path):
    done = khub_cache(tmp_path / "none", "ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert listed(tmp_path / "none")["revisions"] == []
    assert not (tmp_path / "none").exists()


def test_the_environment_names_the_cache(cache, tmp_path):
    for variables in ({"KERNELS_CACHE": str(cache)}, {"HF_HUB_CACHE": "~/cache", "HOME": str(tmp_path)},
                      {"HF_HUB_CACHE": "$ROOT/cache", "ROOT": str(tmp_path)}):
        done = khub_cache("", "ls", "--json", **variables)
        assert json.loads(done.stdout)["cache"] == str(cache), variables
        assert len(json.loads(done.stdout)["revisions"]) == 3
    (tmp_path / "home/.cache/huggingface").mkdir(parents=True)
    (tmp_path / "home/.cache/huggingface/hub").symlink_to(cache)
    assert len(json.loads(khub_cache("", "ls", "--json", HOME=str(tmp_path / "home")).stdout)["revisions"]) == 3
    assert json.loads(khub_cache("", "ls", "--json", HOME=str(tmp_path / "nobody")).stdout)["revisions"] == []


@pytest.mark.parametrize("revision", [A, A[:7], "v1", "1", "main"])
def test_one_revision_is_taken_out(cache, revision):
    dry = khub_cache(cache, "rm", f"{KERNEL}@{revision}", "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, "would free 11 B: 1 revision, 1 blob, 0 partial downloads\n")
    assert len(listed(cache)["revisions"]) == 3
    done = khub_cache(cache, "rm", f"{KERNEL}@{revision}")
    assert (done.returncode, done.stdout) == (0, "freed 11 B: 1 revision, 1 blob, 0 partial downloads\n")
    folder = cache / "kernels--kernels-community--activation"
    assert [r["commit"] for r in listed(cache)["revisions"]] == [B, C]
    assert (folder / "snapshots" / B / "README.md").read_bytes() == SHARED
    assert list((folder / "refs").iterdir()) == []


def test_repositories_are_taken_out(cache):
    done = khub_cache(cache, "rm", KERNEL, "--json")
    assert json.loads(done.stdout) == {"freed": len(SHARED) + len(ONE) + len(TWO), "repositories": 1, "revisions": 2, "blobs": 3,
                                       "partial_downloads": 0, "dry_run": False}
    assert not (cache / "kernels--kernels-community--activation").exists()
    done = khub_cache(cache, "rm", "gpt2")
    assert done.returncode == 1 and "gpt2: is in the cache as a model, not as a kernel" in done.stderr
    assert "--model" in done.stderr
    assert khub_cache(cache, "rm", "gpt2", "--model").returncode == 0
    assert listed(cache)["revisions"] == [] and listed(cache)["bytes"] == 0


def test_several_at_once(cache):
    done = khub_cache(cache, "rm", f"{KERNEL}@{A}", f"{KERNEL}@{B}")
    assert (done.returncode, done.stdout) == (0, "freed 7.0 KB: 2 revisions, 3 blobs, 0 partial downloads\n")


def test_one_thing_by_several_names(cache):
    """What went by one name isn't missed by the next; and nothing goes when one of them isn't there."""
    done = khub_cache(cache, "rm", f"{KERNEL}@v1", "no/body")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"khub: no/body: no such kernel is in the cache ({cache})\n")
    assert len(listed(cache)["revisions"]) == 3
    for dry_run, word in ((["--dry-run"], "would free"), ([], "freed")):
        done = khub_cache(cache, "rm", f"{KERNEL}@v1", f"{KERNEL}@main", f"{KERNEL}@{A[:8]}", *dry_run)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{word} 11 B: 1 revision, 1 blob, 0 partial downloads\n", "")
    done = khub_cache(cache, "rm", f"{KERNEL}@{B}", KERNEL, KERNEL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "freed 7.0 KB: 1 revision, 2 blobs, 0 partial downloads\n", "")


@pytest.mark.parametrize("arguments, words", [
    (["rm"], "which repository?"), (["rm", "@v1"], "isn't ORG/NAME"), (["rm", "a/b@"], "isn't ORG/NAME"), ([], "ls, rm, prune or verify?"),
    (["clean"], 'there is no "clean"'), (["ls", "a", "b"], "one repository"), (["ls", "a/b@v1"], "without"), (["prune", "a"], "takes no names"),
    (["verify", "a", "b"], "one repository"), (["ls", "--dry-run"], "changes nothing"), (["ls", "--all"], 'no option "--all"')])
def test_wrong_usage(cache, arguments, words):
    done = khub_cache(cache, *arguments)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""


def test_what_is_not_there(cache):
    done = khub_cache(cache, "rm", "no/body")
    assert done.returncode == 1 and f"no/body: no such kernel is in the cache ({cache})" in done.stderr
    done = khub_cache(cache, "rm", f"{KERNEL}@v9")
    assert done.returncode == 1 and 'none of the 2 snapshots in the cache is "v9"' in done.stderr
    assert A in done.stderr and B in done.stderr
    add(cache, "kernel", KERNEL, "a" * 39 + "b", {"README.md": SHARED})
    done = khub_cache(cache, "rm", f"{KERNEL}@aaaaaaa")
    assert done.returncode == 1 and "2 snapshots in the cache can be meant" in done.stderr
    assert len(listed(cache)["revisions"]) == 4
    for arguments, words in ((["verify", "no/body"], f"no/body: isn't in the cache ({cache})"), (["ls", "no/body"], f"no/body: no revision of a repository of that name is in the cache ({cache})"),
                             (["ls", KERNEL, "--model"], f"{KERNEL}: no revision of a model of that name is in the cache ({cache})")):
        done = khub_cache(cache, *arguments)
        assert (done.returncode, done.stderr) == (1, f"khub: {words}\n"), arguments
    done = khub_cache(cache, "ls", "--json", "no/body")
    assert done.returncode == 1 and json.loads(done.stdout)["revisions"] == []


def test_a_revision_of_a_repository_without_any(cache):
    """What an interrupted fetch left isn't the revision."""
    blobs = cache / "kernels--org--started" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / ("e" * 40 + ".0a1b2c3d.incomplete")).write_bytes(b"1234")
    done = khub_cache(cache, "rm", "org/started@v1")
    assert done.returncode == 1 and done.stdout == "" and len(list(blobs.iterdir())) == 1
    assert done.stderr == f"khub: org/started: there is no snapshot of v1 in the cache ({cache})\n"
    done = khub_cache(cache, "rm", "org/started")
    assert (done.returncode, done.stdout) == (0, "freed 4 B: 0 revisions, 0 blobs, 1 partial download, 1 repository without revisions\n")
    assert not blobs.exists()


def test_prune(cache):
    folder = cache / "kernels--kernels-community--activation"
    (folder / "blobs" / ("d" * 40)).write_bytes(b"12345")
    (folder / "blobs" / ("e" * 40 + ".0a1b2c3d.incomplete")).write_bytes(b"1234")
    expected = {"freed": len(TWO) + 9, "repositories": 0, "revisions": 1, "blobs": 2, "partial_downloads": 1, "dry_run": True,
                "removed": [{"kind": "kernel", "repository": KERNEL, "commit": B, "own_bytes": len(TWO)}]}
    assert khub_cache(cache, "prune", "--dry-run").stdout == f"kernel   {KERNEL}@{B[:12]}  12 B\nwould free 21 B: 1 revision, 2 blobs, 1 partial download\n"
    assert json.loads(khub_cache(cache, "prune", "--dry-run", "--json").stdout) == expected
    assert json.loads(khub_cache(cache, "prune", "--json").stdout) == expected | {"dry_run": False}
    assert [r["commit"] for r in listed(cache)["revisions"]] == [A, C]
    assert len(list((folder / "blobs").iterdir())) == 2
    assert json.loads(khub_cache(cache, "prune", "--json").stdout)["removed"] == []
    assert khub_cache(cache, "prune").stdout == "freed 0 B: 0 revisions, 0 blobs, 0 partial downloads\n"


def test_verify(cache):
    done = khub_cache(cache, "verify")
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 files: 5 good, 0 changed, 0 missing, 0 unknown\n", "")
    folder = cache / "kernels--kernels-community--activation"
    snapshot = folder / "snapshots" / A
    changed = bytearray(ONE)
    changed[3] ^= 1
    (snapshot / "build/x/lib.so").write_bytes(changed)  # through the link
    (snapshot / "gone").symlink_to("../../blobs/" + "d" * 40)
    (snapshot / "own").write_text("x")
    done = khub_cache(cache, "verify", KERNEL)
    assert done.returncode == 4
    assert done.stdout.splitlines() == [
        f"changed  {KERNEL}@{A[:12]} build/x/lib.so: the content hashes to {git_hash(bytes(changed))}, its name is {git_hash(ONE)}",
        f"missing  {KERNEL}@{A[:12]} gone: shows ../../blobs/{'d' * 40}, which is no blob of this repository",
        f"unknown  {KERNEL}@{A[:12]} own: nothing says what it should be",
        "6 files: 3 good, 1 changed, 1 missing, 1 unknown"]
    answer = json.loads(khub_cache(cache, "verify", "--json").stdout)
    assert answer["bad"] == 2 and len(answer["files"]) == 7
    assert [f["state"] for f in answer["files"] if f["commit"] == A] == ["good", "changed", "missing", "unknown"]
    (file,) = [f for f in answer["files"] if f["file"] == "gone"]
    assert (file["repository"], file["commit"], file["state"]) == (KERNEL, A, "missing")
    (snapshot / "build/x/lib.so").write_bytes(ONE[:-1])
    assert "changed" in khub_cache(cache, "verify").stdout


def test_names_do_not_steer_the_terminal(cache):
    add(cache, "kernel", "evil/\x1b[31mred", A, {"x\x07": ONE})
    done = khub_cache(cache, "ls")
    assert "\x1b" not in done.stdout and "?[31mred" in done.stdout
    assert "\x07" not in khub_cache(cache, "verify", "-v").stdout
    assert "evil/\x1b[31mred" in [r["repository"] for r in listed(cache)["revisions"]]


def test_odd_things_are_warnings(cache):
    (cache / "something").mkdir()
    (cache / "models--gpt2" / "refs" / "old").write_text("d" * 40)
    done = khub_cache(cache, "ls")
    assert done.returncode == 0 and "2 things in the cache can't be understood" in done.stderr
    assert "of which there is no snapshot" in khub_cache(cache, "ls", "-v").stderr
    assert len(listed(cache)["warnings"]) == 2
    (cache / "something").rmdir()
    assert "1 thing in the cache can't" in khub_cache(cache, "ls").stderr


def test_a_cache_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    for arguments in (["ls"], ["prune"], ["rm", KERNEL], ["verify"]):
        done = khub_cache(tmp_path / "file", *arguments)
        assert (done.returncode, done.stderr) == (1, f"khub: the cache {tmp_path}/file is a file, a folder is needed; HF_HUB_CACHE or --cache-dir names another\n")
    done = khub_cache(tmp_path / "file" / "below", "ls")
    assert done.returncode == 1 and f"the cache {tmp_path}/file/below can't be made beneath a file" in done.stderr


def test_help_has_an_example_first(cache):
    done = khub_cache(cache, "--help")
    assert done.returncode == 0 and done.stdout.splitlines()[2].strip() == "khub cache ls"


@pytest.mark.parametrize("odd", ["link", "file", "ref"])
def test_refs_that_cant_be_read_keep_every_revision(cache, tmp_path, odd):
    """They may name any of them."""
    refs = cache / "kernels--kernels-community--activation" / "refs"
    if odd == "ref":
        (refs / "main").write_text("nonsense")
        (refs / "v1").unlink()
    else:
        refs.rename(tmp_path / "away")
        refs.symlink_to(tmp_path / "away") if odd == "link" else refs.write_text("")
    done = khub_cache(cache, "prune", "-v")
    assert done.returncode == 0
    assert [r["commit"] for r in listed(cache)["revisions"]] == [A, B, C]
    assert any("refs" in warning for warning in listed(cache)["warnings"])


def test_verify_goes_on_past_what_is_no_file(cache):
    blob = cache / "models--gpt2" / "blobs" / sha256(TWO)
    blob.unlink()
    os.mkfifo(blob)
    done = khub_cache(cache, "verify")
    assert done.returncode == 4 and "5 files: 4 good, 1 changed" in done.stdout and "pipe" in done.stdout
