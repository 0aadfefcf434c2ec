"""What is staged is what an installation has: programs of other people build against it and run, wherever it stands."""
import os
import re
import shutil

import pytest
from house import SANITIZE, SOURCE, STAGE, run, sources

# Writes an array, reads it back, and asks both libraries for something.
PROGRAM = r"""
#include <khub/khub.h>
#include <khub/standard.h>
#include <stdio.h>

int main(void)
{
    khub_error err = {0};
    float data[] = {1, 2, 3};
    int64_t shape[] = {3};
    khub_tensor t = khub_tensor_f32(data, 1, shape);
    khub_array a;
    if (khub_npy_write("a.npy", &t, &err) != KHUB_OK || khub_npy_read(&a, "a.npy", &err) != KHUB_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("khub %s: %g\n", khub_version(), ((float *)a.tensor.data)[2]);
    khub_array_free(&a);
    khub_function f;
    printf("%s\n", khub_status_name(khub_standard(&f, "NoSuchLayer", NULL)));
    return 0;
}
"""
PRINTS = "khub 0.1.0: 3\nKHUB_E_NOTFOUND\n"

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(khub 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE khub::khub-model)
"""

# A program that loads sanitized libraries has the sanitizers' runtime itself.
COMPILER = ["clang", "-fsanitize=address,undefined"] if SANITIZE else ["gcc"]


@pytest.fixture(params=["staged", "moved"])
def prefix(request, tmp_path):
    if request.param == "staged":
        return STAGE
    return shutil.copytree(STAGE, tmp_path / "somewhere else", symlinks=True)


def test_pkg_config(prefix, tmp_path):
    (tmp_path / "user.c").write_text(PROGRAM)
    env = os.environ | {"PKG_CONFIG_LIBDIR": str(prefix / "lib/pkgconfig")}  # nobody else's package is needed
    flags = run("sh", "-c", f"eval printf '%s\\\\n' \"$(pkg-config --cflags --libs khub-model)\"", env=env).splitlines()
    run(*COMPILER, "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "user", tmp_path / "user.c", *flags)
    assert run(tmp_path / "user", cwd=tmp_path, env=os.environ | {"LD_LIBRARY_PATH": str(prefix / "lib")}) == PRINTS


def test_cmake_package(prefix, tmp_path):
    (tmp_path / "user.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={COMPILER[0]}", f"-DCMAKE_C_FLAGS={' '.join(COMPILER[1:])}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/user", cwd=tmp_path) == PRINTS


def test_what_messages_and_pages_name_is_there():
    documents = STAGE / "share/doc/khub"
    named = {name for path in sources("src", "include") for name in re.findall(r"docs/\w+\.md", (SOURCE / path).read_text())}
    assert len(named) >= 3
    for name in named | {"README.md", "LICENSE"}:
        assert (documents / name).read_text() == (SOURCE / name).read_text()
    for page in documents.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_only_what_belongs_there():
    tops = {p.name for p in STAGE.iterdir()}
    assert tops <= {"bin", "lib", "libexec", "include", "share"}
    assert {p.name for p in (STAGE / "include").iterdir()} == {"khub"}
    for path in STAGE.rglob("*"):
        assert path.exists(), f"{path} points nowhere"
        assert path.suffix not in (".a", ".o", ".py~"), path
