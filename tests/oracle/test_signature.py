"""Signatures of a small authority of our own (authority.py): sigstore's Python package, with the identities of the package `kernels`,
and khub judge the same bundles, and those with one thing changed (changes.py). khub accepts none that Python refuses; where it refuses
what Python accepts, docs/trust.md says why."""
import json
import logging
import os
import pathlib
import re
import subprocess
import tempfile

import pytest
import sigstore
from authority import COMMIT, FULCIO, REPOSITORY, START, Authority, fixtures, utf8
from changes import all_changes, edit, put, root_changes
from kept import kept
from kernels.verify import DEFAULT_POLICIES
from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier, policy

HERE = pathlib.Path(__file__)
SOURCE = pathlib.Path(os.environ["KHUB_SOURCE"])
STAGE = pathlib.Path(os.environ["KHUB_STAGE"])
HELPER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "oracle_signature"
DATA = b'{"name": "relu"}'
POLICY = policy.AnyOf(DEFAULT_POLICIES)
KINDS = "0.1", "0.3", "new"
authority = Authority()
logging.getLogger("sigstore").setLevel(logging.CRITICAL)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as made:
        folder = pathlib.Path(made)
        (folder / "root.json").write_text(json.dumps(authority.trusted_root()))
        (folder / "data").write_bytes(DATA)
        yield folder


