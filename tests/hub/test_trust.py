"""Whose kernels are loaded: what the Hub, the caller and the user's policy say, online and offline, and how it is told."""

import base64
import hashlib
import json
import os
import pathlib
import stat
import sys

import pytest
from small_hub import VARIANT, Hub, fake, khub

sys.path.append(str(pathlib.Path(__file__).parents[1] / "oracle"))
from authority import Authority  # noqa: E402


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["kernels/org/good"] = {"main": fake(), "v1": fake()}
    yield hub
    hub.close()


@pytest.fixture
def policy(tmp_path):
    """Writes the user's policy; returns the environment that names it."""

    def write(**what):
        (tmp_path / "t.json").write_text(json.dumps(what))
        return {"KHUB_TRUST_FILE": str(tmp_path / "t.json")}

    return write


def decisions(run, about="publisher"):
    assert run.returncode == 0, run.stderr
    return [(d["decision"], d["words"]) for d in json.loads(run.stdout)["trust"] if d["about"] == about]


def is_refused(run, words):
    return run.returncode == 4 and words in run.stderr and run.stdout == ""


def fetched(hub):
    return [p for p in hub.paths() if "/resolve/" in p and not p.endswith(("/metadata.json", "/metadata.json.sigstore"))]


@pytest.mark.parametrize("trusted", [{"org": False}, {"org": None}, {}])
def test_no_is_said_before_anything_is_fetched(hub, cache, trusted):
    """Also of a person, whom the Hub has no such page of."""
    hub.trusted = trusted
    run = khub(hub, cache, "get", "org/good@v1", "--json")
    if trusted == {"org": None}:
        assert is_refused(run, "")
    else:
        assert is_refused(run, "org/good: the Hub doesn't call org a trusted publisher of kernels; nothing was loaded.")
        assert "vouch for it: --trust org/good, or for good: khub trust add org/good" in run.stderr
    assert fetched(hub) == []
    run = khub(hub, cache, "info", "org/good@v1", "--json")
    assert [d for d, _ in decisions(run)] == ["refused"] and json.loads(run.stdout)["trusted"] is False
    assert "may not be loaded (level publisher)\n           publisher  refused   the Hub doesn't call org " in khub(hub, cache, "info", "org/good@v1").stdout


def test_yes_and_who_else_says_it(hub, cache, policy):
    (decision, words), = decisions(khub(hub, cache, "get", "org/good@v1", "--json"))
    assert decision == "accepted" and words.startswith("org/good: on 20") and words.endswith("the Hub called org a trusted publisher")
    hub.trusted["org"] = False
    for who in "org", "org/good":
        env = policy(publishers=["other", who])
        assert decisions(khub(hub, cache, "get", "org/good@v1", "--json", env=env)) == [("accepted", f"org/good: {env['KHUB_TRUST_FILE']} vouches for it")]
        env = policy(publishers=["org/goo", "org/good2", "or"])
        assert decisions(khub(hub, cache, "get", "org/good@v1", "--json", "--trust", who, env=env)) == [("accepted", "org/good: the caller vouches for it")]
    record, = cache.glob("kernels--org--good/publisher.json")
    record.unlink()
    assert is_refused(khub(hub, cache, "get", "org/good@v1", env=env), "doesn't call org")
    run = khub(hub, cache, "info", "org/good@v1", "--trust", "org")
    assert "trust      may be loaded (level publisher)\n           publisher  accepted  the caller vouches for it\n" in run.stdout


def test_not_to_know_is_not_no(hub, cache):
    once = {"KHUB_RETRIES": "0"}
    assert khub(hub, cache, "get", "org/good@v1", "--trust", "org").returncode == 0
    hub.down = True
    assert is_refused(khub(hub, cache, "get", "org/good@v1", env=once), "org/good: whether org is a trusted publisher couldn't be found out (")
    assert is_refused(khub(None, cache, "get", "org/good@v1", env=once), "couldn't be found out (")
    (decision, words), = decisions(khub(hub, cache, "info", "org/good@v1", "--json", env=once))
    assert decision == "refused" and "503" in words and "--trust org/good" in words


