"""Where a kernel of the Hub looks for the libraries that it needs: those of its build are the proven ones, whatever lies elsewhere. A kernel's
constructor writes what its helper() gives into a file: 1 or 2 is a publisher's, 666 anybody's."""
import json
import os
import subprocess

import pytest
from small_hub import VARIANT, Hub, khub

BUILD = f"build/{VARIANT}"
OTHER = 12345  # the number of another user

KERNEL = """
#include <stdio.h>
#include <stdlib.h>
int helper(void);
__attribute__((constructor)) static void start(void)
{
    FILE *file = fopen(getenv("FAKE_MARK_FILE"), "a");
    fprintf(file, "%d\\n", helper());
    fclose(file);
}
int __tvm_ffi_f(void *self, const void *arguments, int count, void *result) { return 0; }
"""


class Place:
    def __init__(self, folder):
        self.folder, self.hub, self.mark = folder, Hub(), folder / "mark"

    def link(self, name, source, *options):
        (self.folder / "x.c").write_text(source)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-shared", "-fPIC", "x.c", "-o", name, *options], cwd=self.folder, check=True)
        return path.read_bytes()

    def helper(self, value, name="libhelper.so", soname="libhelper.so"):
        return self.link(name, f"int helper(void) {{ return {value}; }}", *[f"-Wl,-soname,{soname}"] * bool(soname))

    def kernel(self, name, *options, needs=(), **files):
        """Of the Hub: a library linked with `options`, and other files of its build ("/" is "__" in their names)."""
        library = self.link(f"_{name}_cpu_fa4e000.so", KERNEL, "-L.", *options)
        metadata = {"name": name, "id": f"_{name}_cpu_fa4e000", "version": 1, "license": "MIT", "backend": {"type": "cpu"}, "python-depends": [],
                    "kernel-depends": [{"repo-id": f"org/{n}", "version": 1} for n in needs]}
        self.hub.repos[f"kernels/org/{name}"] = {"v1": {f"{BUILD}/{k.replace('__', '/')}.so": v for k, v in files.items()} | {
            f"{BUILD}/_{name}_cpu_fa4e000.so": library, f"{BUILD}/metadata.json": json.dumps(metadata).encode()}}

    def get(self, name, cwd=None, **env):
        """(status, what the kernels said, words)."""
        self.mark.unlink(missing_ok=True)
        run = khub(self.hub, self.folder / "cache", "get", f"org/{name}@v1", cwd=cwd or self.folder, env={"FAKE_MARK_FILE": str(self.mark), **env})
        return run.returncode, set(self.mark.read_text().split()) if self.mark.exists() else set(), run.stderr

    def refused(self, words, name, status=1, said=(), **how):
        got = self.get(name, **how)
        assert got[:2] == (status, set(said)) and words in got[2], got


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.hub.close()


ORIGIN = "-Wl,-rpath,$ORIGIN"


def test_places_of_others(place):
    there = place.folder / "there"
    place.kernel("both", "-lhelper", f"-Wl,-rpath,{there}:$ORIGIN", libhelper=place.helper(1))
    place.kernel("away", "-lhelper", f"-Wl,-rpath,{there}/not/yet")
    place.helper(666, "there/libhelper.so")
    assert place.get("both")[:2] == (0, {"1"})  # it is this user's own, and yet the proven one is taken
    if os.geteuid() == 0:
        os.chown(there, OTHER, OTHER)
    else:
        os.chmod(there, 0o777)
    for name in ("both", "away"):
        place.refused(f"looks for libraries in {there}", name, status=4)


def test_what_leads_out_of_the_build(place):
    up = place.helper(1, "libup.so", "$ORIGIN/../../libup.so")
    place.kernel("up", "-lup", libother=up)
    place.hub.repos["kernels/org/up"]["v1"]["libup.so"] = up
    place.refused("needs $ORIGIN/../../libup.so, which isn't a library of its build", "up")
    place.helper(1, "libfar.so", "$ORIGIN/../../../tmp/libfar.so")
    place.kernel("far", "-lfar")
    place.refused("which isn't a library of its build", "far")
    inside = place.helper(1, "libin.so", "$ORIGIN/./lib/../lib/libin.so")
    place.kernel("inside", "-lin", lib__libin=inside)
    assert place.get("inside")[:2] == (0, {"1"})


@pytest.mark.parametrize("options, words", [(["-Wl,-rpath,$ORIGINx"], 'its search path has "$ORIGINx", which is looked for in the current directory'),
                                            ([ORIGIN, "-Wl,-f,./libhelper.so"], "wants its symbols from ./libhelper.so"),
                                            (["-Wl,-rpath,$ORIGIN:"], 'its search path has ""'),
                                            (["-Wl,-rpath,."], 'its search path has "."')])
def test_the_current_directory(place, options, words):
    place.kernel("one", "-lhelper", *options, libhelper=place.helper(1))
    directory = place.folder / "r" / BUILD
    directory.mkdir(parents=True)
    for path, content in place.hub.repos["kernels/org/one"]["v1"].items():
        (place.folder / "r" / path).write_bytes(content)
    place.helper(666, "here/$ORIGINx/libhelper.so")
    place.helper(666, "here/libhelper.so")
    place.refused(words, "one", cwd=place.folder / "here")
    run = khub(None, place.folder / "cache", "get", "../r", cwd=place.folder / "here", env={"FAKE_MARK_FILE": str(place.mark)})
    assert run.returncode == 1 and words in run.stderr and not place.mark.exists()


def test_the_loaders_own_path(place):
    place.kernel("named", "-lhelper", ORIGIN, libhelper=place.helper(1))
    place.kernel("nameless", "-lhelper", ORIGIN, libhelper=place.helper(1, soname=None))
    place.helper(666, "other/libhelper.so")
    path = str(place.folder / "other")
    assert place.get("named", LD_LIBRARY_PATH=path)[:2] == (0, {"1"})
    place.refused("hasn't the name libhelper.so (DT_SONAME)", "nameless", LD_LIBRARY_PATH=path)
    assert place.get("nameless")[:2] == (0, {"1"})


def test_two_of_a_name(place):
    """Of two kernels in a process, each with a helper of its own: in a folder, and where a sibling needs it."""
    for i, needs in ((1, ()), (2, ("nest1",))):
        place.kernel(f"nest{i}", "-lhelper", "-Wl,-rpath,$ORIGIN/lib", needs=needs, lib__libhelper=place.helper(i))
    place.refused("needs the libhelper.so beside it, but this process already has another library of that name", "nest2", said={"1"})
    for i, needs in ((1, ()), (2, ("deep1",))):
        deep = place.link("libdeep.so", f"int deep(void) {{ return {i}; }}", "-Wl,-soname,libdeep.so")
        middle = place.link("libhelper.so", "int deep(void); int helper(void) { return deep(); }", "-L.", "-ldeep", ORIGIN, f"-Wl,-soname,libhelper{i}.so")
        place.kernel(f"deep{i}", "-lhelper", ORIGIN, "-Wl,--allow-shlib-undefined", needs=needs, libdeep=deep, **{f"libhelper{i}": middle})
    place.refused("needs the libdeep.so beside it", "deep2", said={"1"})
    place.kernel("twice", "-lhelper", ORIGIN, libhelper=place.helper(1), lib__libhelper=place.helper(2))
    place.refused("two libraries of the name libhelper.so", "twice")
