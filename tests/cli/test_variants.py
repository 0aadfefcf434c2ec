"""khub variants, from outside: what it prints, how it ends, and the cases of users that touch choosing."""

import json
import os
import platform
import random
import shutil
import subprocess
from pathlib import Path

import pytest

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")


def khub(*arguments, **options):
    return subprocess.run([KHUB, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)


@pytest.fixture
def repository(tmp_path):
    """Makes a repository of the given builds, empty directories."""

    def make(*names):
        builds = tmp_path / "repository" / "build"
        builds.mkdir(parents=True)
        for name in names:
            (builds / name).mkdir()
        return tmp_path / "repository"

    return make


@pytest.fixture
def machine(tmp_path):
    """Writes a platform file."""

    def make(**fields):
        file = tmp_path / "machine.json"
        file.write_text(json.dumps({"os": "linux", "arch": "x86_64", **fields}))
        return file

    return make


def answer(done, status=0):
    assert done.returncode == status, done.stderr
    parsed = json.loads(done.stdout)
    assert list(parsed) == ["repo", "revision", "chosen", "variants"]
    assert all(list(v) == ["name", "decision", "reason"] for v in parsed["variants"])
    return parsed


def reasons(parsed):
    return {v["name"]: v["reason"] for v in parsed["variants"]}


def decisions(parsed):
    return {v["name"]: v["decision"] for v in parsed["variants"]}


@pytest.fixture
def torch(tmp_path):
    """Puts a libtorch together, as far as the loader is concerned (tests/fake/torch.c): its folder."""
    pieces, site = Path(os.environ["KHUB_BINARY"], "tests", "fake", "torch"), tmp_path / "site"
    for folder, names in {"torch/lib": ["rpath/libtorch_cpu.so", "cxx11/libc10.so"], "nvidia/cu13/lib": [
            "nvidia/libcudart.so.13", "nvidia/libcupti.so.13", "nvidia/libdeep.so"]}.items():
        (site / folder).mkdir(parents=True)
        for name in names:
            shutil.copy(pieces / name, site / folder)
    (site / "torch" / "version.py").write_text("__version__ = '2.12.0+cpu'\n")
    return site / "torch"


# ---- what it prints ----


def test_table(repository, machine):
    where = repository("tvm-ffi01-cpu-x86_64-linux", "torch-universal", "tvm-ffi01-cpu-aarch64-linux", "x")
    done = khub("variants", where, "--platform", machine(backend="cpu", tvm_ffi="0.1"))
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line[:2] for line in lines] == ["* ", "  ", "  ", "  "]  # the chosen one is marked
    assert [line.split()[-len(line.split()) + (line[0] == "*")] for line in lines] == [
        "tvm-ffi01-cpu-x86_64-linux", "torch-universal", "tvm-ffi01-cpu-aarch64-linux", "x"]
    words = ["accepted", "needs python", "rejected", "not understood"]
    assert len({line.index(word) for line, word in zip(lines, words)}) == 1  # aligned
    assert "aarch64" in lines[2] and "x86_64" in lines[2]


def test_json(repository, machine):
    where = repository("tvm-ffi01-cpu-x86_64-linux", "torch-universal")
    (where / "build/tvm-ffi01-cpu-x86_64-linux/metadata.json").write_text(metadata().replace("cuda", "cpu"))
    parsed = answer(khub("variants", "--json", where, "--platform", machine(backend="cpu", tvm_ffi="0.1")))
    assert parsed["repo"] == str(where) and parsed["revision"] is None
    assert parsed["chosen"] == "tvm-ffi01-cpu-x86_64-linux"
    assert parsed["variants"][0] == {"name": "tvm-ffi01-cpu-x86_64-linux", "decision": "accepted", "reason": None}
    assert parsed["variants"][1]["decision"] == "needs python"


def test_this_machine(repository):
    """Without --platform: whatever this machine is, a build for a CPU that doesn't exist is no build for it."""
    where = repository("tvm-ffi01-cpu-nosuchcpu-linux")
    parsed = answer(khub("variants", "--json", where), 3)
    assert parsed["chosen"] is None and "nosuchcpu" in parsed["variants"][0]["reason"]


