"""Makes one build of a kernel repository: the library under a name of its own, the other files, metadata.json.

python3 pack.py --name norm --version 1 --library L.so --file layers.json --file __init__.py --out DIR
"""
import argparse
import base64
import hashlib
import json
import pathlib
import shutil

# Loads the library beside it; what the Python face imports.
OPS = '''"""Loads this build's library. Written by pack.py."""
from pathlib import Path

import tvm_ffi

ops = tvm_ffi.load_module(str(Path(__file__).parent / "{id}.so"))
'''


def sha256(path):
    return base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", type=int, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--file", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()

    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    # A name that changes with the content: two builds can be in one process.
    build = hashlib.sha256(args.library.read_bytes()).hexdigest()[:7]
    id = f"_{args.name.replace('-', '_')}_cpu_{build}"
    shutil.copyfile(args.library, args.out / f"{id}.so")
    (args.out / "_ops.py").write_text(OPS.format(id=id))
    for file in args.file:
        shutil.copyfile(file, args.out / file.name)
    files = sorted(path.name for path in args.out.iterdir())
    metadata = {
        "name": args.name,
        "id": id,
        "version": args.version,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": "cpu"},
        "digest": {"algorithm": "sha256", "files": {name: sha256(args.out / name) for name in files}},
    }
    (args.out / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")


if __name__ == "__main__":
    main()