def test_offline(hub, cache, policy):
    """From when it is known; else a warning, or what the policy says."""
    strict, lenient = {"offline": "refuse"}, {"offline": "notice"}
    assert khub(hub, cache, "get", "org/good@v1").returncode == 0
    for what in lenient, strict:
        run = khub(None, cache, "get", "org/good@v1", "--offline", "--json", env=policy(**what))
        (decision, words), = decisions(run)
        assert decision == "accepted" and "offline; on 20" in words and run.stderr == ""
    record, = cache.glob("kernels--org--good/publisher.json")
    known = record.read_text()
    for text in None, "{}", known.replace("org", "other"), known[:-5]:
        record.unlink(missing_ok=True) if text is None else record.write_text(text)
        run = khub(None, cache, "get", "org/good@v1", "--offline", "--json", env=policy(**lenient))
        (decision, words), = decisions(run)
        assert decision == "noted" and "offline, and nothing here says whether org is a trusted publisher" in words
        assert run.stderr == f"khub: warning: {words}\n"
        run = khub(None, cache, "get", "org/good@v1", "--offline", env=policy(**strict))
        assert is_refused(run, "which the policy refuses") and "khub trust add org/good" in run.stderr
    run = khub(None, cache, "get", "org/good@v1", "--offline", "--json", env=policy(**strict, publishers=["org"]))
    assert [d for d, _ in decisions(run)] == ["accepted"]
    record.write_text(known.replace("true", "false"))
    assert is_refused(khub(None, cache, "get", "org/good@v1", "--offline", env=policy(**lenient)), "doesn't call org a trusted publisher")


def test_a_record_that_others_may_have_written(hub, cache, policy):
    """It says nothing: the Hub is asked, and offline it isn't known."""
    assert os.geteuid() == 0, "this test needs root, to be two users"
    assert khub(hub, cache, "get", "org/good@v1").returncode == 0
    record, = cache.glob("kernels--org--good/publisher.json")
    folder = record.parent
    spoils = [(lambda: os.chown(record, 12345, -1), lambda: os.chown(record, 0, -1)),
              (lambda: record.chmod(0o666), lambda: record.chmod(0o644)),
              (lambda: folder.chmod(0o777), lambda: folder.chmod(0o755))]
    hub.trusted["org"] = False
    for spoil, mend in spoils:
        known = record.read_bytes()
        spoil()
        run = khub(None, cache, "get", "org/good@v1", "--offline", env=policy(offline="refuse"))
        assert is_refused(run, "nothing here says whether org is a trusted publisher")
        assert is_refused(khub(hub, cache, "get", "org/good@v1"), "the Hub doesn't call org a trusted publisher")
        mend()
        record.write_bytes(known)
        assert stat.S_IMODE(record.stat().st_mode) == 0o644
        assert khub(None, cache, "get", "org/good@v1", "--offline", env=policy(offline="refuse")).returncode == 0


@pytest.mark.parametrize("way", ["renamed", "redirected"])
def test_who_holds_the_bytes_is_judged(hub, cache, policy, way):
    """To trust the name that one is led away from is to trust nobody."""
    hub.repos["kernels/new/good"] = {"v1": fake()}
    if way == "renamed":
        del hub.repos["kernels/org/good"]
        hub.moved["kernels/org/good"] = "new/good"
    else:
        hub.repos["kernels/org/good"]["v1"] = {"kernel-status.toml": b'kind = "redirect"\ndestination = "new/good"\nrevision = "main"\n'}
    hub.trusted = {"org": True, "new": False}
    for who in "org", "org/good":
        run = khub(hub, cache, "get", "org/good@v1", "--trust", who, env=policy(publishers=[who]))
        assert is_refused(run, "new/good: the Hub doesn't call new a trusted publisher") and "--trust new/good" in run.stderr
        assert [p for p in fetched(hub) if not p.endswith("kernel-status.toml")] == []
        run = khub(None, cache, "get", "org/good@v1", "--offline", "--trust", who)
        assert run.returncode != 0 and "new/good" in run.stderr
    for who in "new", "new/good":
        assert decisions(khub(hub, cache, "get", "org/good@v1", "--json", env=policy(publishers=[who])))[0][1].startswith("new/good: ")
        assert decisions(khub(None, cache, "get", "org/good@v1", "--json", "--offline", "--trust", who))[0][1].startswith("new/good: ")


