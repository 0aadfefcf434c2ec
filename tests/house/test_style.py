"""What can be said about the looks of the sources without taste."""
import hashlib
import os
import re
import subprocess
from pathlib import Path

from house import SOURCE, run, sources

OURS = [f for f in ("src", "include", "kernels", "tests", "fuzz", "bench", "examples") if list((SOURCE / f).rglob("*.[ch]"))]


def test_no_file_is_two_ideas():
    long = {str(p): n for p in sources(*OURS) if (n := len((SOURCE / p).read_text().splitlines())) > 1000}
    assert not long


def test_formatted():
    """Files that were are remembered in the build directory, by their content and what it was held against."""
    rules = (run("clang-format", "--version") + (SOURCE / ".clang-format").read_text()).encode()
    seen = Path(os.environ["KHUB_BINARY"], "tests", "formatted")
    known = set(seen.read_text().split()) if seen.exists() else set()
    files = {str(p): hashlib.sha256(rules + (SOURCE / p).read_bytes()).hexdigest() for p in sources(*OURS)}
    if new := [path for path, content in files.items() if content not in known]:
        run("clang-format", "--dry-run", "--Werror", *new, cwd=SOURCE)
    seen.write_text("\n".join(files.values()))


def test_clang_tidy_is_answered_in_the_code():
    """A finding is mended, or its check is left out in .clang-tidy for a reason that stands there."""
    assert not [str(p) for p in sources(*OURS) if "NOLINT" in (SOURCE / p).read_text()]


def test_clang_tidy_fails_on_what_it_finds(tmp_path):
    """With the settings of sources and of tests; the latter leave one check of the former out."""
    (tmp_path / "null.c").write_text("int f(int *p) { return p ? 0 : *p; }\n")
    (tmp_path / "atoi.c").write_text("#include <stdlib.h>\nint f(const char *t) { return atoi(t); }\n")
    found = {}
    for folder in "src", "tests":
        (tmp_path / "config").write_text(run("clang-tidy", "--dump-config", f"{folder}/x.c", "--", cwd=SOURCE))
        for name in "null.c", "atoi.c":
            done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={tmp_path / 'config'}", tmp_path / name, "--"],
                                  capture_output=True, text=True, timeout=60)
            found[folder, name] = done.returncode != 0
    assert found == {("src", "null.c"): True, ("src", "atoi.c"): True, ("tests", "null.c"): True, ("tests", "atoi.c"): False}


def test_every_header_is_guarded_by_its_name():
    faults = []
    for path in sources("include", "src"):
        name = re.sub(r"\W", "_", path.name).upper() # CLI_H, or with its folders before it: BASE_FILE_H
        guard = rf"^#ifndef ((?:[A-Z_]+_)?{name})\n#define \1\n"
        if path.suffix == ".h" and not re.search(guard, (SOURCE / path).read_text(), flags=re.M):
            faults.append(str(path))
    assert not faults, "\n".join(faults)
