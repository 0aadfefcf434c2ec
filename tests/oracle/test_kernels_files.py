"""The built-in kernels as files, by the real `kernels` package: metadata, digest, what layers.json promises; of builds for CUDA, which are there
where they were asked for (./dev build --cuda), what GPUs they have code for."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from kernels._rust import Digest, DigestValidationError, Metadata

ROOT = Path(os.environ["KHUB_STAGE"]) / "share/khub/kernels/khub"
BUILDS = sorted(ROOT.glob("*/build/*"))
LAYERS = (Path(os.environ["KHUB_SOURCE"]) / "docs/layers.md").read_text()


def backend(build):
    return re.sub(r"\d+$", "", build.name.split("-")[-3]).replace("cu", "cuda")


@pytest.fixture(params=BUILDS, ids=lambda p: p.parent.parent.name)
def build(request):
    return request.param


def test_all_repositories_are_there():
    names = {p.parent.parent.name for p in BUILDS}
    assert {"norm", "activation", "softmax", "rotary", "linear", "attention"} <= names
    assert len(names) == sum(backend(p) == "cpu" for p in BUILDS)


def test_metadata(build):
    metadata = Metadata.read_from_file(build / "metadata.json")
    assert str(metadata.name) == build.parent.parent.name
    assert metadata.version == 1 and metadata.license == "Apache-2.0" and metadata.python_depends == []
    assert str(metadata.backend.backend_type).lower().endswith(backend(build))
    assert (build / f"{metadata.id}.so").is_file()
    assert metadata.id.startswith(f"_{metadata.name.python_name}_{backend(build)}_")


def test_digest(build, tmp_path):
    metadata = Metadata.read_from_file(build / "metadata.json")
    metadata.digest.validate(Digest.hash_variant(metadata.digest.algorithm, build))
    copy = tmp_path / "build"
    shutil.copytree(build, copy)
    for spoil in (lambda: (copy / "layers.json").open("a").write(" "), lambda: (copy / "new").write_text(""), lambda: (copy / "_ops.py").unlink()):
        spoil()
        with pytest.raises(DigestValidationError):
            metadata.digest.validate(Digest.hash_variant(metadata.digest.algorithm, copy))
        shutil.rmtree(copy)
        shutil.copytree(build, copy)


def documented_args(layer):
    """The arguments of a layer as the table of docs/layers.md lists them."""
    for line in LAYERS.splitlines():
        if line.startswith("|") and f"`{layer}`" in line.split("|")[1]:
            cell = line.split("|")[2]
            if "as `Linear`" in cell:
                return documented_args("Linear")
            return [word.strip().split(" ")[0].rstrip("?") for word in cell.split("`")[1::2] if not word.startswith("(")]
    raise AssertionError(f"{layer} isn't in docs/layers.md")


def test_layers(build):
    library = next(build.glob("*.so"))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.split()
    for layer, entry in json.loads((build / "layers.json").read_text())["layers"].items():
        args = documented_args(entry.get("layer", layer))
        assert sorted(entry.get("args", args)) == sorted(args), layer
        for prefix in ("__tvm_ffi_", "__tvm_ffi__metadata_", "__tvm_ffi__doc_"):
            assert prefix + entry["function"] in symbols
        dtypes = {"float32", "bfloat16"} | ({"float16"} if backend(build) == "cuda" else set())
        assert entry["deterministic"] is True and set(entry["dtypes"]) <= dtypes and set(entry["tolerance"]) == set(entry["dtypes"])
        assert ("slices" in entry) == (backend(build) == "cpu")
        for parts in entry.get("slices", {}).values():
            assert {part.split(":")[0] for part in parts} <= set(args)
        for arg, function in entry.get("prepare", {}).items():
            assert arg in args and "__tvm_ffi_" + function in symbols


def test_only_the_functions_are_exported(build):
    library = next(build.glob("*.so"))
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in lines if "__tvm_ffi_" not in line and "asan" not in line and "odr" not in line] == []


CUDA = [p for p in BUILDS if backend(p) == "cuda"]
if CUDA:
    @pytest.mark.parametrize("cuda", CUDA, ids=lambda p: p.parent.parent.name)
    def test_code_for_gpus(cuda):
        """Code for every architecture that metadata.json names and for no other. (That no register is spilled nvcc saw to: cmake/nvcc.cmake.)"""
        archs = json.loads((cuda / "metadata.json").read_text())["backend"]["archs"]
        assert archs[0] == "7.5" and archs[-1] == "12.0+PTX"
        done = subprocess.run([os.environ["KHUB_STAGE"] + "/bin/khub", "check", "--json", cuda], capture_output=True, text=True)
        findings = [f for c in json.loads(done.stdout)["checks"] for f in c["findings"]]
        (found,) = [f["items"] for f in findings if f["about"] == "archs"]
        assert sorted(found) == sorted([arch.split("+")[0] for arch in archs] + ["PTX 12.0"])
        # CUDA's runtime, which is inside, takes from glibc what is newest there: how new is the building machine's affair
        assert [f for f in findings if f["level"] == "error" and f["about"] != "manylinux"] == []
