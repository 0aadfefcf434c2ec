"""The fake kernels of tests/fake, for the tests of commands."""

import os
import pathlib
import platform
import shutil
import subprocess

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
REPOS = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "fake", "repos")
VARIANT = f"tvm-ffi01-cpu-{platform.machine()}-linux"
# Kernels that crash do so by a signal, as outside the sanitizers, whose runtime would print and call exit().
PLAIN = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0:handle_abort=0:detect_leaks=0"}


def khub(*arguments, env=None, **options):
    return subprocess.run([KHUB, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **PLAIN, **(env or {})}, **options)


def build_of(name):
    return REPOS / name / "build" / VARIANT


def library_of(name):
    return build_of(name) / f"_{name}_cpu_fa4e000.so"


def copy(name, to):
    """A copy of a fake repository that a test may spoil; returns its build directory."""
    shutil.copytree(REPOS / name, to)
    return to / "build" / VARIANT
