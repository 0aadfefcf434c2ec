"""Where things are, for the tests of the house itself."""
import os
import pathlib
import subprocess

SOURCE = pathlib.Path(os.environ["KHUB_SOURCE"])
STAGE = pathlib.Path(os.environ["KHUB_STAGE"])
SANITIZE = os.environ["KHUB_SANITIZE"] == "1"

LIBRARIES = [STAGE / "lib" / "libkhub.so", STAGE / "lib" / "libkhub-model.so"]
PUBLIC_HEADERS = sorted((SOURCE / "include" / "khub").glob("*.h"))


def sources(*folders):
    """Every C file, and of CUDA, under the folders of the repository, as paths relative to it."""
    found = [p for f in folders for p in sorted((SOURCE / f).rglob("*")) if p.suffix in {".c", ".h", ".cu"}]
    assert found, f"no C files in {folders}"
    return [p.relative_to(SOURCE) for p in found]


def run(*command, **options):
    """Runs a command that must succeed; returns what it printed."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command[:4]))} ...\n{done.stdout}{done.stderr}"
    return done.stdout
