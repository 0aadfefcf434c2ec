"""khub matrix and the machines that come with khub."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

STAGE = Path(os.environ["KHUB_STAGE"])
KNOWN = STAGE / "share" / "khub" / "platforms"

# What vendors' pages say of each: NVIDIA's table of compute capabilities, AMD's of LLVM targets; the others have none.
ARCHITECTURES = {
    "gtx-1080": "6.1", "v100": "7.0", "t4": "7.5", "rtx-2080": "7.5", "a100": "8.0", "a10": "8.6", "rtx-3090": "8.6", "rtx-3060-windows": "8.6",
    "jetson-orin": "8.7", "rtx-4090": "8.9", "l4": "8.9", "l40s": "8.9", "h100": "9.0", "h100-cuda124": "9.0", "h200": "9.0", "gh200": "9.0",
    "b200": "10.0", "gb200": "10.0", "b300": "10.3", "jetson-thor": "11.0", "rtx-5090": "12.0", "rtx-pro-6000": "12.0", "dgx-spark": "12.1",
    "mi210": "gfx90a", "mi250x": "gfx90a", "mi300a": "gfx942", "mi300x": "gfx942", "mi325x": "gfx942", "mi355x": "gfx950",
    "rx-7900-xtx": "gfx1100", "rx-9070-xt": "gfx1201", "strix-halo": "gfx1151"}
BACKENDS = {"max-1550": "xpu20253", "arc-a770": "xpu20253", "arc-b580": "xpu20253", "m1": "metal", "m1-macos-15": "metal", "m2": "metal", "m3": "metal",
            "m4": "metal", "ascend-910b": "cann83", "trainium": "neuron", "trainium2": "neuron", "tpu-v5e": "tpu", "raspberry-pi-5": "cpu",
            "graviton3": "cpu", "graviton4": "cpu", "x86-64-v2": "cpu", "x86-64-v3": "cpu", "x86-64-v4": "cpu", "windows-x86-64": "cpu"}
ARM = {"jetson-orin", "jetson-thor", "gh200", "gb200", "dgx-spark", "m1", "m1-macos-15", "m2", "m3", "m4", "ascend-910b", "raspberry-pi-5", "graviton3",
       "graviton4"}


def khub(*arguments):
    return subprocess.run([STAGE / "bin" / "khub", *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.fixture
def repository(tmp_path):
    """Builds by name, with the GPU architectures that their metadata lists."""
    builds = {"tvm-ffi01-cu128-x86_64-linux": ["8.0", "9.0a"], "tvm-ffi01-cu130-x86_64-linux": ["9.0a", "12.0+PTX"],
              "tvm-ffi01-rocm71-x86_64-linux": ["gfx942"], "tvm-ffi01-metal-aarch64-darwin": [], "torch-npu": [],
              "tvm-ffi01-cpu-aarch64-linux": []}
    for name, archs in builds.items():
        build = tmp_path / "repository" / "build" / name
        build.mkdir(parents=True)
        kind = next(k for k in ("cu", "rocm", "metal", "cpu", "npu") if k in name)
        backend = {"type": "cuda" if kind == "cu" else kind, **({"archs": archs} if archs else {})}
        (build / "metadata.json").write_text(json.dumps({"name": "nn", "id": "_nn", "version": 1, "license": "MIT", "python-depends": [],
                                                         "backend": backend}))
    return tmp_path / "repository"


def test_each_known_machine_is_what_its_vendor_says():
    assert {file.stem for file in KNOWN.iterdir()} == {*ARCHITECTURES, *BACKENDS}
    for file in KNOWN.iterdir():
        name, facts = file.stem, json.loads(file.read_text())
        assert facts["arch"] == ("aarch64" if name in ARM else "x86_64"), name
        if name in ARCHITECTURES:
            assert facts["archs"][0].split(":")[0] == ARCHITECTURES[name] and len(facts["archs"]) == 1, name
            assert facts["backend"].startswith("rocm" if ARCHITECTURES[name].startswith("gfx") else "cu"), name
        else:
            assert facts["backend"] == BACKENDS[name], name


def test_who_gets_what(repository, tmp_path):
    done = khub("matrix", "--json", repository, "--svg", tmp_path / "m.svg")
    assert done.returncode == 0 and "machines get no build" in done.stderr
    got = {row["platform"]: row for row in json.loads(done.stdout)["platforms"]}
    assert list(got) == sorted({*ARCHITECTURES, *BACKENDS})  # every file can be read
    cu130, served = "tvm-ffi01-cu130-x86_64-linux", {name: row["chosen"] for name, row in got.items() if row["chosen"]}
    assert served == {"h100": cu130, "h200": cu130, "rtx-5090": cu130, "rtx-pro-6000": cu130, **dict.fromkeys(["mi300a", "mi300x", "mi325x"],
                      "tvm-ffi01-rocm71-x86_64-linux"), **dict.fromkeys(["m1", "m2", "m3", "m4"], "tvm-ffi01-metal-aarch64-darwin"),
                      **dict.fromkeys(["raspberry-pi-5", "graviton3", "graviton4"], "tvm-ffi01-cpu-aarch64-linux")}
    assert got["h100"]["accepted"] == [cu130] and got["h100"]["reason"] is None and "Hopper" in got["h100"]["about"]
    for name, build, words in [("gtx-1080", cu130, "no code for the machine's GPU, 6.1"), ("b200", cu130, "no code for the machine's GPU, 10.0"),
                               ("h100-cuda124", "tvm-ffi01-cu128-x86_64-linux", "the machine has 12.4, which is older"),
                               ("m1-macos-15", "tvm-ffi01-metal-aarch64-darwin", "15.6"), ("ascend-910b", "torch-npu", "Python only")]:
        assert got[name]["nearest"] == build and words in got[name]["reason"], got[name]
    chart = (tmp_path / "m.svg").read_text()
    assert chart.count('class="kernel" cx=') == len(served) + 1  # one is the key's
    assert all(f">{name}</text>" in chart for name in got) and chart.rstrip().endswith("</svg>")


def test_some_machines_and_a_file(repository, tmp_path):
    (tmp_path / "own.json").write_text('{"os": "linux", "arch": "x86_64", "backend": "cu128", "tvm_ffi": "0.1", "archs": ["8.6"]}')
    done = khub("matrix", repository, "--platform", "gtx-1080", "--platform", tmp_path / "own.json")
    assert [re.split(r"  +", line)[1] for line in done.stdout.splitlines()] == [
        "none; nearest is tvm-ffi01-cu130-x86_64-linux: holds no code for the machine's GPU, 6.1; built for 9.0a, 12.0+PTX",
        "tvm-ffi01-cu128-x86_64-linux"]
    assert khub("matrix", repository, "--platform", "gtx-1080").returncode == 3
    unknown = khub("variants", repository, "--platform", "h1000")
    assert unknown.returncode == 1 and "platform h1000: is none that khub knows" in unknown.stderr and "h100," in unknown.stderr
