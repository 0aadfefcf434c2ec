"""docs/writing.md: its files are those of examples/kernel, its commands make a kernel that khub and Python load."""
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest
from house import SANITIZE, SOURCE, STAGE

page = (SOURCE / "docs/writing.md").read_text()
EXAMPLE = SOURCE / "examples/kernel"
model = os.environ["KHUB_MODEL"]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.S)


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """The page's commands, as they stand, where the repository would be; .room is what they printed."""
    room = tmp_path_factory.mktemp("writing")
    (room / ".deps/run").mkdir(parents=True)
    (room / ".deps/run/tvm_ffi").symlink_to(os.path.realpath(f"{model}/../../tvm_ffi"))
    (room / "examples").symlink_to(SOURCE / "examples")
    (script,) = blocks("sh")
    script = script.replace("cc ", "cc -std=c11 -Wall -Wextra -pedantic -Werror ")
    printed = run(["sh", "-ec", script], cwd=room, env={**os.environ, "PATH": f"{STAGE}/bin:{os.environ['PATH']}"})
    (room / "printed").write_text(printed)
    return room


def test_the_files_are_those_of_the_repository():
    names = {"c": ["relu.c"], "json": ["metadata.json", "layers.json"], "python": ["__init__.py"]}
    for language, files in names.items():
        assert blocks(language) == [(EXAMPLE / name).read_text() for name in files]
    assert {p.name for p in EXAMPLE.iterdir()} - {"__pycache__"} == {name for files in names.values() for name in files}


def test_the_commands_print_what_the_page_says(room):
    printed = (room / "printed").read_text()
    said = [line.split("#")[1].strip() for line in blocks("sh")[0].splitlines() if line.startswith("khub ")]
    assert len(said) == 4
    for line in said:
        words = line.replace("x86_64", os.uname().machine)
        assert words in printed, (words, printed)
    assert "out = max(x, 0)" in printed  # the documentation
    assert "can't be loaded" not in printed


def test_no_required_field_can_go(room):
    (build,) = (room / "my-relu/build").iterdir()
    whole = json.loads((build / "metadata.json").read_text())
    said = set(re.findall(r"^\| `([a-z-]+)` \|", page.split("## metadata.json")[1].split("## layers.json")[0], re.M))
    assert whole.pop("digest") and said == set(whole)
    try:
        for field in whole:
            (build / "metadata.json").write_text(json.dumps({k: v for k, v in whole.items() if k != field}))
            done = subprocess.run([STAGE / "bin/khub", "functions", "./my-relu"], cwd=room, capture_output=True, text=True)
            assert done.returncode == 1 and f"missing: {field} " in done.stderr and "docs/writing.md" in done.stderr
    finally:
        (build / "metadata.json").write_text(json.dumps(whole))


def test_a_call_that_does_not_fit(room):
    done = subprocess.run([STAGE / "bin/khub", "call", "./my-relu:relu", "out=float32[2]", "[1]"], cwd=room, capture_output=True, text=True)
    assert done.returncode == 1 and "ValueError: relu: out and x differ in shape" in done.stderr


def test_a_tensor_without_memory(room):
    """An error as the built-in kernels have it, unless it has no elements."""
    (room / "null.c").write_text(r"""
        #include <khub/khub.h>
        #include <stdio.h>
        int main(void)
        {
            khub_error err = {0};
            khub_kernel *kernel;
            khub_function relu;
            const int64_t some[] = {2}, none[] = {0};
            khub_tensor two = khub_tensor_f32(NULL, 1, some), empty = khub_tensor_f32(NULL, 1, none);
            if (khub_get(&kernel, "./my-relu", NULL, &err) || khub_kernel_function(&relu, kernel, "relu", &err) ||
                khub_call(&relu, &err, khub_arg_tensor(&empty), khub_arg_tensor(&empty)))
                return puts(err.message), 1;
            return khub_call(&relu, &err, khub_arg_tensor(&two), khub_arg_tensor(&two)) ? puts(err.message), 0 : 1;
        }""")
    compiler = ["clang", "-fsanitize=address,undefined"] if SANITIZE else ["cc"]
    run([*compiler, "null.c", "-o", "null", f"-I{STAGE}/include", f"-L{STAGE}/lib", "-lkhub", f"-Wl,-rpath,{STAGE}/lib"], cwd=room)
    assert run(["./null"], cwd=room) == "ValueError: relu: a tensor has no memory\n"


def test_it_can_be_done_twice(room):
    (script,) = blocks("sh")
    run(["sh", "-ec", script], cwd=room, env={**os.environ, "PATH": f"{STAGE}/bin:{os.environ['PATH']}"})
    (line,) = re.findall(r"`(rm -r .*)` takes away", page)
    assert all((room / name).exists() for name in line.split()[2:])


def test_it_serves_a_layer(room):
    """In a model with ReLU, the example's function is put in its place, and computes the same."""
    sys.path.insert(0, str(SOURCE / "tests/cli"))
    from tiny_model import write_model

    made = write_model(room / "model", config={"hidden_act": "relu"})
    (room / "map.json").write_text(re.search(r"map.json: (\{.*\})", page)[1])
    khub = [STAGE / "bin/khub", "embed", "--model", made, "a cat sat"]
    mine = json.loads(run([*khub, "--kernels=map.json", "--require"], cwd=room))
    standard = json.loads(run(khub, cwd=room))
    assert mine == standard  # a maximum isn't rounded


def test_python_loads_it(room):
    code = """
        import numpy, tvm_ffi
        from pathlib import Path
        from kernels import get_local_kernel
        kernel = get_local_kernel(Path("my-relu"), backend="cpu")
        x = numpy.array([[-1, 2, numpy.nan], [3, -4, 0]], numpy.float32)
        out = numpy.full((3, 2), 7, numpy.float32)
        kernel.relu(tvm_ffi.from_dlpack(out.T), tvm_ffi.from_dlpack(x))
        assert numpy.array_equal(out.T, numpy.where(x < 0, 0, x), equal_nan=True), out
        try:
            kernel.relu(1, 2)
        except TypeError as error:
            print(error)
    """
    printed = run([sys.executable, "-c", textwrap.dedent(code)], cwd=room)
    assert "relu takes out and x" in printed
