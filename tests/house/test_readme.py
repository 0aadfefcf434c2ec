"""What README shows works: its C program, its cc line, its khub lines. Also that it says what --help says."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

source = pathlib.Path(os.environ["KHUB_SOURCE"])
stage = pathlib.Path(os.environ["KHUB_STAGE"])
sanitized = os.environ["KHUB_SANITIZE"] == "1"
readme = (source / "README.md").read_text()
model = pathlib.Path(os.environ["KHUB_MODEL"])


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", readme, re.S)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


def test_the_c_example(tmp_path):
    """Built by README's own lines, with the compiler and flags of this build."""
    (tmp_path / "examples").symlink_to(source / "examples")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "stage").symlink_to(stage)
    (lines,) = [block for block in blocks("sh") if "cc " in block]
    cc = "clang -fsanitize=address,undefined" if sanitized else "cc"
    done = run(["sh", "-ec", lines.replace("cc ", f"{cc} ", 1)], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == lines.splitlines()[-1].split("#")[1].strip()


def test_the_example_in_the_repository_is_the_same():
    assert blocks("c")[0] in (source / "examples" / "gelu.c").read_text()


COMMANDS = [line.split("#")[0].strip() for line in "".join(blocks("sh")).splitlines() if line.startswith("khub ")]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A Hub that has what README names: the address, and a cache."""
    folder = tmp_path_factory.mktemp("hub")
    shutil.copytree(stage / "share/khub/kernels/khub/activation", folder / "kernels-community" / "activation" / "v1")
    server = subprocess.Popen([stage / "bin/khub", "serve", folder, "--port", "0", "-q"], stdout=subprocess.PIPE, text=True)
    yield {"HF_ENDPOINT": server.stdout.readline().split()[-1], "HF_HUB_CACHE": str(tmp_path_factory.mktemp("cache"))}
    server.terminate()
    server.wait(60)
    server.stdout.close()


@pytest.mark.parametrize("line", COMMANDS)
def test_each_khub_line(line, tmp_path, hub):
    line = line.replace("--model DIR", f"--model {model}")
    env = {**os.environ, **hub, "PATH": f"{stage}/bin:{os.environ['PATH']}"}
    done = run(["sh", "-c", line], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert [p.name for p in tmp_path.iterdir()] == (["out.npy"] if "khub call" in line else [])


def test_there_are_lines():
    assert len(COMMANDS) >= 6


# A program that loads sanitized libraries has the sanitizers' runtime itself.
SANITIZERS = "-fsanitize=address,undefined" if sanitized else ""
using = (source / "docs/using.md").read_text()
CPP = re.search(r"```cpp\n(.*?)```", using, re.S)[1]
PRINTS = re.search(r"^It prints `(.*)`\.$", using, re.M)[1] + "\n"


@pytest.mark.parametrize("standard", ["c++11", "c++14", "c++17", "c++20"])
def test_the_cpp_example(tmp_path, standard):
    """Built by the lines for pkg-config of docs/using.md."""
    lines = re.findall(r"^    ((?:export|cc) .*)$", using, re.M)
    assert len(lines) == 2
    compiler = f"{'clang++' if sanitized else 'c++'} {SANITIZERS} -std={standard} -Wall -Wextra -Werror"
    script = "\n".join(lines).replace("PREFIX", str(stage)).replace("cc main.c", f"{compiler} main.cpp")
    (tmp_path / "main.cpp").write_text(CPP)
    done = run(["sh", "-ec", script + "\n./main"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, PRINTS), done.stderr


def test_the_cmake_example(tmp_path):
    (tmp_path / "main.cpp").write_text(CPP)
    (tmp_path / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", using, re.S)[1])
    for command in (["-G", "Ninja", "-B", "out", f"-DCMAKE_PREFIX_PATH={stage}", f"-DCMAKE_CXX_FLAGS={SANITIZERS}", f"-DCMAKE_CXX_COMPILER={'clang++' if sanitized else 'c++'}"], ["--build", "out"]):
        done = run(["cmake", *command], cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert run([tmp_path / "out/main"]).stdout == PRINTS


@pytest.mark.parametrize("compiler", ["cc -std=c11 -pedantic", "c++ -x c++ -std=c++11 -pedantic"])
def test_the_other_c_of_the_pages(compiler, tmp_path):
    """Functions, each a translation unit of its own."""
    found = re.findall(r"```c\n(.*?)```", using, re.S)
    assert len(found) == 1
    for i, text in enumerate(found):
        (tmp_path / f"{i}.c").write_text(text)
        done = run([*compiler.split(), "-Wall", "-Wextra", "-Werror", f"-I{stage}/include", "-c", f"{i}.c"], cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_dev_commands_exist():
    named = set(re.findall(r"\./dev (\w+)", readme + (source / "CONTRIBUTING.md").read_text()))
    usage = run([source / "dev", "help"]).stdout
    assert named and all(re.search(rf"^  {name}\b", usage, re.M) for name in named), named
    assert shutil.which("cmake")


def test_every_built_in_layer_is_in_the_measured_tables():
    """Those of docs/determinism.md, which ./dev bench determinism writes."""
    tables = (source / "docs/determinism.md").read_text().split("<!-- measured by")[1].split("<!-- end -->")[0]
    layers = [layer for file in source.glob("kernels/*/layers.json") for layer in json.loads(file.read_text())["layers"]]
    assert sorted(re.findall(r"^\| `(\w+)`", tables, re.M)) == sorted(layers)


def test_links_lead_somewhere():
    for page in [source / "README.md", source / "CONTRIBUTING.md", *(source / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