def test_names_that_are_anything(repository, machine):
    where = repository("tvm-ffi01-cpu-x86_64-linux", "\x1b[31m", "two\nlines", 'quo"te', "caf\u00e9")
    (where / "build" / os.fsdecode(b"\xff\xfe")).mkdir()
    arguments = ["variants", where, "--platform", machine(backend="cpu", tvm_ffi="0.1")]
    parsed = answer(khub(*arguments, "--json"))
    assert set(decisions(parsed)) == {"tvm-ffi01-cpu-x86_64-linux", "\x1b[31m", "two\nlines", 'quo"te', "caf\u00e9", "\ufffd\ufffd"}
    table = khub(*arguments, errors="replace").stdout
    assert "\x1b" not in table and len(table.splitlines()) == 6


def test_an_empty_repository(repository, machine):
    where = repository()
    done = khub("variants", where, "--platform", machine(backend="cpu"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "no build" in done.stderr and "there are none" in done.stderr
    assert answer(khub("variants", where, "--json"), 3)["variants"] == []


# ---- wrong usage and bad input ----


@pytest.mark.parametrize("arguments, status, words", [
    ([], 2, "which repository"),
    (["./a", "./b"], 2, "one repository at a time"),
    (["./a", "--nosuch"], 2, "--nosuch"),
    (["./a", "--platform"], 2, "--platform"),
    (["./nosuch"], 1, "./nosuch: there is no such directory"),
    (["."], 1, ".: is no kernel repository"),
    (["org/x", "--offline", "--cache-dir", "/nowhere"], 5, "org/x: isn't in the cache (/nowhere)"),
    (["org/x@v1", "--offline", "--cache-dir=/nowhere"], 5, "khub download org/x@v1"),
    (["khub/nosuch"], 1, "khub/nosuch: there is no such built-in kernel"),
    (["khub/nosuch"], 1, "there are: khub/activation, khub/attention, "),
    (["khub/norm:rms_norm"], 2, "khub/norm:rms_norm: no function or layer is wanted here; the repository alone: khub/norm\n"),
    (["org/x@v1:f"], 2, "the repository alone: org/x@v1"),
    (["nosuch"], 2, "nosuch: is neither a path"),
    (["./a", "--platform", "nosuch.json"], 1, "nosuch.json"),
])
def test_refusals(tmp_path, arguments, status, words):
    done = khub("variants", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr


def test_a_closed_stdout_is_said(repository, machine):
    where = repository("tvm-ffi01-cpu-x86_64-linux")
    with open("/dev/full", "w") as full:
        done = subprocess.run([KHUB, "variants", where, "--platform", machine(backend="cpu", tvm_ffi="0.1")], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "can't write the result" in done.stderr


def test_help_has_an_example_first():
    done = khub("variants", "--help")
    assert done.returncode == 0 and "khub variants khub/norm" in done.stdout.splitlines()[2]


# ---- the GPU itself ----


def metadata(*archs):
    return json.dumps({"name": "relu", "id": "_relu", "version": 1, "license": "MIT", "python-depends": [],
                       "backend": {"type": "cuda", **({"archs": archs} if archs else {})}})


def test_a_build_without_code_for_the_gpu(repository, machine):
    where = repository("tvm-ffi01-cu126-x86_64-linux", "tvm-ffi01-cu128-x86_64-linux")
    (where / "build" / "tvm-ffi01-cu128-x86_64-linux" / "metadata.json").write_text(metadata("10.0", "12.0"))
    (where / "build" / "tvm-ffi01-cu126-x86_64-linux" / "metadata.json").write_text(metadata("8.0", "9.0"))
    parsed = answer(khub("variants", where, "--json", "--platform", machine(backend="cu128", tvm_ffi="0.1", archs=["9.0"])))
    assert parsed["chosen"] == "tvm-ffi01-cu126-x86_64-linux"
    reason = reasons(parsed)["tvm-ffi01-cu128-x86_64-linux"]
    assert "9.0" in reason and "10.0, 12.0" in reason


def test_metadata_that_cannot_be_read_is_no_reason_to_reject(repository, machine):
    """Loading the build says what is wrong with it; choosing only remarks that it couldn't look."""
    where = repository("tvm-ffi01-cu128-x86_64-linux")
    file = where / "build" / "tvm-ffi01-cu128-x86_64-linux" / "metadata.json"
    for text in (None, "", "{", "[" * 100000, metadata()):
        if text is not None:
            file.write_text(text)
        parsed = answer(khub("variants", where, "--json", "--platform",
                             machine(backend="cu128", tvm_ffi="0.1", archs=["9.0"])))
        assert parsed["chosen"] == "tvm-ffi01-cu128-x86_64-linux"
        assert "metadata.json" in reasons(parsed)["tvm-ffi01-cu128-x86_64-linux"]


@pytest.mark.parametrize("text, words", [(None, "metadata.json: is missing"), ("{}", "required and missing: name, id, version, ")])
def test_a_build_that_fits_and_cannot_be_loaded(repository, machine, text, words):
    name = "tvm-ffi01-cpu-x86_64-linux"
    where = repository(name)
    if text is not None:
        (where / "build" / name / "metadata.json").write_text(text)
    done = khub("variants", where, "--platform", machine(backend="cpu", tvm_ffi="0.1"))
    assert done.returncode == 0
    assert f"can't be loaded: " in done.stdout and words in done.stdout and "docs/writing.md" in done.stdout


# ---- cases of user-reports.md ----


def test_case_a1(repository, machine):
    where = repository("torch212-cxx11-cu126-x86_64-linux", "torch212-cxx11-cu130-aarch64-linux", "tvm-ffi02-cpu-x86_64-linux")
    file = machine(backend="cu130", torch="2.13", torch_cxx11_abi=True, tvm_ffi="0.1")
    done = khub("variants", where, "--platform", file)
    assert done.returncode == 3 and "no build fits this machine" in done.stderr
    found = reasons(answer(khub("variants", where, "--json", "--platform", file), 3))
    for name, values in [("torch212-cxx11-cu126-x86_64-linux", ("2.12", "2.13")),
                         ("torch212-cxx11-cu130-aarch64-linux", ("aarch64", "x86_64")),
                         ("tvm-ffi02-cpu-x86_64-linux", ("0.2", "0.1"))]:
        assert all(value in found[name] for value in values)
        assert any(name in line and found[name] in line for line in done.stdout.splitlines())


@pytest.mark.parametrize("backend, chosen", [("cu129", "cu128"), ("cu128", "cu128"), ("cu127", "cu126"), ("cu124", None),
                                             ("cu131", "cu130"), ("cu118", None)])
def test_case_a2(tmp_path, machine, backend, chosen):
    """Directories made in another order may be listed in another order; 100 shuffles in memory are a unit test."""
    names = [f"torch29-{b}-x86_64-linux" for b in ("cu126", "cu128", "cu130")]
    rng = random.Random(2)
    for i in range(6):
        rng.shuffle(names)
        for name in names:
            (tmp_path / str(i) / "build" / name).mkdir(parents=True)
        done = khub("variants", tmp_path / str(i), "--json", "--platform", machine(backend=backend, torch="2.9"))
        assert answer(done, 0 if chosen else 3)["chosen"] == (f"torch29-{chosen}-x86_64-linux" if chosen else None)


def test_case_a4(repository, machine):
    unread = ["future-abi3-cu140-x86_64-linux", "torch-stable-abi99x-cu130-x86_64-linux"]
    where = repository("torch29-cu130-x86_64-linux", *unread)
    file = machine(backend="cu130", torch="2.9")
    parsed = answer(khub("variants", where, "--json", "--platform", file))
    assert parsed["chosen"] == "torch29-cu130-x86_64-linux"
    assert [decisions(parsed)[name] for name in unread] == ["not understood"] * 2
    (where / "build" / "torch29-cu130-x86_64-linux").rmdir()
    done = khub("variants", where, "--platform", file)
    assert done.returncode == 3
    assert "builds exist that this khub" in done.stderr and "can't read" in done.stderr and "upgrade" in done.stderr


def test_case_a5(repository, machine):
    where = repository("torch29-cpu-aarch64-darwin", "tvm-ffi01-cpu-aarch64-darwin")
    file = machine(os="darwin", arch="arm64", backend="metal", macos="26.0", torch="2.9", tvm_ffi="0.1")
    done = khub("variants", where, "--platform", file)
    assert done.returncode == 3 and "no build" in done.stderr and "can't open" not in done.stderr
    assert set(decisions(answer(khub("variants", where, "--json", "--platform", file), 3)).values()) == {"rejected"}
    parsed = answer(khub("variants", where, "--json", "--platform", file, "--backend", "cpu"))
    assert parsed["chosen"] == "torch29-cpu-aarch64-darwin"
    done = khub("variants", where, "--platform", file, "--backend", "cuda")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cuda" in done.stderr and "cpu" in done.stderr and "metal" in done.stderr


def test_case_a5_version_unknown(repository, machine):
    where = repository("tvm-ffi01-xpu20253-x86_64-linux")
    parsed = answer(khub("variants", where, "--json", "--platform", machine(backend="xpu", tvm_ffi="0.1")), 3)
    assert "version unknown" in reasons(parsed)["tvm-ffi01-xpu20253-x86_64-linux"]


def test_case_a6(repository, machine):
    where = repository("torch-universal")
    file = machine(backend="cpu", tvm_ffi="0.1")
    done = khub("variants", where, "--platform", file)
    assert done.returncode == 3 and "needs Python" in done.stderr and "no build" not in done.stderr
    assert decisions(answer(khub("variants", where, "--json", "--platform", file), 3)) == {"torch-universal": "needs python"}
    (where / "build" / "tvm-ffi01-cpu-x86_64-linux").mkdir()
    assert answer(khub("variants", where, "--json", "--platform", file))["chosen"] == "tvm-ffi01-cpu-x86_64-linux"


# ---- Torch ----


def test_a_libtorch_of_ones_choice(repository, torch):
    here = f"cpu-{platform.machine()}-linux"
    mine = ["--json", "--backend", "cpu"]
    names = [f"torch-stable-abi211-{here}", f"torch212-cxx11-{here}", f"tvm-ffi01-{here}"]
    where = repository(*names, f"torch212-cxx98-{here}", f"torch-stable-abi213-{here}", f"torch211-{here}")
    parsed = answer(khub("variants", where, *mine, "--torch", torch))
    assert [v["name"] for v in parsed["variants"] if v["decision"] == "accepted"] == names
    assert reasons(parsed)[f"torch-stable-abi213-{here}"] == "needs Torch 2.13 or later, the machine has 2.12.0"
    assert reasons(parsed)[f"torch212-cxx98-{here}"].endswith("that of the machine's Torch is cxx11")
    parsed = answer(khub("variants", where, *mine, "--no-torch", env={**os.environ, "KHUB_TORCH_DIR": torch}))
    assert parsed["chosen"] == names[2]
    assert reasons(parsed)[names[0]] == "needs Torch 2.11 or later, which is left out, as was asked for"
    for name, option in (names[0], ["--torch", torch]), (names[2], ["--no-torch"]):
        (where / "build" / name / "metadata.json").write_text('{"name": "kk", "id": "_kk_cpu_1", "version": 1, "license": '
                                                              '"MIT", "backend": {"type": "cpu"}, "python-depends": []}')
        (where / "build" / name / "_kk_cpu_1.so").touch()
        done = khub("download", where, "--backend", "cpu", *option)
        assert done.stdout == f"{where / 'build' / name}\n", done.stderr
    (torch / "lib" / "libc10.so").unlink()
    done = khub("variants", where, "--torch", torch)
    assert done.returncode == 1
    assert done.stderr == "khub: libtorch: needs libc10.so (Torch's own: it is only half there), which isn't in reach\n"
    done = khub("get", where, "--torch", torch, "--no-torch")
    assert done.returncode == 2 and done.stderr == "khub: --torch and --no-torch at once\n"
