"""What all commands have in common: exit statuses, options before the command, where words and results go."""

import json
import re

import pytest

import tiny_model
from fakes import REPOS, copy, khub

# A command line for each command that chooses a build or describes the machine.
CHOOSING = {
    "platform": ["platform"],
    "variants": ["variants", REPOS / "good"],
    "functions": ["functions", REPOS / "good"],
    "call": ["call", f"{REPOS / 'good'}:nothing"],
}
each_choosing = pytest.mark.parametrize("words", CHOOSING.values(), ids=CHOOSING)


def commands():
    listed = khub("--help").stdout.split("commands:")[1].split("\n\n")[0]
    return re.findall(r"^    (\w+) ", listed, flags=re.M)


def refuses(run, status, *words):
    """`status`, with the words on stderr and nothing on stdout."""
    assert (run.returncode, run.stdout) == (status, ""), run.stderr
    assert run.stderr.startswith("khub")
    assert all(word in run.stderr for word in words), run.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model.write_model(tmp_path_factory.mktemp("command") / "m")


@each_choosing
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_backend_that_is_not_there_is_wrong_usage(words, json_too):
    refuses(khub(*words, *json_too, "--backend", "nonsense"), 2, "backend nonsense", "cpu")


@each_choosing
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_platform_file_that_is_not_there_is_a_failure(words, json_too):
    refuses(khub(*words, *json_too, "--platform", "no-such.json"), 1, "no-such.json")


@pytest.mark.parametrize("words", [CHOOSING["functions"], CHOOSING["call"]], ids=["functions", "call"])
def test_no_build_fits(words, tmp_path):
    (tmp_path / "mac.json").write_text(json.dumps({"os": "darwin", "arch": "aarch64", "backend": "cpu", "tvm_ffi": "0.1"}))
    refuses(khub(*words, "--platform", tmp_path / "mac.json"), 3, "no build")


def test_no_build_fits_is_a_result_of_variants(tmp_path):
    (tmp_path / "mac.json").write_text(json.dumps({"os": "darwin", "arch": "aarch64", "backend": "cpu", "tvm_ffi": "0.1"}))
    run = khub(*CHOOSING["variants"], "--json", "--platform", tmp_path / "mac.json")
    assert run.returncode == 3 and json.loads(run.stdout)["chosen"] is None


def test_every_command_takes_the_common_options_and_no_others():
    assert {"call", "embed", "functions", "platform", "tokenize", "variants"} <= set(commands())
    for name in commands():
        shown = khub(name, "--help")
        assert (shown.returncode, shown.stderr) == (0, "") and shown.stdout.startswith(f"khub {name}")
        assert "--json" in shown.stdout or name == "serve"  # which reports nothing
        refuses(khub(name, "--no-such-option"), 2, "--no-such-option", f"khub {name} --help")


def test_no_command_is_wrong_usage():
    for arguments in [], ["-q"], ["-v", "-q"]:
        run = khub(*arguments)
        assert (run.returncode, run.stdout) == (2, "") and "commands:" in run.stderr


def test_help_is_a_result():
    for arguments in ["--help"], ["-h"], ["help"], ["-q", "--help"]:
        run = khub(*arguments)
        assert (run.returncode, run.stderr) == (0, "") and "commands:" in run.stdout
    assert "exit status: 0 done; 1 failed; 2 wrong usage" in run.stdout
    assert khub("help", "embed").stdout == khub("embed", "--help").stdout
    refuses(khub("help", "nosuch"), 2, 'there is no command "nosuch"')


def test_options_before_the_command(model):
    words = ["tokenize", "--model", model, "-n", "3", "a text that is cut"]
    said = khub(*words)
    assert said.returncode == 0 and "cut" in said.stderr
    for arguments in ["-q", *words], [*words, "-q"], ["-v", "-q", *words]:
        quiet = khub(*arguments)
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, said.stdout, "")
    loaded = khub("-v", "functions", REPOS / "good")
    assert loaded.returncode == 0 and loaded.stderr == khub("functions", REPOS / "good", "-v").stderr != ""
    assert khub("-q", "--version").stdout == khub("--version").stdout != ""


def test_other_words_before_the_command():
    refuses(khub("--json", "platform"), 2, 'no option "--json" before the command')
    refuses(khub("-q", "nonsense"), 2, 'no command "nonsense"')


@pytest.mark.parametrize("words", [["cache", "prune", "--cache-dir", ""], ["cache", "ls", "--cache-dir="], ["get", "org/x@v1", "--trust", ""], ["tokenize", "-n", "", "x"]])
def test_an_option_whose_value_is_empty(words):
    """--cache-dir "$UNSET" isn't the usual cache."""
    refuses(khub(*words), 2, f"{next(w for w in words if w.startswith('-')).rstrip('=')} needs a value")


@pytest.mark.parametrize("words, meant", [
    (["downlaod"], "download"), (["help", "donwload"], "download"), (["platfrom", "--help"], "platform"), (["cal"], "call"),
    (["get", "org/x@v1", "--ofline"], "--offline"), (["get", "org/x@v1", "--trsut=org"], "--trust")])
def test_a_mistyped_word(words, meant):
    run = khub(*words)
    assert (run.returncode, run.stdout) == (2, "") and f"did you mean {meant}?" in run.stderr


@pytest.mark.parametrize("words", [["nonsense"], ["-z"], ["x" * 100], ["get", "--zzz"], ["get", "-z"], ["get", "--" + "o" * 100]])
def test_no_word_is_near(words):
    run = khub(*words)
    assert (run.returncode, run.stdout) == (2, "") and "did you mean" not in run.stderr


def test_tokenize_takes_json(model):
    words = ["tokenize", "--model", model, "hello", "and again"]
    run = khub(*words, "--json")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", khub(*words).stdout)
    assert [type(json.loads(line)) for line in run.stdout.splitlines()] == [list, list]


def test_errors_under_json_are_words_on_stderr(tmp_path, model):
    spoiled = copy("good", tmp_path / "good")
    (spoiled / "metadata.json").write_text("{")
    refuses(khub("functions", tmp_path / "good", "--json"), 1, "metadata.json")
    refuses(khub("call", f"{REPOS / 'good'}:no_such", "--json"), 1, "no_such")
    refuses(khub("variants", tmp_path / "nothing", "--json"), 1, "nothing")
    refuses(khub("embed", "--model", tmp_path, "--json", "hello"), 1, str(tmp_path))
    refuses(khub("tokenize", "--model", tmp_path, "--json", "hello"), 1, str(tmp_path))
    refuses(khub("tokenize", "--model", model, "--json", "-n", "1", "hello"), 2, "max_tokens is 1")
