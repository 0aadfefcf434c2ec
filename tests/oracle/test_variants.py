"""Choosing a build gives the answer of the Python package `kernels`, but where docs/variants.md says otherwise."""

import itertools
import json
import os
import pathlib
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from kept import kept
from kernels import Metadata
from kernels.archs import _cuda_arch_supports, _supports_cuda_capability
from kernels.backends import CANN, CPU, CUDA, TPU, XPU, Metal, Neuron, ROCm
from kernels.variants import NoarchVariant, VariantAccepted, _resolve_variant_for_system, parse_variant
from packaging.version import Version

CASES = 2500
EACH = 100  # repositories for each machine of platforms/
MACHINES = sorted((Path(os.environ["KHUB_SOURCE"]) / "platforms").glob("*.json"))
JUDGE = os.path.join(os.environ["KHUB_BINARY"], "tests", "oracle_judge")


def judge(questions):
    """khub's answers, all from one process."""
    text = "".join(json.dumps(q) + "\n" for q in questions)
    done = subprocess.run([JUDGE], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


# ---- names and platforms ----

TORCH = ["2.9", "2.10", "2.11", "3.0"]
TVM_FFI = ["0.1", "0.2", "0.10", "1.0"]
BACKENDS = {
    "linux": ["cpu", "cu118", "cu126", "cu128", "cu130", "cu131", "rocm64", "rocm70", "rocm71", "xpu20252", "xpu20253",
              "cann82", "cann85", "neuron", "tpu"],
    "windows": ["cpu", "cu126", "cu128", "cu130", "xpu20253"],
    "darwin": ["cpu", "metal"],
}
NAMED = ["cpu", "cu118", "cu124", "cu126", "cu128", "cu129", "cu130", "cu131", "rocm64", "rocm70", "rocm71", "xpu20252",
         "xpu20253", "cann82", "cann85", "neuron", "tpu", "metal"]
ARCHS = ["x86_64", "aarch64"]
NOARCH = ["cpu", "cuda", "metal", "rocm", "xpu", "npu", "tpu", "neuron", "universal", "cann", "later"]

# Names that neither understands, and names that only the peer does (the deliberate difference 3).
JUNK = [
    "future-abi3-cu140-x86_64-linux", "torch-stable-abi99x-cu130-x86_64-linux", "torch-stable-abi2-cpu-x86_64-linux",
    "torch29-x86_64-linux", "torch29-cu1-x86_64-linux", "torch29-cuda-x86_64-linux", "tvm-ffi1-cpu-x86_64-linux",
    "torch29-cxx03-cpu-x86_64-linux", "torch-stable-abi29-cxx11-cpu-x86_64-linux", "README.md", ".git", "torch2",
    "torch29-cpu-x86_64-linux-debug", "Torch29-cpu-x86_64-linux", "tvm-ffi01-cxx11-cpu-x86_64-linux", "torch29-npu-x86_64-linux",
    "torch", "torch-", "torch-two-words", "torch-future-abi3-cu140-x86_64-linux", "torch29-cpu--linux",
    "torch29-cpu-x86 64-linux", "torch29-cpu-x86_64-linux\n", "torch-caf\u00e9", "torch29-cu1234567-x86_64-linux",
]

# docs/variants.md: the grammar of this khub.
WORD = r"[A-Za-z0-9_.]+"
GRAMMAR = re.compile(
    r"torch-" + WORD + r"|(torch-stable-abi\d{2,6}|torch\d{2,6}(-cxx11|-cxx98)?|tvm-ffi\d{2,6})"
    r"-(cpu|metal|neuron|tpu|(cu|rocm|xpu|cann)\d{2,6})-" + WORD + "-" + WORD, re.ASCII)

PEER_BACKENDS = {"cpu": CPU, "metal": Metal, "neuron": Neuron, "tpu": TPU}
PEER_VERSIONED = {"cu": CUDA, "rocm": ROCm, "xpu": XPU, "cann": CANN}


def peer_backend(text):
    if text in PEER_BACKENDS:
        return PEER_BACKENDS[text]()
    prefix, digits = re.fullmatch(r"([a-z]+)(\d+)", text).groups()
    return PEER_VERSIONED[prefix](Version(f"{digits[:-1]}.{digits[-1]}"))


def make_platform(rng):
    os_name = rng.choice(["linux", "linux", "linux", "windows", "darwin"])
    platform = {"os": os_name, "arch": rng.choice(ARCHS), "backend": rng.choice(BACKENDS[os_name])}
    if rng.random() < 0.8:
        platform["torch"] = rng.choice(TORCH)
        platform["torch_cxx11_abi"] = rng.choice([True, True, False, None])
    if rng.random() < 0.8:
        platform["tvm_ffi"] = rng.choice(TVM_FFI)
    if os_name == "darwin" and rng.random() < 0.9:
        platform["macos"] = rng.choice(["13.6", "15.7", "26.0", "26.1", "27.0"])
    return platform


def near(rng, own, others):
    """Mostly the machine's own value: names drawn blindly would hardly ever fit."""
    return own if own is not None and rng.random() < 0.85 else rng.choice(others)


def make_name(rng, platform):
    kind = rng.random()
    if kind < 0.12:
        own = re.match(r"[a-z]+", platform["backend"]).group().replace("cu", "cuda")
        return "torch-" + rng.choice([own, "universal", rng.choice(NOARCH)])
    if kind < 0.22:
        return rng.choice(JUNK)
    digits = lambda version: version.replace(".", "")
    framework = rng.choice([
        "torch" + digits(near(rng, platform.get("torch"), TORCH)) + rng.choice(["", "", "-cxx11", "-cxx98"]),
        "torch-stable-abi" + digits(near(rng, platform.get("torch"), TORCH)),
        "torch-stable-abi" + digits(rng.choice(TORCH)),
        "tvm-ffi" + digits(near(rng, platform.get("tvm_ffi"), TVM_FFI)),
    ])
    backend = platform["backend"]
    if re.fullmatch(r"cu\d+", backend) and rng.random() < 0.5:
        backend = backend[:-1] + str(rng.randint(0, 9))  # another minor of the same major
    backend = near(rng, backend, NAMED)
    if rng.random() < 0.03:
        backend = re.sub(r"(?<=[a-z])(?=\d)", "0", backend)  # a leading zero: the same version, another name
    arch = near(rng, platform["arch"], ARCHS + ["arm64", "riscv64"])
    return f"{framework}-{backend}-{arch}-{near(rng, platform['os'], ['linux', 'windows', 'darwin', 'freebsd'])}"


# ---- what the peer says ----

parsed = {}


def peer_parse(name):
    """One object a name, so that a decision can be traced back to its name: the peer writes some names anew."""
    if name not in parsed:
        try:
            parsed[name] = parse_variant(name)
        except ValueError:
            parsed[name] = None
    return parsed[name]


def version_of(platform, key):
    return Version(platform[key]) if platform.get(key) else None


def peer_resolve(platform, names):
    return _resolve_variant_for_system(
        variants=[peer_parse(n) for n in names], selected_backend=peer_backend(platform["backend"]),
        cpu=platform["arch"], os=platform["os"], torch_version=version_of(platform, "torch"),
        torch_cxx11_abi=platform.get("torch_cxx11_abi"), tvm_ffi_version=version_of(platform, "tvm_ffi"),
        macos_version=version_of(platform, "macos"))


# The rule that a reason is about, in the peer's words and in khub's.
PEER_RULES = {"CPU": r"CPU \(", "OS": r"OS \(", "framework": r"Torch version|Torch stable ABI|tvm-ffi version", "ABI": r"Torch CXX11",
              "backend": r"backend \(|CUDA version", "macOS": r"Metal kernels"}
RULES = {"CPU": r"built for CPU ", "OS": r"built for OS ", "framework": r"needs (Torch|tvm-ffi) ", "ABI": r"needs a Torch with",
         "backend": r"built for (backend|cuda|rocm|xpu|cann) ", "macOS": r"needs macOS "}


def rule_of(reason, rules):
    (rule,) = [rule for rule, words in rules.items() if re.match(words, reason)]
    return rule


def expected(platform, names):
    """(name, decision, rule that rejects) in khub's order, from the peer's trace and the differences that
    docs/variants.md states."""
    names = sorted(names)  # 1. the peer takes them from a set, whose order it leaves open; khub breaks ties by name
    understood = [n for n in names if GRAMMAR.fullmatch(n)]
    for name in understood:
        assert peer_parse(name) is not None, f"only khub understands {name!r}"
    _, trace = peer_resolve(platform, understood)
    name_of = {id(peer_parse(n)): n for n in understood}
    groups = {(accepted, noarch): [] for accepted in (True, False) for noarch in (False, True)}
    for decision in trace:
        accepted, noarch = isinstance(decision, VariantAccepted), isinstance(decision.variant, NoarchVariant)
        # 2. Python builds that fit aren't accepted but "needs python", and Python builds stand behind all others
        kind = ("needs python" if noarch else "accepted") if accepted else "rejected"
        rule = None if accepted else rule_of(decision.reason, PEER_RULES)
        groups[accepted, noarch].append((name_of[id(decision.variant)], kind, rule))
    # 3. names that the peer skips are listed, and so are a few that only the peer reads
    strange = [(n, "not understood", None) for n in names if not GRAMMAR.fullmatch(n)]
    return groups[True, False] + groups[True, True] + groups[False, False] + groups[False, True] + strange


def all_expected(questions):
    """expected() of each; the peer takes long."""
    parts = [pathlib.Path(__file__), json.dumps(questions).encode()]
    kept_ones = kept(parts, lambda: json.dumps([expected(q["platform"], q["names"]) for q in questions]).encode())
    return [[tuple(decision) for decision in each] for each in json.loads(kept_ones)]


def found(answer):
    return [(d["name"], d["decision"], rule_of(d["reason"], RULES) if d["decision"] == "rejected" else None) for d in answer]


def test_decisions_choice_and_order():
    rng = random.Random(20250301)
    questions = []
    for _ in range(CASES):
        platform = make_platform(rng)
        names = sorted({make_name(rng, platform) for _ in range(rng.randint(1, 24))})  # as many as a set has, in the same order every time
        rng.shuffle(names)
        questions.append({"platform": platform, "names": names})
    seen, chosen = Counter(), 0
    for question, answer, want in zip(questions, judge(questions), all_expected(questions), strict=True):
        assert found(answer) == want, question
        assert all((d["reason"] is None) == (d["decision"] == "accepted") for d in answer)
        seen.update(decision if rule is None else rule for _, decision, rule in want)
        chosen += want[0][1] == "accepted"
    # the sample says something: every decision and every rule often, builds to choose among, and none
    assert min(seen[k] for k in ("accepted", "needs python", "not understood")) > CASES / 2, seen
    assert min(seen[k] for k in RULES) > CASES / 25, seen
    assert CASES / 3 < chosen < CASES * 0.95, chosen


def test_every_pair_of_builds_in_order():
    """All accepted kinds against each other: an order that depends on what else is in the list would show here."""
    platform = {"os": "linux", "arch": "x86_64", "backend": "cu128", "torch": "2.10", "torch_cxx11_abi": True,
                "tvm_ffi": "0.1"}
    frameworks = ["torch210", "torch210-cxx11", "torch-stable-abi29", "torch-stable-abi210", "tvm-ffi01"]
    names = [f"{f}-{b}-x86_64-linux" for f in frameworks for b in ("cu120", "cu126", "cu128")]
    names += ["torch-cuda", "torch-universal"]
    questions = [{"platform": platform, "names": list(pair)} for pair in itertools.permutations(names, 2)]
    for question, answer in zip(questions, judge(questions)):
        assert found(answer) == expected(platform, question["names"])


# ---- the machines that come with khub ----

# docs/variants.md: where khub's choice differs from the package's, by the number of the rule there. (6 isn't about choosing: what
# the machine is, is given here.)
DIFFERENCES = {
    "1": "of builds of equal rank",
    "2": "Python builds that fit",
    "3": "names that it skips, or in which it finds empty or strange words",
    "4": "a version that is written in an unusual way",
    "5": "GPU architectures",
    "5, nothing readable": "a list that holds nothing readable",
}


def make_archs(rng, platform):
    """What a build's metadata.json says that it was compiled for: mostly for this machine too, or nothing that anybody can read."""
    own = platform["archs"][0]
    if rng.random() < 0.06:
        return ["sm_later"]
    if not own.startswith("gfx"):
        listed = rng.sample(["7.5", "8.0", "8.6", "8.9", "9.0a", "10.0f", "12.0", "9.0+PTX"], 3)
        return listed + [own] if rng.random() < 0.6 else listed
    base = own.partition(":")[0]
    listed = rng.sample(["gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"], 3)
    return listed + [base] if rng.random() < 0.6 else listed


def peer_runs(platform, archs):
    """Its check when the build is loaded."""
    device = platform["archs"][0]
    if device.startswith("gfx"):
        return device.partition(":")[0] in archs
    return _supports_cuda_capability(archs, tuple(int(part) for part in device.split(".")))


def difference(platform, archs, theirs, ours):
    """The rule of docs/variants.md by which these two choices differ; None: they are the same, and in the same directory."""
    if theirs == ours:
        return "4" if theirs and peer_parse(theirs).variant_str != theirs else None
    if not GRAMMAR.fullmatch(theirs):
        return "3"
    if isinstance(peer_parse(theirs), NoarchVariant):
        return "2"
    if theirs in archs and not peer_runs(platform, archs[theirs]):
        return "5"
    if archs.get(theirs) == ["sm_later"]:
        return "5, nothing readable"
    assert peer_parse(theirs).variant_str == peer_parse(ours).variant_str, (theirs, ours)  # of one rank
    return "1"


def our_choice(platform, names, archs):
    """The first that fits by its name and holds code for the GPU, by the peer's words."""
    for name, decision, _ in expected(platform, names):
        if decision == "accepted" and (name not in archs or (archs[name] != ["sm_later"] and peer_runs(platform, archs[name]))):
            return name
    return None


def make_repository(rng, platform):
    """Builds and what those for a GPU say they were compiled for. Some have a version written in two ways."""
    names = [make_name(rng, platform) for _ in range(rng.randint(1, 10))]
    names += [re.sub(r"-(cu|rocm|xpu|cann)(?=[1-9])", r"-\g<1>" + rng.choice(["0", "0000"]), name) for name in names if rng.random() < 0.1]
    names = list(dict.fromkeys(names))
    rng.shuffle(names)
    gpu = [n for n in names if GRAMMAR.fullmatch(n) and re.search(r"-(cu|rocm)\d", n)]
    return names, {name: make_archs(rng, platform) for name in gpu} if platform.get("archs") else {}


def test_choice_on_every_machine():
    rng = random.Random(20250302)
    questions = []
    for machine in MACHINES:
        platform = json.loads(machine.read_text())
        for _ in range(EACH):
            names, archs = make_repository(rng, platform)
            questions.append({"platform": platform, "names": names, "archs": archs})
    assert len(questions) >= 5000
    seen, chosen = Counter(), {machine.stem: 0 for machine in MACHINES}
    for i, (question, answer) in enumerate(zip(questions, judge(questions))):
        platform, names, archs = question["platform"], question["names"], question["archs"]
        ours = next((d["name"] for d in answer if d["decision"] == "accepted"), None)
        assert ours == our_choice(platform, names, archs), question
        fits, _ = peer_resolve(platform, [n for n in names if peer_parse(n)])
        theirs = next((n for n in names if fits and peer_parse(n) is fits[0]), None)
        seen[difference(platform, archs, theirs, ours)] += 1
        chosen[MACHINES[i // EACH].stem] += ours is not None
    assert set(seen) == {None, *DIFFERENCES}, seen  # each happens, and nothing else
    assert seen[None] > len(questions) / 2, seen
    # Metal kernels need macOS 26: nothing fits there
    assert [machine for machine, count in chosen.items() if count < EACH / 20] == ["m1-macos-15"], chosen


def test_differences_are_listed():
    text = (Path(os.environ["KHUB_SOURCE"]) / "docs" / "variants.md").read_text()
    for rule, words in DIFFERENCES.items():
        assert re.search(rf"^\| {rule[0]} \|.*{re.escape(words)}", text, re.MULTILINE), rule


# ---- architectures ----


def test_cuda_architectures():
    """One entry on one device. What the peer makes of a list in which it can read nothing differs on purpose."""
    capabilities = [f"{major}.{minor}" for major in (7, 8, 9, 10, 12) for minor in (0, 3, 5, 9)]
    entries = [c + suffix + ptx for c in capabilities for suffix in ("", "a", "f") for ptx in ("", "+PTX")]
    entries += ["", "9", "9.", ".0", "sm_90", "9.0b", "9.0+ptx", "9.0af", "9.0+PTX+PTX", "+PTX", "a", "9.0 ", "9.0.0", "-9.0"]
    pairs = list(itertools.product(entries, capabilities))
    words = {None: "unreadable", True: "fits", False: "other"}
    answers = judge([{"cuda": entry, "device": device} for entry, device in pairs])
    for (entry, device), answer in zip(pairs, answers):
        want = _cuda_arch_supports(entry, tuple(int(part) for part in device.split(".")))
        assert answer == words[want], (entry, device)


# ---- metadata.json ----

METADATA = {"name": "relu", "id": "_relu_cpu_1", "version": 1, "license": "MIT", "backend": {"type": "cpu"},
            "python-depends": []}
VALUES = [None, True, 0, 1, -1, 1.0, 2**64, "", "x", "1", [], ["a"], [1], [None], {}, {"type": "cuda"}, {"type": "CUDA"},
          {"type": "cuda", "archs": ["9.0", "zz"]}, {"type": "cuda", "archs": None}, {"type": "cuda", "archs": "9.0"},
          {"type": "cuda", "archs": [9.0]}, {"type": "npu"}, {"type": None}, {"type": "cpu", "later": 1}]
NEEDS = [[{"repo-id": "org/x", "version": 1}], [{"repo-id": "org/x", "version": 0}, {"repo-id": "org/y", "revision": "main"}],
         [{"repo-id": "org/x"}], [{"version": 1}], [{"repo-id": "org/x", "version": 1, "revision": "m"}], ["org/x"], [{}],
         [{"repo-id": "org/x", "version": "1"}], [{"repo-id": "org/x", "version": -1}], [{"repo-id": 1, "version": 1}],
         [{"repo-id": "org/x", "version": 1, "later": 1}], [[]], "x", {}]
NAMES = ["a", "ab", "Ab", "a-", "a_b", "-a", "a9", "9a", "a--b", "a b", "flash-attn3", "a\n", "\u00e4b"]


def metadata_texts():
    for key in METADATA:
        yield json.dumps({k: v for k, v in METADATA.items() if k != key})
        for value in VALUES:
            yield json.dumps({**METADATA, key: value})
    for name in NAMES:
        yield json.dumps({**METADATA, "name": name})
    for needs in NEEDS:
        yield json.dumps({**METADATA, "kernel-depends": needs})
    for key in ("license", "upstream", "source", "later"):
        for value in ("https://example.org/x", 1, [], None):
            yield json.dumps({**METADATA, key: value})
    whole = json.dumps(METADATA)
    yield from ("", " ", "{", "[]", "null", "7", whole + " ", whole + "x", whole[:-1] + ', "version": 2}', whole[:-1] + ",}")


def peer_accepts(text):
    try:
        Metadata.from_bytes(text.encode())
        return True
    except ValueError:
        return False


def test_metadata_accepted_and_refused():
    """The id becomes a file's name, so khub refuses the empty one; else both accept the same files."""
    texts = [t for t in metadata_texts() if '"id": ""' not in t]
    results = Counter()
    for text, message in zip(texts, judge([{"metadata": t} for t in texts])):
        assert (message is None) == peer_accepts(text), (text, message)
        results[message is None] += 1
    assert min(results.values()) > 20, results


@pytest.mark.parametrize("missing", [c for n in range(1, 4) for c in itertools.combinations(METADATA, n)])
def test_metadata_names_all_that_is_missing(missing):
    text = json.dumps({k: v for k, v in METADATA.items() if k not in missing})
    assert not peer_accepts(text)
    (message,) = judge([{"metadata": text}])
    assert re.search(r"required and missing: ([a-z-]+(, [a-z-]+)*)", message).group(1).split(", ") == list(missing)
