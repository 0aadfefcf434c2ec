"""Real bundles with known verdicts (sigstore's conformance suite), each for its reason. They lie beside the repository, in
../shared/cases/sigstore, and aren't ours to copy: where they aren't, test_signature.py has bundles of its own authority."""
import os
import pathlib
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["KHUB_SOURCE"])
HELPER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "oracle_signature"
CASES = next((p for up in SOURCE.parents if (p := up / "shared/cases/sigstore").is_dir()), None)

BEACON = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon"
WORKFLOW = BEACON + "/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
ACTIONS = "https://token.actions.githubusercontent.com"

REASONS = {
    "happy-path-v0.1": "holds",
    "happy-path-v0.3": "holds",
    "rekor2-happy-path": "holds",
    "rekor2-timestamp-with-embedded-cert": "holds",
    "happy-path-intoto-in-dsse-v3": "content",
    "signature-mismatch_fail": "forged",
    "invalid-checkpoint-signature_fail": "forged-checkpoint",
    "rekor2-no-timestamp_fail": "no-time",
    "wrong-hashedrekord-entry_fail": "other-entry",
    "incorrect-public-key_fail": "other-entry",
}


def judge(identity, data="a.txt"):
    """{case: [reason, facts or words]}"""
    lines = ""
    for case in REASONS:
        own = CASES / case / "trusted_root.json"
        root = own if own.exists() else CASES / "trusted_root.production.json"
        lines += "\t".join(map(str, [root, CASES / case / "bundle.sigstore.json", CASES / data, *identity])) + "\n"
    done = subprocess.run([HELPER], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(zip(REASONS, (line.split("\t") for line in done.stdout.splitlines()), strict=True))


pytestmark = pytest.mark.skipif(CASES is None, reason="../shared/cases/sigstore isn't here")


@pytest.mark.parametrize("identity", [(ACTIONS, BEACON, WORKFLOW, WORKFLOW), (ACTIONS, "-", "-", WORKFLOW)])
def test_each_has_its_verdict_for_its_reason(identity):
    assert {case: reason for case, (reason, _) in judge(identity).items()} == REASONS


def test_facts():
    facts = {case: words for case, (reason, words) in judge((ACTIONS, "-", "-", WORKFLOW)).items() if reason == "holds"}
    assert facts == {  # as `openssl x509`, `openssl ts` and the bundle's own JSON say
        "happy-path-v0.1": f"1689177396 -1 27246492 {BEACON} af785b6d3b0fa0c0aa1305faee7ce6036e8d90c4",
        "happy-path-v0.3": f"1710869186 -1 79571823 {BEACON} c7b3dfb335f051e1c86bda4c716fac97df62ad81",
        "rekor2-happy-path": f"-1 1749729740 735 {BEACON} 9739798945b2a848e911bcf1dddb97298cade0b1",
        "rekor2-timestamp-with-embedded-cert": f"-1 1754506296 29469 {BEACON} 9739798945b2a848e911bcf1dddb97298cade0b1",
    }


def test_nobody_but_who_is_accepted():
    """khub's own identities, another workflow, a pull request's ref, an issuer that vouches for others."""
    others = [("-",) * 4, (ACTIONS, "-", WORKFLOW.replace("beacon.yml", "beacon2.yml"), "-"), (ACTIONS, BEACON + "2", "-", "-"),
              (ACTIONS, "-", WORKFLOW.replace("heads/main", "pull/7/merge"), "-"), ("https://accounts.google.com", "-", "-", WORKFLOW)]
    for identity in others:
        for case, (reason, _) in judge(identity).items():
            assert reason == ("identity" if REASONS[case] not in ("content", "no-time") else REASONS[case]), (identity, case)


def test_other_bytes():
    for case, (reason, _) in judge((ACTIONS, "-", "-", WORKFLOW), data="README.md").items():
        assert reason == (REASONS[case] if REASONS[case] in ("content", "no-time") else "other-bytes"), case
