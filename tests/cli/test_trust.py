"""khub trust from outside: what holds, each change and the file that it leaves, and what can't be."""

import json
import os
import subprocess

import pytest
from fakes import KHUB, khub

ACTIONS = "https://token.actions.githubusercontent.com"
COMMUNITY = "https://github.com/huggingface/kernels-community"
WORKFLOWS = ["build.yaml", "build-mac.yaml", "build-windows.yaml", "sign-old-builds.yaml"]
OURS = [{"issuer": ACTIONS, "repository": COMMUNITY, "workflow": f"{COMMUNITY}/.github/workflows/{w}@refs/heads/main", "subject": None} for w in WORKFLOWS]


@pytest.fixture
def trust(tmp_path):
    """khub trust WORDS with a home of its own; returns what it printed."""

    def run(*words, status=0, **env):
        env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", **env}
        done = khub("trust", *words, env=env, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    run.file = tmp_path / ".config/khub/trust.json"
    run.json = lambda *words, **env: json.loads(run("--json", *words, **env))
    return run


def test_the_default(trust):
    shown = trust.json()
    root = shown.pop("trusted_root")
    assert shown == {"file": None, "level": "publisher", "offline": "notice", "publishers": [], "signers": OURS, "own_signers": False}
    assert root["path"].endswith("/share/khub/trusted_root.json") and len(root["sha256"]) == 64 and root["age_days"] > 0
    table = trust()
    assert f"{trust.file} (isn't there)" in table and f"newest key of {root['newest']} ({root['age_days']} days ago)" in table
    assert all(s["workflow"] in table for s in OURS) and not trust.file.exists()


def test_publishers(trust):
    assert trust("add", "org/x", "me", "org/x") == ""
    assert json.loads(trust.file.read_text()) == {"level": "publisher", "offline": "notice", "publishers": ["me", "org/x"]}
    assert os.stat(trust.file).st_mode & 0o022 == 0 and os.stat(trust.file.parent).st_mode & 0o077 == 0
    assert "those that the Hub trusts, me, org/x\n" in trust("ls") and trust.json()["file"] == str(trust.file)
    before = trust.file.read_bytes()
    assert '"org@v1" is no publisher' in trust("add", "new", "org@v1", status=2)  # all or nothing
    assert "you: isn't among the publishers" in trust("rm", "me", "you", status=1)
    assert trust.file.read_bytes() == before
    trust("rm", "me", "org/x")
    assert trust.json()["publishers"] == []


def test_changes_at_the_same_time(trust, tmp_path):
    trust("add", "first")
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}
    running = [subprocess.Popen([KHUB, "trust", "add", f"org{i}"], env=env) for i in range(16)]
    assert [r.wait(60) for r in running] == [0] * 16
    assert trust.json()["publishers"] == sorted(["first", *(f"org{i}" for i in range(16))])


def test_level_and_offline(trust):
    trust("level", "signed")
    trust("offline", "refuse")
    assert (trust.json()["level"], trust.json()["offline"]) == ("signed", "refuse")
    assert "there are publisher, verified and signed" in trust("level", "strict", status=2)
    for words in ("level",), ("level", "signed", "verified"), ("offline", "never"), ("add",), ("rm",), ("ls", "x"), ("signers", "x"), ("root",):
        assert "khub trust --help" in trust(*words, status=2)
    assert 'there is no "addd": did you mean add?' in trust("addd", "me", status=2)
    trust("level", "publisher")
    trust("offline", "notice")
    assert (trust.json()["level"], trust.json()["offline"]) == ("publisher", "notice")


