"""Digests as the Python package `kernels` makes and checks them: over random builds, and over digests that are wrong in every way."""
import base64
import json
import os
import random
import subprocess

from kernels._rust import Digest, DigestAlgorithm, DigestValidationError, DigestViolation, Metadata

DRIVER = os.path.join(os.environ["KHUB_BINARY"], "tests", "oracle_digest")
ALGORITHMS = {"sha256": DigestAlgorithm.SHA256, "sha512": DigestAlgorithm.SHA512}
BUILDS = 40

PARTS = ["a.so", "a", "a.pyc", ".pyc", ".hidden", "__pycache__", "x.pyc", "metadata.json", "metadata.json.sigstore", "layers", "Ünï", 'quo"te',
         "a b", "new\nline", "__pycache__x", "A.PYC", "__init__.py", "layers.json", "\x7f", "😀"]


def draw_build(rng, root):
    """Files and links to files with names that rules could stumble over; a name may be a file here and a directory there."""
    for _ in range(rng.randint(1, 14)):
        path = root.joinpath(*rng.choices(PARTS, k=rng.choice([1, 1, 1, 2, 2, 3])))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if rng.random() < 0.2:
                (root / "target").write_bytes(b"linked")
                path.symlink_to(os.path.relpath(root / "target", path.parent))
            else:
                path.write_bytes(rng.randbytes(rng.choice([0, 1, 63, 64, 65, 5000])))
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            pass
    if rng.random() < 0.1:
        (root / "large").write_bytes(rng.randbytes((1 << 18) * 2 + 1))  # several pieces


def changed(rng, files):
    """The files of a digest with up to three mistakes."""
    files = dict(files)
    for _ in range(rng.randint(0, 3)):
        some = rng.choice([*files, "new"])
        kind = rng.randrange(5)
        if kind == 0:
            files.pop(some, None)
        elif kind == 1:
            files[rng.choice(["added", "metadata.json", "a.pyc", "../x", "", "a//b", "./a.so"])] = files.get(some, "")
        elif kind == 2:
            files[some] = base64.b64encode(rng.randbytes(32)).decode()
        elif kind == 3:
            files[some] = files.get(some, "AAAA=").rstrip("=")
        elif kind == 4:
            files[some] = rng.choice(["", "%%%", files.get(some, "") + "\n", files.get(some, "").lower()])
    return files


def peer_of(digest):
    metadata = {"name": "relu", "id": "_relu_1", "version": 1, "license": "MIT", "backend": {"type": "cpu"}, "python-depends": [], "digest": digest}
    return Metadata.from_bytes(json.dumps(metadata).encode()).digest


KINDS = {DigestViolation.MissingFile: "missing", DigestViolation.HashMismatch: "changed", DigestViolation.UnknownFile: "unknown"}


def violations_of_peer(digest, build):
    expected = peer_of(digest)
    try:
        expected.validate(Digest.hash_variant(expected.algorithm, build))
    except DigestValidationError as error:
        kinds = [(next(word for kind, word in KINDS.items() if isinstance(v, kind)), v) for v in error.violations]
        return sorted([word, v.path, getattr(v, "expected", None), getattr(v, "got", None)] for word, v in kinds)
    return []


def ask(questions):
    text = "".join(json.dumps(q) + "\n" for q in questions)
    reply = subprocess.run([DRIVER], input=text, check=True, capture_output=True, text=True, timeout=100)
    answers = [json.loads(line) for line in reply.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


def test_makes_the_same(tmp_path):
    rng = random.Random(1)
    questions, expected = [], []
    for i in range(BUILDS):
        build = tmp_path / str(i)
        draw_build(rng, build)
        for name, algorithm in ALGORITHMS.items():
            questions.append({"build": str(build), "algorithm": name})
            expected.append({"algorithm": name, "files": Digest.hash_variant(algorithm, build).files})
    answers = ask(questions)
    assert answers == expected
    assert all(list(a["files"]) == sorted(a["files"], key=os.fsencode) for a in answers)
    assert sum(len(a["files"]) for a in answers) > 3 * BUILDS


def test_finds_the_same_violations(tmp_path):
    rng = random.Random(2)
    questions, expected = [], []
    for i in range(BUILDS):
        build = tmp_path / str(i)
        draw_build(rng, build)
        for name, algorithm in ALGORITHMS.items():
            for _ in range(5):
                digest = {"algorithm": name, "files": changed(rng, Digest.hash_variant(algorithm, build).files)}
                questions.append({"build": str(build), "digest": digest})
                expected.append(violations_of_peer(digest, build))
    answers = [sorted(a) for a in ask(questions)]
    assert answers == expected
    for kind in "missing", "changed", "unknown":
        assert sum(a[0] == kind for answer in answers for a in answer) > 20
    assert [] in answers


def test_what_the_peer_does_not_see(tmp_path):
    """Where the two differ: the peer passes over a link to a directory, takes a link out of the build for its content, and
    reads a backslash as the end of a directory's name."""
    build = tmp_path / "build"
    (build / "real").mkdir(parents=True)
    (tmp_path / "outside.so").write_bytes(b"abc")
    (build / "real/x").write_bytes(b"abc")
    digest = {"algorithm": "sha256", "files": dict(Digest.hash_variant(DigestAlgorithm.SHA256, build).files)}
    (build / "directory").symlink_to("real")
    (build / "link.so").symlink_to("../outside.so")
    digest["files"]["link.so"] = digest["files"]["real/x"]
    (build / "real\\x").write_bytes(b"abc")
    assert violations_of_peer(digest, build) == []
    wrong = [["file", "directory", None, None], ["file", "link.so", None, None], ["unknown", "real\\x", None, None]]
    assert ask([{"build": str(build), "digest": digest}]) == [wrong]