def by_khub(folder, jobs):
    """[(trusted root, bundle)] as names in the folder -> [(reason, words)]"""
    lines = "".join("\t".join([f"{folder}/{root}", f"{folder}/{bundle}", f"{folder}/data", *"----"]) + "\n" for root, bundle in jobs)
    done = subprocess.run([HELPER], input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [tuple(line.split("\t", 1)) for line in done.stdout.splitlines()]


def by_python(verifier, text):
    """None, or why it is refused: with whatever exception."""
    try:
        verifier().verify_artifact(DATA, Bundle.from_json(text), POLICY)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


def all_by_python(questions, made_from):
    """[(verifier, text)] -> by_python's words of each; `made_from`: the trusted roots."""
    questions = list(questions)
    parts = [HERE, json.dumps([made_from, [text for _, text in questions]]).encode()]
    return json.loads(kept(parts, lambda: json.dumps([by_python(*each) for each in questions]).encode()))


def of_root(path):
    made = Verifier(trusted_root=TrustedRoot.from_file(str(path)))
    return lambda: made


@pytest.mark.parametrize("size", [256, 384])
def test_what_is_signed_is_accepted(folder, size):
    for kind in KINDS:
        (folder / kind).write_text(authority.sign(DATA, kind, size))
        assert by_python(of_root(folder / "root.json"), (folder / kind).read_text()) is None
    assert by_khub(folder, [("root.json", kind) for kind in KINDS]) == [
        ("holds", f"{START + 5} -1 1011 {REPOSITORY} {COMMIT}"), ("holds", f"{START + 5} -1 1011 {REPOSITORY} {COMMIT}"),
        ("holds", f"-1 {START + 6} 11 {REPOSITORY} {COMMIT}")]


def test_the_installed_root(folder):
    """It is the one of the package, as it is, and doesn't know our authority."""
    package = pathlib.Path(sigstore.__file__).parent / "_store" / "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev" / "trusted_root.json"
    assert (STAGE / "share" / "khub" / "trusted_root.json").read_bytes() == package.read_bytes()
    (folder / "new").write_text(authority.sign(DATA, "new"))
    line = "\t".join(["-", f"{folder}/new", f"{folder}/data", *"----"])
    done = subprocess.run([HELPER], input=line, capture_output=True, text=True, env=os.environ | {"KHUB_PREFIX": str(STAGE)}, check=True)
    assert done.stdout.startswith("unknown-authority\t")


def test_identities_are_those_of_kernels(folder):
    """Those that the package `kernels` accepts by default, khub does, and as many."""
    workflows = {uri for each in DEFAULT_POLICIES for uri in each.signer_uris}
    assert {each.repo_id for each in DEFAULT_POLICIES} == {REPOSITORY.removeprefix("https://github.com/")}
    for i, uri in enumerate(workflows):
        def by(extensions, uri=uri):
            return [(dotted, critical, utf8(uri) if dotted == FULCIO + "9" else value) for dotted, critical, value in extensions]

        (folder / f"by-{i}").write_text(authority.sign(DATA, "0.1", extensions=by))
    assert {reason for reason, _ in by_khub(folder, [("root.json", f"by-{i}") for i in range(len(workflows))])} == {"holds"}
    (folder / "nobody").write_text(authority.sign(DATA, "0.1", extensions=edit(FULCIO + "9", lambda v: utf8("x"))))
    ((_, words),) = by_khub(folder, [("root.json", "nobody")])
    assert f"none of the {len(workflows)} accepted identities" in words


def compare(cases, stricter):
    """`cases`: [(what, khub's (reason, words), Python's words or None, the reason that is expected or None)]."""
    looser, unexpected, wrong = [], [], []
    for what, (reason, words), refusal, expected in cases:
        if reason == "holds" and refusal is not None:
            looser.append(f"{what}: Python: {refusal}")
        if reason != "holds" and refusal is None and not any(re.search(pattern, what) for pattern in stricter.values()):
            unexpected.append(f"{what}: khub: {reason}: {words}")
        if expected is not None and reason != expected:
            wrong.append(f"{what}: {expected} was expected: {reason}: {words}")
    print(f"{len(cases)} cases, {sum(r == 'holds' for _, (r, _), _, _ in cases)} hold")
    assert not looser, "khub accepts what Python refuses:\n" + "\n".join(looser)
    assert not unexpected, "khub refuses what Python accepts:\n" + "\n".join(unexpected)
    assert not wrong, "\n".join(wrong)


# What khub refuses and Python accepts, by the words of docs/trust.md's table.
STRICTER = {
    "Numbers": r" (with a plus|with a space|with a zero before it|with _|in other digits)$|note: size (negative|2\^64)",
    "Base64": r" (a string|with a line break|with a space|with more padding|with a letter more)$|^new entry: \w+ with an A more$",
    "Keys twice": r"^0.1 (mediaType|signature|treeSize) twice$|entry: a field twice$",
    "Size": r"1 MiB and more$",
    "Size of the tree": r"treeSize one (more|less)$|proof: another size$|proof: size isn't the checkpoint's$",
    "Promise without a time": r"integratedTime (taken out|null|0)$",
    "Serial number": r"serial number (0|of 21 bytes)$",
    "Extensions": r"own key critical|policies$|points of revocation lists$",
    "Authority's key": r"authority's key (is another|with issuer and number)$",
    "Subject": r"subject is (a host|an IP address|no name|an empty name|two names|a name with NUL|a name in UTF-8|an unknown other name)$",
    "Facts": r"commit (empty|garbage|with a byte after it|isn't a text)$",
    "Points": r"key: (hybrid|compressed)$",
    "Signature of the certificate": r"certificate's signature has spare bits$",
    "Certificate logs": r"log timestamp: (of another log|before the log began|of an RSA key|of a DSA key)$",
    "Entry": r"entry: (kind taken out|apiVersion taken out|one more field|one more field inside|not canonical|a space after it)$",
    "Note": r"note: lines ended by CR LF$|checkpoint: (with two blank lines|with 64 witnesses|with a line that is no signature)$",
    "Names of logs": r"checkpoint: (signed in another name|signed by another log, in this one's name|with a witness of the same hint after it)$",
    "Timestamps": r"timestamp( beside the log's time)?: (version 2|serial number negative|half a second after the certificate|with a fraction of a nanosecond|with extensions|with a critical "
                  r"extension|(content_type|digest|certificate) (taken out|twice)|digest of two values|another content|another certificate's hash|algorithm is another|of version 9|with(out|"
                  r" two) signers|without attributes)$|signedTimestamp middle bit$",
}
STRICTER_ROOTS = {
    "Periods of logs": r"log not believed before$|log without a period$|certificate log not believed any more$",
    "Periods of authorities": r"authority not believed any more$",
    "Names of logs": r"log in another place$|log with another name$",
    "Chains": r"the other way round$",
}


def test_each_difference_is_explained():
    page = (SOURCE / "docs" / "trust.md").read_text()
    assert [title for title in {**STRICTER, **STRICTER_ROOTS} if f"| {title} |" not in page] == []


def test_one_thing_changed(folder):
    bundles = {kind: json.loads(authority.sign(DATA, kind)) for kind in KINDS}
    changes = list(all_changes(authority, bundles))

    def changed():
        return [json.dumps(steps["bundle"](bundles[kind])) if steps.keys() == {"bundle"} else authority.sign(DATA, kind, **steps)
                for _, kind, steps, _ in changes]

    # our authority has no clock and no chance: it signs the same bytes every time
    made_from = [HERE, HERE.with_name("authority.py"), HERE.with_name("changes.py")]
    texts = json.loads(kept(made_from, lambda: json.dumps(changed()).encode()))
    assert len(set(texts)) >= 500
    for i, text in enumerate(texts):
        (folder / f"changed-{i}").write_bytes(text.encode("utf-8", "surrogatepass"))
    verdicts = by_khub(folder, [("root.json", f"changed-{i}") for i in range(len(texts))])
    verifier = of_root(folder / "root.json")
    refusals = all_by_python(((verifier, text) for text in texts), authority.trusted_root())
    compare([(f"{kind} {what}", verdict, refusal, expected)
             for (what, kind, _, expected), refusal, verdict in zip(changes, refusals, verdicts, strict=True)], STRICTER)


def test_another_trusted_root(folder):
    texts, made, roots = {kind: authority.sign(DATA, kind) for kind in KINDS}, [], list(root_changes(authority))
    for kind in KINDS:
        (folder / kind).write_text(texts[kind])
    for i, (what, path, make, kind, reason) in enumerate(roots):
        root = authority.trusted_root()
        made.append(put(path, make)(root) if path else root)
        (folder / f"root-{i}").write_text(json.dumps(made[i]))
    kinds = [kind for _, _, _, kind, _ in roots]
    refusals = all_by_python([(lambda i=i: of_root(folder / f"root-{i}")(), texts[kind]) for i, kind in enumerate(kinds)], made)
    verdicts = by_khub(folder, [(f"root-{i}", kind) for i, kind in enumerate(kinds)])
    compare([(f"{kind} {what}", verdict, refusal, reason)
             for (what, _, _, kind, reason), refusal, verdict in zip(roots, refusals, verdicts, strict=True)], STRICTER_ROOTS)


def test_what_other_tests_take_is_of_this_authority():
    made = fixtures()
    assert [path for path in made if (SOURCE / path).read_bytes() != made[path]] == []