def test_signers(trust):
    mine = {"issuer": ACTIONS, "repository": "https://github.com/me/k", "workflow": "https://github.com/me/k/.github/workflows/build.yaml@refs/heads/main", "subject": None}
    mail = {"issuer": "https://accounts.example", "repository": None, "workflow": None, "subject": "me@example.org"}
    elsewhere = {"issuer": "https://gitlab.com", "repository": "https://gitlab.com/me/k", "workflow": None, "subject": None}
    assert "which workflow of me/k?" in trust("accept", "me/k", status=2)
    assert "build.yaml at which ref?" in trust("accept", "me/k", "build.yaml", status=2)
    assert "whom?" in trust("accept", status=2)
    assert not trust.file.exists()
    trust("accept", "me/k", "build.yaml@refs/heads/main")
    trust("accept", "--subject", "me@example.org", "--issuer", "https://accounts.example")
    trust("accept", "https://gitlab.com/me/k", "any", "--issuer", "https://gitlab.com")
    shown = trust.json()
    assert shown["signers"] == [*OURS, mine, mail, elsewhere] and shown["own_signers"]
    assert " me@example.org (vouched for by https://accounts.example)\n" in trust()
    assert " any workflow of https://gitlab.com/me/k (vouched for by https://gitlab.com)\n" in trust()
    trust("reject", "huggingface/kernels-community", "sign-old-builds.yaml@refs/heads/main")
    trust("reject", "me/k", mine["workflow"])
    assert trust.json()["signers"] == [*OURS[:3], mail, elsewhere]
    assert "isn't among the identities" in trust("reject", "me/k", "any", status=1)
    trust("signers", "default")
    assert trust.json()["signers"] == OURS and "identities" not in json.loads(trust.file.read_text())
    trust.file.write_text('{"identities": []}')
    assert trust.json()["signers"] == [] and "nobody\n" in trust()


def test_the_trusted_root(trust, tmp_path):
    copy = tmp_path / "root.json"
    copy.write_bytes(open(trust.json()["trusted_root"]["path"], "rb").read())
    trust("root", "root.json")
    assert json.loads(trust.file.read_text())["trusted_root"] == str(copy) == trust.json()["trusted_root"]["path"]
    copy.write_text("{}")
    assert str(copy) in trust.json()["trusted_root"]["error"] and "can't be used: " in trust()
    before = trust.file.read_bytes()
    assert "nothere: can't open it" in trust("root", "nothere", status=1)
    assert trust.file.read_bytes() == before
    trust("root", "default")
    assert "trusted_root" not in json.loads(trust.file.read_text())


def test_another_file(trust, tmp_path):
    (tmp_path / "xdg").mkdir()
    trust("add", "a", XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    trust("add", "b", "--file", "here.json")
    trust("add", "c", KHUB_TRUST_FILE="named/deep/t.json")
    for file, publisher in (tmp_path / "xdg/khub/trust.json", "a"), (tmp_path / "here.json", "b"), (tmp_path / "named/deep/t.json", "c"):
        assert json.loads(file.read_text())["publishers"] == [publisher]
    assert not trust.file.exists()


def test_files_that_arent_believed(trust, tmp_path):
    """Also by the commands that go by it: not to know what is asked for isn't to ask for nothing."""
    trust("level", "signed")
    file, env = trust.file, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "HF_ENDPOINT": "http://127.0.0.1:1"}
    wrong = [('{"levels": "signed"}', 0o644, 1, 'there is no "levels" in a policy'), ("{", 0o644, 1, "not valid JSON"),
             ("{}", 0o646, 4, "others may write to it (mode 0646); chmod go-w")]
    for text, mode, status, words in wrong:
        file.write_text(text)
        file.chmod(mode)
        assert words in trust(status=status) and words in trust("add", "me", status=status)
        assert file.read_text() == text
        run = khub("info", "org/x@v1", "--trust-level", "verified", env=env)
        assert run.returncode == status and words in run.stderr and str(file) in run.stderr


@pytest.mark.parametrize("words", [("get", "khub/norm"), ("variants", "khub/norm"), ("functions", "khub/norm"), ("call", "khub/norm:rms_norm"),
                                   ("compare", "khub/softmax"), ("bench", "khub/softmax"), ("download", "org/x@v1"), ("info", "org/x@v1"),
                                   ("lock", "org/x@1"), ("verify", "org/x@v1"), ("check", "org/x@v1"), ("embed", "--model", "org/m", "x")])
def test_what_there_isnt(words):
    run = khub(*words, "--trust-level", "low", env={"HF_ENDPOINT": "http://127.0.0.1:1"})
    assert run.returncode == 2 and '"low" is no level of trust' in run.stderr
    run = khub(*words, "--trust", "me", "--trust", "org@v1", env={"HF_ENDPOINT": "http://127.0.0.1:1"})
    assert run.returncode == 2 and '"org@v1" is no publisher: ORG or ORG/NAME' in run.stderr
