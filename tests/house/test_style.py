"""What can be said about the looks of the sources without taste."""
import re

from house import SOURCE, run, sources

OURS = [f for f in ("src", "include", "kernels", "tests", "fuzz", "bench", "examples") if list((SOURCE / f).rglob("*.[ch]"))]


def test_no_file_is_two_ideas():
    long = {str(p): n for p in sources(*OURS) if (n := len((SOURCE / p).read_text().splitlines())) > 1000}
    assert not long


def test_formatted():
    run("clang-format", "--dry-run", "--Werror", *sources(*OURS), cwd=SOURCE)


def test_every_header_is_guarded_by_its_name():
    faults = []
    for path in sources("include", "src"):
        name = re.sub(r"\W", "_", path.name).upper() # CLI_H, or with its folders before it: BASE_FILE_H
        guard = rf"^#ifndef ((?:[A-Z_]+_)?{name})\n#define \1\n"
        if path.suffix == ".h" and not re.search(guard, (SOURCE / path).read_text(), flags=re.M):
            faults.append(str(path))
    assert not faults, "\n".join(faults)
