"""Loading what isn't as it should be, from outside: the exit status, words that name the file and the fact, nothing
written, and a command that survives. The user reports F2, F3, F8 and M3 bear their names."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from fakes import KHUB, PLAIN, REPOS, VARIANT, build_of, copy, khub, library_of


def files_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.fixture
def spoiled(tmp_path):
    """A copy of a fake repository: spoil(build, library) changes it, then khub functions must fail with `words`."""

    def check(name, spoil, *words, status=1):
        build = copy(name, tmp_path / "repo")
        library = build / library_of(name).name
        spoil(build, library)
        before = files_below(tmp_path)
        run = khub("functions", tmp_path / "repo", cwd=tmp_path)
        assert run.returncode == status, run.stderr
        assert run.stdout == ""
        for word in words:
            assert word in run.stderr
        assert len(run.stderr.splitlines()) == 1, run.stderr
        assert files_below(tmp_path) == before
        return run.stderr

    return check


def test_library_is_missing(spoiled):
    spoiled("good", lambda build, library: library.unlink(), f"build/{VARIANT}: has no library: neither _good_cpu_fa4e000.so nor")


def test_library_is_a_link_to_nothing(spoiled):
    def spoil(build, library):
        library.unlink()
        library.symlink_to("../../blobs/4d7a")

    spoiled("good", spoil, "_good_cpu_fa4e000.so: can't open it: No such file")


def test_several_libraries_of_other_names(spoiled):
    def spoil(build, library):
        shutil.copy(library, build / "a.so")
        library.rename(build / "b.so")

    spoiled("good", spoil, "has several libraries and none of the name in metadata.json: a.so, b.so")


@pytest.mark.parametrize("name", ["_good_cpu_fa4e000.abi3.so", "good.so", "whatever.so"])
def test_other_names_of_the_library(tmp_path, name):
    build = copy("good", tmp_path / "repo")
    (build / library_of("good").name).rename(build / name)
    run = khub("functions", tmp_path / "repo")
    assert run.returncode == 0, run.stderr


def test_F8_truncated(spoiled):
    spoiled("good", lambda build, library: os.truncate(library, library.stat().st_size // 2), "_good_cpu_fa4e000.so: is truncated: it has")


def test_F8_truncated_in_the_section_table(spoiled):
    spoiled("good", lambda build, library: os.truncate(library, library.stat().st_size - 10), "is truncated: it has", "section headers")


def test_F8_nothing_in_it(spoiled):
    spoiled("good", lambda build, library: os.truncate(library, 0), "_good_cpu_fa4e000.so: is empty: 0 bytes")


def test_F8_text(spoiled):
    spoiled("good", lambda build, library: library.write_text("Not found\n"), "is a text file, not a library", "Not found")


def test_F8_git_lfs_pointer(spoiled):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 1\n"
    spoiled("good", lambda build, library: library.write_text(pointer), "pointer file, not the content")


def test_F8_another_machine(spoiled):
    def spoil(build, library):
        data = bytearray(library.read_bytes())
        data[18:20] = (8).to_bytes(2, "little")  # EM_MIPS
        library.write_bytes(data)

    spoiled("good", spoil, "_good_cpu_fa4e000.so: is for another machine: mips", os.uname().machine)


def test_F8_not_readable(spoiled):
    if os.geteuid() == 0:
        spoiled("good", lambda build, library: (library.unlink(), library.mkdir()), "_good_cpu_fa4e000.so: is a directory, not a file")
    else:
        spoiled("good", lambda build, library: library.chmod(0), "_good_cpu_fa4e000.so: can't open it: Permission denied")


def test_F8_noexec(tmp_path):
    """In a mount namespace of its own, which root has and others get with a user namespace."""
    script = 'mount -t tmpfs -o noexec none "$1" && cp -r "$2" "$1/repo" && exec "$3" functions "$1/repo"'
    run = subprocess.run(["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script, "sh", tmp_path, REPOS / "good", KHUB],
                         capture_output=True, text=True)
    assert run.returncode == 1
    assert f"lies on a file system mounted noexec, at {tmp_path}: no library can be loaded from there" in run.stderr


def test_F2_undefined_symbol():
    run = khub("functions", REPOS / "needs_torch")
    assert run.returncode == 1
    assert "undefined symbol _ZN3c105ErrorC2ENS_14SourceLocationESs = c10::Error::Error(c10::SourceLocation, std::string)" in run.stderr
    assert "libtorch" in run.stderr and "pre-C++11 strings" in run.stderr
    assert "built for Python" in khub("functions", REPOS / "needs_python").stderr


def test_F3_missing_library_is_named_with_the_places():
    run = khub("functions", REPOS / "needs_cudart")
    assert run.returncode == 1
    assert "needs libcudart.so.99" in run.stderr and f"looked in the library's own path {build_of('needs_cudart')}" in run.stderr


def test_F3_sibling_in_the_layout_of_the_cache(tmp_path):
    """Snapshots hold links to blobs: a library opened by where its link leads would not find its sibling."""
    blobs, build = tmp_path / "blobs", tmp_path / "snapshots" / "c0ffee" / "build" / VARIANT
    blobs.mkdir()
    build.mkdir(parents=True)
    for i, file in enumerate(sorted(build_of("with_sibling").iterdir())):
        shutil.copy(file, blobs / f"{i:040x}")
        (build / file.name).symlink_to(f"../../../../blobs/{i:040x}")
    run = khub("functions", tmp_path / "snapshots" / "c0ffee")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "ask_sibling(...)\n"


def test_F3_an_unreadable_folder_in_the_search_path_is_skipped(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    run = khub("functions", REPOS / "with_sibling", env={"LD_LIBRARY_PATH": str(closed)})
    assert run.returncode == 0, run.stderr


def test_F3_the_command_itself_needs_no_accelerator():
    needed = subprocess.run(["readelf", "-d", KHUB], capture_output=True, text=True, check=True).stdout
    for name in ("cuda", "hip", "torch", "tvm_ffi", "ze_loader"):
        assert name not in needed


@pytest.mark.parametrize("name, how", [("crash_on_load", "SIGSEGV"), ("abort_on_load", "SIGABRT"), ("exit_on_load", "exit(3)")])
def test_a_library_that_ends_the_process_while_loading(name, how):
    run = khub("functions", REPOS / name)
    assert run.returncode == 1
    assert run.stdout == ""
    assert f"khub: {library_of(name)}: loading it ended the process: " in run.stderr
    assert how in run.stderr


def test_M3_a_description_that_ends_the_process():
    run = khub("functions", REPOS / "in_call", env={"FAKE_ABORT_IN_DOC": "1"})
    assert run.returncode == 1
    assert f"{library_of('in_call')}: calling it ended the process: SIGABRT" in run.stderr
    assert khub("functions", REPOS / "in_call").returncode == 0


@pytest.mark.parametrize("function, how", [("abort_now", "SIGABRT"), ("exit_now", "it called exit(5)")])
def test_M3_a_function_that_ends_the_process(tmp_path, function, how):
    run = khub("call", f"{REPOS / 'in_call'}:{function}", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"khub: {REPOS / 'in_call'}:{function}: calling it ended the process: {how}")
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("command", [
    ("call", ":relu", "out=float32[3]", "[-1, 2, 3]", "--json"),
    ("bench", ":relu", "out=float32[3]", "[-1, 2, 3]", "--time=0.01", "--json"),
    ("bench", ":ReLU", "--shape=m=2,n=3", "--time=0.01", "--json"),
    ("functions", "", "--json"),
    ("get", "", "--json"),
], ids=lambda command: "".join(command[:2]))
def test_what_a_kernel_prints_is_no_result(tmp_path, command):
    name, what, *rest = command
    run = khub(name, f"{REPOS / 'liar_prints'}{what}", *rest, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    json.loads(run.stdout)
    assert '{"loaded": true}' in run.stderr
    assert ('{"gone": true}' in run.stderr) == (os.environ["KHUB_SANITIZE"] == "1")  # what it would print at its end is waited for there alone
    assert ('{"relu": true}' in run.stderr) == (name in ("call", "bench"))


def test_a_compiled_module():
    run = khub("functions", REPOS / "module")
    assert run.returncode == 1
    assert "is a compiled tvm-ffi module" in run.stderr


METADATA = {
    "is missing": (None, "docs/writing.md"),
    "lacks fields": ('{"name":"good","id":"x","license":"x","python-depends":[]}', "missing: version, backend (docs/writing.md"),
    "is not JSON": ("{", "not valid JSON"),
    "is deep": ('{"a":' + "[" * 5_000_000, "nested deeper"),
    "is an array": ("[]", "an object is expected"),
    "has a wrong type": ('{"name":"good","id":"x","version":"1","license":"x","backend":{"type":"cpu"},"python-depends":[]}', "version"),
}


@pytest.mark.parametrize("case", METADATA)
def test_metadata(spoiled, case):
    text, words = METADATA[case]

    def spoil(build, library):
        file = build / "metadata.json"
        file.unlink()
        if text is not None:
            file.write_text(text)

    spoiled("good", spoil, "metadata.json", words)


def test_metadata_of_two_gigabytes(spoiled):
    """A sparse file: nothing of that size is read."""
    spoiled("good", lambda build, library: os.truncate(build / "metadata.json", 2 << 30), "metadata.json", "2147483648 bytes long")


def test_no_build(tmp_path):
    (tmp_path / "build" / "tvm-ffi01-cpu-x86_64-darwin").mkdir(parents=True)
    run = khub("functions", tmp_path)
    assert run.returncode == 3
    assert "tvm-ffi01-cpu-x86_64-darwin" in run.stderr


def test_a_missing_repository(tmp_path):
    run = khub("functions", tmp_path / "nowhere")
    assert run.returncode == 1
    assert str(tmp_path / "nowhere") in run.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_command_reaches_its_child(tmp_path, number):
    """The child hangs in a constructor."""
    hang = tmp_path / "hang.c"
    hang.write_text('#include <unistd.h>\n__attribute__((constructor)) static void f(void) { write(2, "hangs\\n", 6); for (;;) pause(); }\n')
    build = copy("empty", tmp_path / "repo")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", build / library_of("empty").name, hang], check=True)
    run = subprocess.Popen([KHUB, "functions", tmp_path / "repo"], stderr=subprocess.PIPE, text=True, env={**os.environ, **PLAIN})
    assert run.stderr.readline() == "hangs\n"
    children = open(f"/proc/{run.pid}/task/{run.pid}/children").read().split()
    assert len(children) == 1
    run.send_signal(number)
    assert run.wait(30) == -number
    for _ in range(500):
        if not os.path.exists(f"/proc/{children[0]}"):
            return
        time.sleep(0.02)
    raise AssertionError("the child lives on")
