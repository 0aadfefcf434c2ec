"""Text out of files, names of files and kernels may hold what steers a terminal; none of it gets there."""

import json
import os
import pty
import shutil

import pytest

import tiny_model
from fakes import KHUB, REPOS, copy, khub

STEERS = ["\x1b[31m", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\r"]  # CSI, OSC, C1's CSI, DEL


def is_clean(text):
    return not any(ord(c) < 0x20 and c not in "\n\t" or 0x7F <= ord(c) < 0xA0 or 0xDC80 <= ord(c) < 0xDD00 for c in text)


def check(*arguments, status, **options):
    run = khub(*arguments, encoding="utf-8", errors="surrogateescape", **options)
    assert run.returncode == status, run.stderr
    assert run.stderr or run.stdout
    assert is_clean(run.stdout) and is_clean(run.stderr), (run.stdout, run.stderr)
    return run


@pytest.mark.parametrize("steer", STEERS)
def test_a_model_s_configuration(tmp_path, steer):
    model = tiny_model.write_model(tmp_path / "m", config={"model_type": steer})
    assert "the architecture" in check("embed", "--model", model, "hello", status=1).stderr


@pytest.mark.parametrize("steer", STEERS)
def test_a_tensor_s_name(tmp_path, steer):
    model = tiny_model.write_model(tmp_path / "m")
    header = json.dumps({steer: []}).encode()
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert 'tensor "' in check("embed", "--model", model, "hello", status=1).stderr


@pytest.mark.parametrize("steer", STEERS)
def test_the_command_line(steer):
    check(steer, status=2)
    check("embed", "--" + steer, status=2)
    check("embed", "--model", "./" + steer, "hello", status=1)
    check("variants", "./" + steer, status=1)
    check("functions", f"{REPOS}/good", "--variant", steer, status=1)
    check("call", f"{REPOS}/good:" + steer, status=1)


@pytest.mark.parametrize("steer", STEERS)
def test_names_of_builds_and_reasons(tmp_path, steer):
    (tmp_path / "r" / "build" / f"a{steer}b").mkdir(parents=True)
    run = check("variants", "./r", status=3, cwd=tmp_path)
    assert "a?" in run.stdout
    listed = check("variants", "--json", "./r", status=3, cwd=tmp_path)
    assert json.loads(listed.stdout)["variants"][0]["name"] == f"a{steer}b"


def test_names_that_are_not_utf8(tmp_path):
    os.makedirs(os.fsencode(tmp_path) + b"/r/build/a\x9b31m")
    assert "a?31m " in check("variants", "./r", status=3, cwd=tmp_path).stdout


@pytest.mark.parametrize("steer", STEERS)
def test_what_a_kernel_says(tmp_path, steer):
    run = check("call", f"{REPOS}/good:fail", "Error", f"bad{steer}\nsecond line", status=1)
    assert "bad?" in run.stderr and "\nsecond line" in run.stderr
    build = copy("good", tmp_path / "r")
    (build / "layers.json").write_text(json.dumps({"layers": {"GeLU": {"function": "x", "args": [steer]}}}))
    (tmp_path / "map.json").write_text(json.dumps({"GeLU": "./r"}))
    model = tiny_model.write_model(tmp_path / "m")
    check("embed", "--model", model, "--kernels=map.json", "--report", status=0, cwd=tmp_path)


@pytest.mark.parametrize("steer", STEERS)
def test_a_platform_file(tmp_path, steer):
    (tmp_path / "p.json").write_text(json.dumps({"cpu_model": "x" + steer, "os": "linux", "arch": "x86_64", "backend": "cpu"}))
    check("platform", "--platform", tmp_path / "p.json", status=0)
    shown = check("platform", "--json", "--platform", tmp_path / "p.json", status=0)
    assert json.loads(shown.stdout)["cpu_model"] == "x" + steer


def test_text_that_a_function_returns():
    """As it is for a program that reads it, clean on a terminal."""
    target = f"{REPOS}/good:repeat"
    run = khub("call", target, "\x1b[31mred ")
    assert run.stdout == "\x1b[31mred \x1b[31mred \n"
    ours, theirs = pty.openpty()
    child = os.fork()
    if child == 0:
        os.dup2(theirs, 1)
        os.execv(KHUB, [KHUB, "call", target, "\x1b[31mred "])
    os.close(theirs)
    shown = os.read(ours, 1000)
    assert os.waitpid(child, 0)[1] == 0
    os.close(ours)
    assert shown == b"?[31mred ?[31mred \r\n"


NAME = "a\n\x1b[31m\x9b\x7f\tb"


def lists(*arguments, status=0, **options):
    """What a list prints: a stranger's name neither steers nor begins a line of its own."""
    run = check(*arguments, status=status, **options)
    shown = [line for line in run.stdout.splitlines() if "?[31m" in line]
    assert shown and all(not line.startswith("?[31m") and "a??[31m" in line and "\t" not in line for line in shown), run.stdout
    return run


def test_names_in_lists_of_the_cache(tmp_path):
    for name in ("b", NAME):
        folder = tmp_path / f"kernels--o--{name}"
        for commit in (NAME, "1" * 40):
            (folder / "snapshots" / commit).mkdir(parents=True)
            (folder / "snapshots" / commit / NAME).write_text("x")
        (folder / "blobs").mkdir()
        (folder / "refs").mkdir()
        (folder / "refs" / NAME).write_text("1" * 40)
        (folder / NAME).write_text("?")
    at = "--cache-dir", tmp_path
    lists("cache", "ls", *at)
    warned = lists("cache", "ls", "-v", *at).stderr
    assert all(line.startswith("khub: ") for line in warned.splitlines()), warned
    lists("cache", "prune", "--dry-run", *at)
    lists("cache", "verify", "-v", *at)
    lists("cache", "prune", *at)


def test_names_in_lists_of_builds(tmp_path):
    build = copy("good", tmp_path / "repo")
    other = build.parent / NAME
    other.mkdir()
    (other / "metadata.json").write_text(json.dumps({"name": NAME, "id": NAME, "version": 1, "license": NAME, "backend": {"type": NAME}, "python-depends": [NAME]}))
    (other / f"{NAME}.so").write_text("no library")
    lists("variants", tmp_path / "repo")
    lists("check", tmp_path / "repo", status=1)
    shutil.rmtree(build)
    lists("matrix", tmp_path / "repo", status=3)
