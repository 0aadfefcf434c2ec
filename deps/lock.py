#!/usr/bin/env python3
"""Writes deps/NAME.txt from deps/NAME.in: every package that pip would install, with version and hash.

    deps/lock.py run arm64 test torch bench zig

Lists in NODEPS are taken without what they depend on."""
import json
import pathlib
import subprocess
import sys

NODEPS = {"run", "arm64", "torch"}
ARM64 = ["--platform", "manylinux_2_28_aarch64", "--target", "."] # where nothing is put: pip wants to hear it
here = pathlib.Path(__file__).parent


def lock(name: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-",
               "--only-binary", ":all:", "--requirement", str(here / f"{name}.in")]
    if name in NODEPS:
        command.append("--no-deps")
    if name == "arm64":
        command += ARM64
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = ["# Written by deps/lock.py from %s.in: %s Linux, CPython %s" % (
        name, "AArch64" if name == "arm64" else "x86-64", ".".join(map(str, sys.version_info[:2])))]
    for item in sorted(report["install"], key=lambda item: item["metadata"]["name"].lower()):
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append("%s==%s --hash=sha256:%s" % (item["metadata"]["name"], item["metadata"]["version"], digest))
    (here / f"{name}.txt").write_text("\n".join(lines) + "\n")


for each in sys.argv[1:]:
    lock(each)