def test_a_commit_of_a_renamed_repository(hub, cache, tmp_path):
    """Nobody asks where a commit stands: its list of files says where it is. Another commit is its own."""
    hub.repos["kernels/new/good"] = {"v1": fake()}
    commit = hub.commit(fake())
    before = {**fake(), "README.md": b"before"}
    hub.repos["kernels/org/good"]["old"] = before
    assert khub(hub, cache, "get", f"org/good@{hub.commit(before)}").returncode == 0
    hub.paths()
    hub.moved["kernels/org/good"], hub.trusted = "new/good", {"org": True, "new": False}
    lock = tmp_path / "kernels.lock"
    lock.write_text(json.dumps([{"dependency": {"repo-id": "org/good", "version": 1}, "lock": {"commit": commit}}]))
    for words in ["download", f"org/good@{commit}"], ["get", f"org/good@{commit}"], ["get", "org/good@v1", "--lock", lock]:
        run = khub(hub, cache, *words, "--trust", "org")
        assert is_refused(run, "new/good: the Hub doesn't call new a trusted publisher") and fetched(hub) == []
    assert khub(hub, cache, "get", f"org/good@{commit}", "--trust", "new").returncode == 0
    assert khub(hub, cache, "get", f"org/good@{hub.commit(before)}", "--trust", "org").returncode == 0
    moved, = cache.glob("kernels--org--good/moved/*")
    assert moved.name == commit and moved.read_text() == "new/good\n"
    moved.write_text("../x\n")
    run = khub(hub, cache, "get", f"org/good@{commit}", "--trust", "new")
    assert run.returncode == 1 and "holds no repository's name" in run.stderr
    assert khub(None, cache, "cache", "rm", "org/good").returncode == 0 and not moved.parent.exists()


def test_what_is_needed_is_judged_too(hub, cache, policy):
    """Trust in a kernel isn't trust in those that it needs."""
    files, metadata = fake(), f"build/{VARIANT}/metadata.json"
    files[metadata] = json.dumps(json.loads(files[metadata]) | {"kernel-depends": [{"repo-id": "other/good", "version": 1}]}).encode()
    hub.repos["kernels/org/good"]["v1"], hub.repos["kernels/other/good"] = files, {"v1": fake()}
    run = khub(hub, cache, "get", "org/good@v1", env=policy(publishers=["org"]))
    assert is_refused(run, "other/good: the Hub doesn't call other a trusted publisher") and "(needed by org/good@v1)" in run.stderr
    assert not [p for p in fetched(hub) if "/other/" in p]
    assert khub(hub, cache, "get", "org/good@v1", env=policy(publishers=["org", "other/good"])).returncode == 0


def test_builds_of_this_machine(hub, cache, policy, tmp_path):
    """Who names a directory says whose it is; what came with khub is khub's; neither asks anybody."""
    here = tmp_path / "mine"
    for path, content in fake().items():
        (here / path).parent.mkdir(parents=True, exist_ok=True)
        (here / path).write_bytes(content)
    assert decisions(khub(hub, cache, "get", here, "--json")) == [("accepted", f"{here}: the caller names the directory {here}")]
    run = khub(hub, cache, "get", "org/good@v1", "--json", env={"LOCAL_KERNELS": f"org/good={here}"})
    assert decisions(run) == [("accepted", f"org/good@v1: the caller names the directory {here}")]
    for level in "publisher", "verified", "signed":  # and a policy that can't be read isn't in its way
        assert decisions(khub(hub, cache, "get", "khub/norm", "--json", env=policy(level=level))) == [("accepted", "khub/norm: came with khub")]
    around = os.path.join(os.environ["KHUB_STAGE"], "share/khub/kernels/khub", *[".."] * 40) + str(here)  # begins as the built-in ones do
    assert is_refused(khub(hub, cache, "get", around, env=policy(level="signed")), "metadata.json has no")
    env = policy(levle="signed")
    assert decisions(khub(hub, cache, "get", "khub/norm", "--json", env=env)) == [("accepted", "khub/norm: came with khub")]
    for name in here, "org/good@v1":
        run = khub(hub, cache, "get", name, env=env)
        assert run.returncode == 1 and 'there is no "levle" in a policy' in run.stderr
    assert [p for p in hub.paths() if ".so" in p or "organizations" in p] == []


