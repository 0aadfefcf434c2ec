"""khub functions: what a library exports, against nm and against what tests/fake says it has."""

import json
import re
import subprocess

import pytest

from fakes import REPOS, VARIANT, build_of, khub, library_of


def exported(library):
    """The functions as nm sees them."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.split()
    names = [s.removeprefix("__tvm_ffi_") for s in symbols if s.startswith("__tvm_ffi_")]
    return sorted(n for n in names if not re.match("_(metadata|doc|library)_", n))


@pytest.mark.parametrize("name", ["good", "cxx", "twin_one", "small_error", "in_call"])
def test_names_are_those_of_the_symbol_table(name):
    run = khub("functions", REPOS / name, "--json")
    assert run.returncode == 0, run.stderr
    assert [f["name"] for f in json.loads(run.stdout)["functions"]] == exported(library_of(name))
    assert run.stderr == ""


def test_types_of_a_cxx_kernel_are_readable():
    run = khub("functions", REPOS / "cxx")
    assert run.returncode == 0, run.stderr
    assert run.stdout == ("add_one_cpu(Tensor, Tensor) -> None\n"
                          "    y = x + 1, one dimension\n"
                          "join(str, str | None) -> str\n"
                          "sum(Array[float], Map[str, Any], int | str, Tuple[int, bool], dtype, Device, Shape, pointer) -> float\n")


def test_documentation_and_both_forms_of_a_schema():
    lines = khub("functions", REPOS / "good").stdout.splitlines()
    at = lines.index("add_one(Tensor, Tensor) -> None")
    assert lines[at + 1:at + 4] == ["    Adds one to every element.", "", "    out: the result, of x's shape"]
    assert "scale(Tensor, Tensor, float) -> None" in lines
    assert "forty_two(...)" in lines


def test_json():
    run = khub("functions", REPOS / "good", "--json")
    answer = json.loads(run.stdout)
    assert answer["repo"] == str(REPOS / "good")
    assert answer["variant"] == VARIANT
    assert answer["version"] == 1
    assert answer["library"] == str(library_of("good"))
    functions = {f["name"]: f for f in answer["functions"]}
    assert functions["add_one"]["schema"] == {"type": "ffi.Function", "named_args": {
        "return": [{"type": "None"}], "params": [{"type": "DLTensor*"}, {"type": "DLTensor*"}]}}
    assert functions["add_one"]["doc"].startswith("Adds one")
    assert functions["add_one"]["signature"] == "add_one(Tensor, Tensor) -> None"
    assert functions["half"]["schema"] is None and functions["half"]["doc"] is None


def test_a_built_in_kernel():
    run = khub("functions", "khub/norm", "--json")
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert [f["name"] for f in answer["functions"]] == exported(answer["library"])
    assert "rms_norm" in [f["name"] for f in answer["functions"]]


def test_a_library_without_functions():
    run = khub("functions", REPOS / "empty")
    assert run.returncode == 0
    assert run.stdout == ""
    assert "exports no function" in run.stderr
    run = khub("call", f"{REPOS / 'empty'}:relu")
    assert run.returncode == 1
    assert 'has no function "relu"' in run.stderr and "__tvm_ffi_NAME" in run.stderr and "docs/writing.md" in run.stderr


def test_an_explicit_build(tmp_path):
    assert khub("functions", REPOS / "good", "--variant", VARIANT).returncode == 0
    run = khub("functions", REPOS / "good", "--variant", "torch-cpu")
    assert run.returncode == 1
    assert f"has no build torch-cpu; it has: {VARIANT}" in run.stderr
    other = tmp_path / "machine.json"
    other.write_text('{"os": "linux", "arch": "aarch64", "backend": "cpu", "tvm_ffi": "0.9"}')
    assert khub("functions", REPOS / "good", "--platform", other).returncode == 3


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("--nonsense", "a"), ("--variant",)])
def test_wrong_usage(arguments):
    run = khub("functions", *arguments)
    assert run.returncode == 2
    assert "khub functions --help" in run.stderr
    assert run.stdout == ""


def test_help_has_an_example_first():
    assert "    khub functions khub/norm" in khub("functions", "--help").stdout.splitlines()[:3]


def test_a_closed_stdout():
    run = subprocess.run(f"'{khub.__globals__['KHUB']}' functions '{REPOS / 'good'}' >&-", shell=True, capture_output=True, text=True)
    assert run.returncode == 1
    assert "can't write the result" in run.stderr


def test_relative_paths_and_where_it_runs(tmp_path):
    assert khub("functions", "./good", cwd=REPOS).returncode == 0
    assert khub("functions", ".", cwd=REPOS / "good").returncode == 0
    assert build_of("good").is_dir()
