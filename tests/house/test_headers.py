"""Each public header compiles alone, as C and as C++, without a warning."""
import pytest
from house import PUBLIC_HEADERS, SOURCE, run

COMPILERS = [("gcc", "c", "c11"), ("clang", "c", "c11"), ("g++", "c++", "c++11"), ("g++", "c++", "c++17"),
             ("clang++", "c++", "c++11"), ("clang++", "c++", "c++17")]


@pytest.mark.parametrize("header", PUBLIC_HEADERS, ids=lambda p: p.name)
@pytest.mark.parametrize("compiler,language,standard", COMPILERS)
def test_compiles_alone(header, compiler, language, standard, tmp_path):
    file = tmp_path / f"alone.{'c' if language == 'c' else 'cc'}"
    file.write_text(f"#include <khub/{header.name}>\n#include <khub/{header.name}>\nint main() {{ return 0; }}\n"
                    .replace("main()", "main(void)" if language == "c" else "main()"))
    run(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Werror", "-fsyntax-only",
        "-I", SOURCE / "include", file)