def test_what_is_asked_for_is_told(hub, cache, policy, tmp_path):
    env = policy(level="publisher")
    shown = json.loads(khub(hub, cache, "info", "org/good@v1", "--json", env=env).stdout)
    root = shown["trusted_root"]
    assert shown["level"] == "publisher" and root["age_days"] > 0 and len(root["sha256"]) == 64 and shown["chosen"] == VARIANT
    copy = tmp_path / "root.json"
    copy.write_bytes(open(root["path"], "rb").read())
    run = khub(hub, cache, "info", "org/good@v1", "--json", "--trusted-root", "root.json", "--trust-level", "publisher", env=env)
    assert run.returncode == 0 and json.loads(run.stdout)["trusted_root"] == {"path": "root.json", "error": "root.json: can't open it: No such file or directory"}
    run = khub(hub, cache, "info", "org/good@v1", "--json", "--trusted-root", copy, env=env)
    assert json.loads(run.stdout)["trusted_root"] == {**root, "path": str(copy)}


def test_a_signature_is_told(hub, cache, policy, tmp_path):
    """Whose it is, of which source, and by which root; at a level that asks for one, it is what counts. Not a file of the build comes for it."""
    authority, build = Authority(), f"build/{VARIANT}/"
    files = {p: c for p, c in fake().items() if not p.startswith("build/") or p.startswith(build)}
    metadata = json.loads(files[build + "metadata.json"])
    metadata["digest"] = {"algorithm": "sha256", "files": {p.removeprefix(build): base64.b64encode(hashlib.sha256(c).digest()).decode()
                                                           for p, c in files.items() if p.startswith(build) and p != build + "metadata.json"}}
    files[build + "metadata.json"] = json.dumps(metadata).encode()
    files[build + "metadata.json.sigstore"] = authority.sign(files[build + "metadata.json"], "new").encode()
    hub.repos["kernels/org/good"] = {"v1": files}
    (tmp_path / "root.json").write_text(json.dumps(authority.trusted_root()))
    info = ["info", "org/good@v1", "--trusted-root", tmp_path / "root.json"]
    shown = json.loads(khub(hub, cache, *info, "--trust-level", "signed", "--json").stdout)
    signature = shown["signature"]
    assert shown["trusted"] is True and shown["level"] == "signed" and fetched(hub) == []
    assert signature["holds"] and signature["reason"] == "holds" and signature["words"] == ""
    assert signature["repository"] == "https://github.com/huggingface/kernels-community"
    assert signature["workflow"] == f"{signature['repository']}/.github/workflows/build.yaml@refs/heads/main" == signature["subject"]
    assert signature["ref"] == "refs/heads/main" and len(signature["commit"]) == 40 and signature["signed_at"] > 0 and signature["log_index"] >= 0
    text = khub(hub, cache, *info).stdout
    assert f"\nsigned     {signature['repository']} at commit {signature['commit']}\nroot       {tmp_path / 'root.json'}, newest key of " in text
    assert "signature  accepted  metadata.json is signed by " in text and "may be loaded (level publisher)" in text
    env = policy(identities=[{"issuer": "https://token.actions.githubusercontent.com", "repository": "https://github.com/me/mine"}])
    for level, trusted, decision in ("publisher", True, "noted"), ("signed", False, "refused"):
        shown = json.loads(khub(hub, cache, *info, "--trust-level", level, "--json", env=env).stdout)
        assert shown["trusted"] is trusted and shown["signature"]["reason"] == "identity" and not shown["signature"]["holds"]
        assert [d["decision"] for d in shown["trust"] if d["about"] == "signature"] == [decision]
    hub.repos["kernels/org/good"]["v2"] = {**files, build + "metadata.json.sigstore": authority.sign(b"other bytes", "new").encode()}
    shown = json.loads(khub(hub, cache, "info", "org/good@v2", *info[2:], "--json").stdout)
    assert shown["trusted"] is False and shown["signature"]["reason"] == "other-bytes" and shown["metadata"] is None
    env = policy(level="signed", trusted_root="root.json", identities=[{"issuer": "https://token.actions.githubusercontent.com",
                                                                        "repository": signature["repository"]}])
    run = khub(hub, cache, "get", "org/good@v1", "--json", env=env)
    assert [d for d, _ in decisions(run, "signature")] == ["accepted"] and [d for d, _ in decisions(run, "digest")] == ["accepted"]
    assert khub(hub, cache, "get", "org/good@v1", env=policy(level="signed")).returncode == 4  # by khub's own root it is nobody's
