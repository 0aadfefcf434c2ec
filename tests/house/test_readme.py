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
