"""What khub pack makes, in the hands of the real Python package `kernels`: it reads the metadata, agrees to the digest, loads the
library by the Python face, calls it. And what the command says."""
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from kernels._rust import Digest, DigestAlgorithm, Metadata

STAGE, SOURCE = Path(os.environ["KHUB_STAGE"]), Path(os.environ["KHUB_SOURCE"])
KHUB = STAGE / "bin/khub"
TVM_FFI = Path(os.path.realpath(os.environ["KHUB_MODEL"])).parents[1] / "tvm_ffi"
EXAMPLE = SOURCE / "examples/kernel"
MACHINE = f"tvm-ffi01-cpu-{os.uname().machine}-linux"


def khub(*arguments, status=0):
    done = subprocess.run([KHUB, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done
    return done


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "relu.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{TVM_FFI}/include", EXAMPLE / "relu.c", f"-L{TVM_FFI}/lib", "-ltvm_ffi", "-o", path], check=True)
    return path


def packed(tmp_path, library, *options, files=()):
    directory = tmp_path / "out"
    directory.mkdir()
    shutil.copy(library, directory)
    for file in files:
        shutil.copy(EXAMPLE / file, directory)
    done = khub("pack", directory, "-o", tmp_path / "repo", *options, "--json")
    return json.loads(done.stdout), done.stderr


def read_by_peer(build):
    metadata = Metadata.read_from_file(build / "metadata.json")
    digest = metadata.digest
    digest.validate(Digest.hash_variant(digest.algorithm, build))  # raises
    assert set(digest.files) == {str(p.relative_to(build)) for p in build.rglob("*") if p.is_file()} - {"metadata.json"}
    return metadata


