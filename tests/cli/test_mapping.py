"""khub mapping from outside: the default mapping, files and items, what applies where, and what is wrong with them."""

import json
import os
from pathlib import Path

import pytest
from fakes import khub

SOURCE = Path(os.environ["KHUB_SOURCE"])


def shown(*words, status=0, **options):
    run = khub("mapping", *words, **options)
    assert run.returncode == status, run.stderr
    return run.stdout


def test_the_default_mapping():
    """Each of its kernels for the CPU is one that is staged, and serves on CUDA, too, where it has loops for it; behind it stand operators
    of a kernel that Transformers has too. As JSON it is a mapping like any other."""
    table = shown()
    default = json.loads(shown("--json"))
    operators = {"GeLU": "gelu", "GeluTanh": "gelu_tanh", "SiLU": "silu", "QuickGELU": "gelu_quick", "SiluAndMul": "silu_and_mul",
                 "GeluAndMul": "gelu_and_mul"}
    on_cuda = 0
    for layer, value in default.items():
        kernel = value.pop("cpu")
        assert f"{layer} " in table and khub("get", kernel).returncode == 0
        has_cuda = any((SOURCE / "kernels" / kernel.removeprefix("khub/")).glob("*.cu"))
        on_cuda += has_cuda
        operator = {"kernel": "kernels-community/activation@v1", "function": operators.get(layer), "args": ["out", "x"]}
        expected = {"cuda": {"inference": kernel, "fallback": operator} if layer in operators else kernel}
        assert value == (expected if has_cuda else {})
    assert len(default) > on_cuda > len(operators)
    assert len(table.splitlines()) == len(default) + on_cuda + len(operators)
    assert len(shown("--device", "cuda").splitlines()) == on_cuda + len(operators)
    on_cpu = [line.split() for line in table.splitlines() if "  cpu  " in line]
    applies = shown("--device", "cpu", "--mode", "training|compile")
    assert [line.split() for line in applies.splitlines()] == on_cpu  # what a kernel can do is layers.json's
    assert shown("default", env={"DISABLE_KERNEL_MAPPING": "1"}) == ""


def test_a_file_and_what_applies(tmp_path):
    file = tmp_path / "m.json"
    file.write_text(json.dumps({
        "GeLU": {"cuda:75-89": {"inference": "./mine:Fast", "fallback": ""}, "cuda": "org/r@>=1,<3:GeLU", "cpu": "khub/activation"},
        "Linear(encoder.*.dense)": {"kernel": "./mine", "function": "f", "args": ["x", "out", "weight", "bias"]}}))
    again = tmp_path / "again.json"
    again.write_text(shown(file, "--json"))
    assert json.loads(again.read_text())["GeLU"]["cuda:75-89"]["inference"] == f"{tmp_path}/mine:Fast"
    assert shown(again, "--json") == again.read_text() and shown(again) == shown(file)

    def applies(*words):
        return [(e["key"], e["rank"], e["kernel"], e["layer"]) for e in json.loads(shown(file, "--json", *words))]

    dense = ("Linear(encoder.*.dense)", 0, f"{tmp_path}/mine", None)
    assert applies("--device", "cuda:80") == [("GeLU", 0, f"{tmp_path}/mine", "Fast"), ("GeLU", 1, "", None), dense]
    assert applies("--device", "cuda:80", "--mode", "training") == [("GeLU", 0, "", None), dense]
    assert applies("--device", "cuda:90") == [("GeLU", 0, "org/r@>=1,<3", "GeLU"), dense]
    assert applies("--mode", "inference") == [("GeLU", 0, "khub/activation", None), dense]
    assert applies("--device", "xpu") == [dense]
    table = shown(file, "--device", "cuda:80")
    assert f"GeLU                     cuda:75-89  inference  {tmp_path}/mine:Fast\n" in table and "then standard" in table
    items = json.loads(shown(f"{file},GeLU=,Softmax=khub/softmax", "--json"))
    assert items["GeLU"] == "" and items["Softmax"] == "khub/softmax" and "Linear(encoder.*.dense)" in items


def test_faults_stand_in_their_place(tmp_path):
    file = tmp_path / "m.json"
    file.write_text('{"GeLU": "khub/activation", "Gelu": "khub/activation", "SiLU": {"cuda:75-70": "org/r", "cpu": "khub/activation"}}')
    table = shown(file, status=1).splitlines()
    assert len(table) == 4 and table[0].endswith("  khub/activation") and table[3].endswith("  khub/activation")
    assert f'fault: {file}: Gelu: there is no layer "Gelu": did you mean GeLU?' in table[1]
    assert f'fault: {file}: SiLU: "cuda:75-70" is a range that ends before it starts' in table[2]
    faults = {e["key"]: e["fault"] for e in json.loads(shown(file, "--json", "--device", "cpu", status=1)) if e["fault"]}
    assert list(faults) == ["Gelu"]
    assert json.loads(shown(file, "--json", status=1)) == json.loads(file.read_text().replace("org/r", "org/r"))


@pytest.mark.parametrize("words, status, said", [
    (["--device", "gpu"], 2, '"gpu" is no device: cpu, cuda'),
    (["--device", "cuda:x"], 2, "a device and its capability is wanted"),
    (["--mode", "fast"], 2, '"fast" is no mode: inference, training'),
    (["--mode", "fallback"], 2, '"fallback" is no mode of a model'),
    (["a", "b"], 2, "one mapping at a time"),
    (["x=5"], 2, 'x=5: there is no layer "x"'),
    (["GeLU=nonsense"], 2, 'GeLU: "nonsense" names no kernel'),
    (["GeLU=org/r@>=3,<1"], 2, "no version is in this range"),
    (["nowhere.json"], 1, "nowhere.json"),
    (["list.json"], 1, "list.json: is an array"),
    (["twice.json"], 1, "twice.json:1: not valid JSON: duplicate object key near '\"GeLU\"'"),
])
def test_what_is_refused(tmp_path, words, status, said):
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "twice.json").write_text('{"GeLU": "", "GeLU": ""}')
    run = khub("mapping", *words, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (status, "") and said in run.stderr


def test_a_name_cannot_forge_a_line(tmp_path):
    file = tmp_path / "map.json"
    file.write_text(json.dumps({"GeLU": "org/r@v1:a\nReLU  cpu  khub/activation", "SiLU": "/x\ny", "No\npe": ""}))
    assert len(shown(file, status=1).splitlines()) == 3
