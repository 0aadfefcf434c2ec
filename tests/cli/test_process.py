"""khub as a process: what it inherits (signals, descriptors, limits), and what it leaves behind when it is ended."""

import os
import resource
import signal
import subprocess

import pytest

import tiny_model
from fakes import KHUB, PLAIN, REPOS, copy, khub, library_of

GOOD = f"{REPOS}/good"


def ignoring(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


def start(*arguments, **options):
    return subprocess.Popen([KHUB, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **PLAIN}, **options)


def test_a_caller_that_ignores_sigchld():
    """Its children inherit that; the status of a contained command must not be lost by it."""
    run = khub("call", f"{GOOD}:fail", "ValueError", "no", preexec_fn=ignoring(signal.SIGCHLD))
    assert (run.returncode, run.stderr) == (1, "khub: ValueError: no\n")
    run = khub("call", f"{REPOS}/in_call:abort_now", preexec_fn=ignoring(signal.SIGCHLD))
    assert run.returncode == 1 and "SIGABRT" in run.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_the_caller_ignores(tmp_path, number):
    """As under nohup, and in a shell's background job."""
    model = tiny_model.write_model(tmp_path / "m")
    run = start("embed", "--model", model, "--report", "--file", "-", preexec_fn=ignoring(number))
    while not run.stderr.readline().startswith(b"kernels serve"):  # then it waits for texts
        assert run.poll() is None
    children = open(f"/proc/{run.pid}/task/{run.pid}/children").read().split()
    run.send_signal(number)
    os.kill(int(children[0]), number)
    out, err = run.communicate(b"hello\n", timeout=60)
    assert run.returncode == 0 and out.startswith(b"["), err


def test_a_kernel_that_would_end_the_process_with_its_own_status(tmp_path):
    """When all is done, in a destructor: it doesn't run, but under a sanitizer, where no status is that README doesn't list."""
    leave = tmp_path / "leave.c"
    leave.write_text('#include <unistd.h>\n__attribute__((destructor)) static void f(void) { _exit(7); }\n')
    build = copy("empty", tmp_path / "repo")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", build / library_of("empty").name, leave], check=True)
    run = khub("functions", "-q", tmp_path / "repo")
    badly = "khub: the result is complete, but the process then ended badly: it called exit(7)\n"
    assert (run.returncode, run.stderr) == ((1, badly) if os.environ["KHUB_SANITIZE"] == "1" else (0, ""))


@pytest.mark.parametrize("command", [["call", f"{GOOD}:add_one", "out=float32[2000]", "x=float32[2000]"], None])
def test_a_limit_on_the_size_of_files(tmp_path, command):
    """The system's SIGXFSZ would end the process and leave what it had begun."""
    if command is None:
        model = tiny_model.write_model(tmp_path / "m", config={"hidden_size": 800}, pooling={"pooling_mode_mean_tokens": True})
        command = ["embed", "--model", model, "-o", "out.npy", "hello"]
    folder = tmp_path / "here"
    folder.mkdir()
    run = khub(*command, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    assert run.returncode == 1
    assert run.stderr == "khub: out.npy: can't write it: File too large\n"
    assert os.listdir(folder) == []


@pytest.mark.parametrize("command", ["embed", "tokenize"])
def test_an_endless_line(tmp_path, command):
    """Memory doesn't grow with it for ever."""
    model = tiny_model.write_model(tmp_path / "m")
    run = khub(command, "--model", model, "--file", "/dev/zero")
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "khub: /dev/zero: line 1 is longer than 64 MiB\n")


@pytest.mark.parametrize("command", [["embed", "--kernels"], ["tokenize"]])  # kernels: company doesn't show
def test_lines(tmp_path, command):
    """NULs, CRLF, an empty line, no end of the last line, a carriage return that ends no line."""
    model = tiny_model.write_model(tmp_path / "m")
    lines = [b"hello", b"", b"hello\0world", b"a cat" * 1000, b"hello\r"]
    (tmp_path / "lines").write_bytes(b"hello\r\n\n" + b"\n".join(lines[2:]))
    for i, line in enumerate(lines):
        (tmp_path / f"{i}").write_bytes(line + b"\n" * (i < 4))
    whole = khub(*command, "--model", model, "--file", tmp_path / "lines")
    apart = [khub(*command, "--model", model, "--file", tmp_path / f"{i}").stdout for i in range(5)]
    assert whole.returncode == 0 and whole.stdout.count("\n") == 5
    assert whole.stdout == "".join(apart)


def test_closed_streams(tmp_path):
    """No file that is opened takes the place of a closed stream, where what is printed would go into it; using one still fails."""
    probe = tmp_path / "probe.c"
    probe.write_text("""
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void f(void)
{
    char c = 'x';
    if (dup(0) > 2 && read(0, &c, 1) < 0 && write(1, &c, 1) < 0 && write(2, &c, 1) < 0) creat("fine", 0666);
}
""")
    build = copy("empty", tmp_path / "repo")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", build / library_of("empty").name, probe], check=True)
    run = subprocess.run([KHUB, "functions", tmp_path / "repo", "--json"], preexec_fn=lambda: os.closerange(0, 3), timeout=60,
                         cwd=tmp_path, env={**os.environ, **PLAIN})
    assert run.returncode == 1
    assert (tmp_path / "fine").exists()


@pytest.mark.parametrize("does, words", [("_exit(215)", "loading it ends the process: it called exit(215)"), ("_exit(0)", "loading it ends the process: it called exit(0)"),
                                         ("if (fork()) _exit(0)", "loading it ends the process: it called exit(0)"),
                                         ("for (int i = 0; i < 1024; i++) close(i)", "loading it closes files of the process that aren't its own"),
                                         ("close(2)", "loading it closes files of the process that aren't its own")])
def test_a_constructor_that_takes_the_process_with_it(tmp_path, does, words):
    """No status is believed to be a rehearsal's good end, nor that what is left of the process could say anything."""
    build = copy("empty", tmp_path / "repo")
    library = build / library_of("empty").name
    (tmp_path / "k.c").write_text(f"#include <unistd.h>\n__attribute__((constructor)) static void f(void) {{ {does}; }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "k.c"], check=True)
    run = khub("get", tmp_path / "repo")
    assert (run.returncode, run.stdout, run.stderr) == (1, "", f"khub: {library}: {words}\n")