def test_a_library_alone(tmp_path, library):
    """The face is made too: the peer calls the function by it."""
    shown, _ = packed(tmp_path, library, "--name", "my-relu", "--version", "0", "--license", "MIT", "--upstream", "https://u/x", "--source", "https://s/x")
    build = Path(shown["build"])
    assert build == tmp_path / "repo/build" / MACHINE and shown["variant"] == MACHINE
    metadata = read_by_peer(build)
    assert json.loads((build / "metadata.json").read_text()) == shown["metadata"]
    assert (str(metadata.name), metadata.version, metadata.license, metadata.upstream, metadata.source) == ("my-relu", 0, "MIT", "https://u/x", "https://s/x")
    assert (build / f"{metadata.id}.so").read_bytes() == library.read_bytes() and metadata.python_depends == []
    code = """
        import numpy, sys, tvm_ffi
        from pathlib import Path
        from kernels import get_local_kernel
        kernel = get_local_kernel(Path(sys.argv[1]), backend="cpu")
        x, out = numpy.array([-1, 2, 0], numpy.float32), numpy.full(3, 7, numpy.float32)
        kernel.relu(tvm_ffi.from_dlpack(out), tvm_ffi.from_dlpack(x))
        assert out.tolist() == [0, 2, 0] and not hasattr(kernel, "layers")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), tmp_path / "repo"], check=True, timeout=100)
    assert "0 errors, 0 warnings" in khub("check", tmp_path / "repo").stdout and khub("verify", tmp_path / "repo").returncode == 0
    (build / "_ops.py").write_text("")
    assert "_ops.py" in khub("verify", tmp_path / "repo", status=4).stdout
    assert not list(build.rglob("*.khub*")) and not list((tmp_path / "repo").glob(".khub*"))


def test_with_all_files(tmp_path, library):
    shown, said = packed(tmp_path, library, "--algorithm", "sha512", files=["metadata.json", "layers.json", "__init__.py"])
    build = Path(shown["build"])
    metadata = read_by_peer(build)
    assert metadata.digest.algorithm == DigestAlgorithm.SHA512
    given = json.loads((EXAMPLE / "metadata.json").read_text())
    assert {k: v for k, v in shown["metadata"].items() if k != "digest"} == given
    assert (build / "__init__.py").read_bytes() == (EXAMPLE / "__init__.py").read_bytes() and "warning" not in said
    assert khub("functions", tmp_path / "repo").stdout.startswith("relu(")


def test_for_a_gpu(tmp_path, library):
    variant = f"torch-stable-abi29-cu128-{os.uname().machine}-linux"
    shown, _ = packed(tmp_path, library, "--name", "relu", "--version", "1", "--license", "MIT", "--variant", variant, "--arch", "9.0", "--arch", "10.0+PTX")
    metadata = read_by_peer(Path(shown["build"]))
    assert metadata.id == "relu" and str(metadata.backend.backend_type) == "cuda" and metadata.backend.archs == ["9.0", "10.0+PTX"]


def test_nothing_is_overwritten_without_being_told(tmp_path, library):
    options = ["--name", "relu", "--version", "1", "--license", "MIT"]
    shown, _ = packed(tmp_path, library, *options)
    build = Path(shown["build"])
    before = {p.name: p.read_bytes() for p in build.iterdir()}
    done = khub("pack", tmp_path / "out", "-o", tmp_path / "repo", *options, status=2)
    assert f"{build}: is there already; --replace replaces it" in done.stderr
    assert {p.name: p.read_bytes() for p in build.iterdir()} == before
    done = khub("pack", tmp_path / "out", "-o", tmp_path / "repo", *options, "--license", "ISC", "--replace")
    assert done.stdout == f"{build}\n" and "3 files with a sha256 digest" in done.stderr
    assert read_by_peer(build).license == "ISC"


BAD = [
    ([], "it takes a directory and -o REPO"),
    (["out"], "it takes a directory and -o REPO"),
    (["out", "-o", "repo"], "out: missing, here or in a metadata.json there: --name, --version, --license"),
    (["out", "-o", "repo", "--version", "one"], '--version is "one"; versions are numbers from 0 on'),
    (["out", "-o", "repo", "--version", "-1"], '--version is "-1"'),
    (["out", "-o", "out/repo"], "out/repo: lies in out"),
    (["out", "-o", "repo", "--variant", "cpu"], "cpu: isn't the name of a build"),
    (["out", "-o", "repo", "--algorithm", "md5"], '--algorithm is "md5"'),
]


def test_bad_input_is_named(tmp_path, library):
    (tmp_path / "out").mkdir()
    shutil.copy(library, tmp_path / "out")
    for arguments, words in BAD:
        done = subprocess.run([KHUB, "pack", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and words in done.stderr and not done.stdout, done
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


COMMIT, BUILDER = "0123456789" * 4, {"version": "1.0"}
FIELDS = {
    "upstream": ["x", "http:", "https://", "git@github.com:a/b.git", "ssh://x/y", "", "/path", "mailto:a@b", "https://a b", "https://[::",
                 "https://github.com/a/b", "git+https://a/b", "ftp://a/b", "https://a/\u00fc", "https:///x"],
    "source": ["x", "https://github.com/a/b.git"],
    "kernels-minver": ["0.1", "x", "1.2.3.4", "0.17.0", "0.17.0a", ""],
    "provenance": [{}, {"kernel": {"commit": COMMIT}}, {"kernel-builder": BUILDER}, {"kernel-builder": {}},
                   *({"kernel-builder": BUILDER, "kernel": {"commit": c, "dirty": False}} for c in ("12", COMMIT, COMMIT + "a", "g" * 40, "ab" * 32)),
                   {"kernel-builder": {**BUILDER, "commit": "x", "dirty": False}}, {"kernel-builder": {"version": 1}}],
    "name": ["a", "a_b", "a-b", "ab-", "A", ""],
    "version": [-1, "1", 1.5, 2**63 - 1, True],
    "python-depends": ["einops", [1], ["einops"]],
    "kernel-depends": [[{"repo-id": "a/b", "version": 1}], [{"repo-id": "a/b"}], [{"version": 1}], [{"repo-id": "a/b", "version": 1, "x": 1}]],
    "backend": [{"type": "cpu", "archs": [1]}, {"type": "cpu"}],
}


def names_in(value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [name for key, inner in items for name in [key, *names_in(inner)]]


def accepts(metadata):
    try:
        Metadata.from_bytes(json.dumps(metadata).encode())
    except ValueError:
        return False
    return True


def test_what_is_accepted_is_accepted_by_the_peer(tmp_path, library):
    """Over fields that are right and wrong. What khub refuses and the peer takes is named."""
    directory = tmp_path / "out"
    directory.mkdir()
    shutil.copy(library, directory)
    good = json.loads((EXAMPLE / "metadata.json").read_text())
    stricter, agreed = [], {True: 0, False: 0}
    for field, values in FIELDS.items():
        for value in values:
            (directory / "metadata.json").write_text(json.dumps({**good, field: value}))
            done = subprocess.run([KHUB, "pack", directory, "-o", tmp_path / "repo", "--variant", MACHINE, "--replace"], capture_output=True, text=True)
            theirs = accepts({**good, field: value})
            assert done.returncode == 0 or any(f'"{name}"' in done.stderr for name in [field, *names_in(value)]), done
            assert theirs or done.returncode, (field, value)
            if theirs != (done.returncode == 0):
                stricter.append((field, value))
            else:
                agreed[theirs] += 1
    assert stricter == [("upstream", "https://a/\u00fc"), ("upstream", "https:///x")]
    assert min(agreed.values()) > 10
