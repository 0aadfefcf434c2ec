"""What the libraries export is what the public headers declare, and what they need is what README says."""
import re

import pytest
from house import LIBRARIES, PUBLIC_HEADERS, STAGE, run

# Of the C library and the few packages that deps/debian.txt and README name. Everything else is opened at run time.
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libjansson.so.4", "libutf8proc.so.2", "libkhub.so.0",
          "libkhub-model.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libgcc_s.so.1"}


def declared():
    names = set()
    for header in PUBLIC_HEADERS:
        text = re.sub(r"/\*.*?\*/|^[ \t]*#.*?$", " ", header.read_text(), flags=re.S | re.M)
        names |= set(re.findall(r"KHUB_API[^;{]*?\b(khub_\w+)\s*\(", text))
    assert len(names) > 50
    return names


def exported(library):
    """{name: version} of the symbols that a library defines for others."""
    found = {}
    for line in run("readelf", "--dyn-syms", "--wide", library).splitlines():
        field = line.split()
        if len(field) >= 8 and field[4] in ("GLOBAL", "WEAK") and field[6] not in ("UND", "ABS"):
            name, _, version = field[7].partition("@@")
            found[name] = version
    assert found
    return found


def is_private(name):
    return name.startswith("khub__")


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda p: p.name)
def test_every_symbol_has_its_version(library):
    for name, version in exported(library).items():
        assert name.startswith("khub_"), name
        assert version == ("KHUB_PRIVATE" if is_private(name) else "KHUB_0"), f"{name}@@{version}"


def test_exported_equals_declared():
    public = {name for library in LIBRARIES for name in exported(library) if not is_private(name)}
    assert public == {name for name in declared() if not is_private(name)}


def test_private_ones_in_headers_are_exported():
    private = {name for library in LIBRARIES for name in exported(library) if is_private(name)}
    assert {name for name in declared() if is_private(name)} <= private


def test_nothing_is_exported_twice():
    one, two = (set(exported(library)) for library in LIBRARIES)
    assert not one & two


def needed(binary):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", binary)))


@pytest.mark.parametrize("binary", LIBRARIES + [STAGE / "bin" / "khub"], ids=lambda p: p.name)
def test_needs_no_more_than_it_says(binary):
    assert needed(binary) <= NEEDED


def test_serve_needs_no_more_than_it_says():
    mine = {"libmicrohttpd.so.12", "libgit2.so.1.5"}
    assert needed(STAGE / "libexec" / "khub" / "khub-serve") <= NEEDED | mine
