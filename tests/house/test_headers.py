"""Each public header compiles alone, as C and as C++, without a warning."""
import pytest
from house import PUBLIC_HEADERS, SOURCE, run

COMPILERS = [("gcc", "c", "c11"), ("clang", "c", "c11"), ("g++", "c++", "c++11"), ("clang++", "c++", "c++17")]


@pytest.mark.parametrize("compiler,language,standard", COMPILERS)
def test_compiles_alone(compiler, language, standard, tmp_path):
    files = [tmp_path / f"{header.stem}.{'c' if language == 'c' else 'cc'}" for header in PUBLIC_HEADERS]
    for file in files:
        file.write_text(f"#include <khub/{file.stem}.h>\n#include <khub/{file.stem}.h>\n")
    run(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Werror", "-fsyntax-only",
        "-I", SOURCE / "include", *files)
