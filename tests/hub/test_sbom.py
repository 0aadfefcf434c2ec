"""khub info --sbom: what CycloneDX 1.6 asks of a document (written down here from its specification), and whether it tells the truth."""

import base64
import hashlib
import json
import os
import re
import sys

import pytest
from small_hub import VARIANT, Hub, fake, khub

sys.path.append(os.path.join(os.environ["KHUB_SOURCE"], "tests/oracle"))
from authority import COMMIT, REPOSITORY, WORKFLOW, Authority

BUILD = f"build/{VARIANT}/"
DOCUMENT = {"$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"}
ABOUT = {"tools", "supplier", "component"}
COMPONENT = {"type", "bom-ref", "group", "name", "version", "scope", "hashes", "licenses", "purl", "pedigree", "externalReferences", "properties"}
HASHES = {"SHA-256": r"[a-f0-9]{64}", "SHA-512": r"[a-f0-9]{128}"}
REFERENCES = {"vcs", "distribution", "build-system"}


def is_only(value, *, must=(), may=()):
    """An object with these members and no others: the schema allows none."""
    assert isinstance(value, dict) and set(must) <= set(value) <= {*must, *may}, value
    return value


def is_text(value):
    assert isinstance(value, str) and value, value
    return value


def check_component(component):
    is_only(component, must={"type", "name"}, may=COMPONENT)
    assert component["type"] in {"library", "file"} and component.get("scope", "required") in {"required", "optional"}
    for key in {"bom-ref", "group", "name", "version", "purl"} & set(component):
        is_text(component[key])
    for one in component.get("hashes", []):
        is_only(one, must={"alg", "content"})
        assert re.fullmatch(HASHES[one["alg"]], one["content"])
    for one in component.get("licenses", []):
        assert len(is_only(one, must={"license"})["license"]) == 1 and set(one["license"]) < {"id", "name"}
    for one in component.get("externalReferences", []):
        is_only(one, must={"type", "url"}, may={"comment"})
        assert one["type"] in REFERENCES and re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s<>\"{}|\\^`]+", one["url"])
    for one in component.get("properties", []):
        is_only(one, must={"name", "value"})
        assert is_text(one["name"]).startswith("khub:") and isinstance(one["value"], str)
    for one in is_only(component.get("pedigree", {"commits": []}), must={"commits"})["commits"]:
        is_text(is_only(one, must={"uid"})["uid"])


def check_document(text):
    """The document, if it is one by the specification."""
    document = json.loads(text)
    is_only(document, must=DOCUMENT)
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.6" and document["version"] == 1
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", document["serialNumber"])
    about = is_only(document["metadata"], must={"tools", "component"}, may=ABOUT)
    for tool in is_only(about["tools"], must={"components"})["components"]:
        assert is_only(tool, must={"type", "name", "version"})["type"] == "application"
    is_text(is_only(about.get("supplier", {"name": "x"}), must={"name"})["name"])
    everything = [about["component"], *document["components"]]
    for component in everything:
        check_component(component)
    refs = [c["bom-ref"] for c in everything]
    assert len(set(refs)) == len(refs)
    for one in document["dependencies"]:
        is_only(one, must={"ref", "dependsOn"})
        assert one["ref"] in refs and set(one["dependsOn"]) <= set(refs) and len(set(one["dependsOn"])) == len(one["dependsOn"])
    return document


def properties(document):
    found = {}
    for one in document["metadata"]["component"]["properties"]:
        found.setdefault(one["name"].removeprefix("khub:"), []).append(one["value"])
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def files(document):
    return {c["name"]: c["hashes"] for c in document["components"] if c["type"] == "file"}


def hashes_of(content, *names):
    return [{"alg": name, "content": hashlib.new(name.replace("-", ""), content).hexdigest()} for name in names]


def digest_of(repository, algorithm):
    names = [p.removeprefix(BUILD) for p in repository if p.startswith(BUILD) and not p.endswith("metadata.json")]
    return {"algorithm": algorithm, "files": {n: base64.b64encode(hashlib.new(algorithm, repository[BUILD + n]).digest()).decode() for n in names}}


def with_metadata(**more):
    """The files of the repository, and its metadata.json with other fields."""
    repository = fake()
    metadata = json.loads(repository[BUILD + "metadata.json"])
    for key, value in more.items():
        metadata[key.replace("_", "-")] = value(repository) if callable(value) else value
    repository[BUILD + "metadata.json"] = json.dumps(metadata).encode()
    return repository


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close()


def sbom(hub, cache, repository, *options, name="org/good@v1"):
    if hub:
        hub.repos["kernels/org/good"] = {"main": repository, "v1": repository}
    run = khub(hub, cache, "info", "--sbom", name, *options)
    assert run.returncode == 0 and not run.stderr, run.stderr
    return check_document(run.stdout), run.stdout


def test_a_build_of_the_hub(hub, tmp_path):
    repository = with_metadata(version=3, license="MIT", source="https://github.com/org/good", upstream="git@github.com:other/good.git",
                               kernel_depends=[{"repo-id": "org/a", "version": 2}, {"repo-id": "org/b", "revision": "main"}], python_depends=["einops"],
                               provenance={"kernel-builder": {"version": "1.0", "commit": "b" * 40}, "kernel": {"commit": "a" * 40, "dirty": True}},
                               digest=lambda files: digest_of(files, "sha512"))
    document, text = sbom(hub, tmp_path / "cache", repository)
    kernel, said = document["metadata"]["component"], properties(document)
    commit = said["commit"]
    assert re.fullmatch("[0-9a-f]{40}", commit) and kernel["bom-ref"] == kernel["purl"] == f"pkg:huggingface/org/good@{commit}#build/{VARIANT}"
    assert (kernel["group"], kernel["name"], kernel["version"], kernel["licenses"]) == ("org", "good", "3", [{"license": {"id": "MIT"}}])
    assert document["metadata"]["supplier"] == {"name": "org"} and kernel["pedigree"] == {"commits": [{"uid": "a" * 40}]}
    assert kernel["externalReferences"] == [
        {"type": "vcs", "url": "https://github.com/org/good", "comment": "source"},
        {"type": "vcs", "url": "ssh://git@github.com/other/good.git", "comment": "upstream"},
        {"type": "distribution", "url": f"https://huggingface.co/kernels/org/good/tree/{commit}"}]
    metadata = json.loads(repository[BUILD + "metadata.json"])
    assert said == {"variant": VARIANT, "id": metadata["id"], "backend": "cpu", "repository": "org/good", "commit": commit, "source:commit": "a" * 40,
                    "source:commit:from": "metadata.json", "source:dirty": "true", "builder:version": "1.0", "builder:commit": "b" * 40,
                    "digest": "holds", "signature": "none"}
    wanted = {p.removeprefix(BUILD): hashes_of(c, "SHA-256", "SHA-512") for p, c in repository.items() if p.startswith(BUILD)}
    assert files(document) == wanted and len(wanted) > 1
    others = [(c["name"], c.get("version"), c["scope"]) for c in document["components"] if c["type"] == "library"]
    assert others == [("org/a", "v2", "required"), ("org/b", "main", "required"), ("einops", None, "optional")]
    assert document["dependencies"][0]["ref"] == kernel["bom-ref"] and len(document["dependencies"][0]["dependsOn"]) == len(wanted) + 3
    assert sbom(None, tmp_path / "cache", None, "--offline")[1] == text  # the same bytes


def test_what_does_not_hold_is_said(hub, tmp_path):
    def wrong(files):
        digest = digest_of(files, "sha256")
        digest["files"] = {name: value.swapcase() for name, value in digest["files"].items()} | {"gone": ""}
        return digest

    document, _ = sbom(hub, tmp_path / "cache", with_metadata(digest=wrong, license="My own"))
    said = properties(document)["digest"]
    assert "gone: is missing" in said and ".so: hashes to " in said and "; " in said
    assert document["metadata"]["component"]["licenses"] == [{"license": {"name": "My own"}}]


def test_who_signed(hub, tmp_path):
    """The signer is named only where the signature proves him; the source's commit too."""
    authority = Authority()
    root = tmp_path / "root.json"
    root.write_text(json.dumps(authority.trusted_root()))
    repository = with_metadata(digest=lambda files: digest_of(files, "sha256"),
                               provenance={"kernel-builder": {"version": "1.0"}, "kernel": {"commit": "a" * 40, "dirty": False}})
    repository[BUILD + "metadata.json.sigstore"] = authority.sign(repository[BUILD + "metadata.json"], "new").encode()
    document, _ = sbom(hub, tmp_path / "cache", repository, "--trusted-root", root)
    said = properties(document)
    assert {k: v for k, v in said.items() if k.startswith(("signer", "signature", "log", "source"))} == {
        "signature": "holds", "signer": WORKFLOW, "signer:issuer": "https://token.actions.githubusercontent.com", "signer:repository": REPOSITORY,
        "signer:workflow": WORKFLOW, "signer:ref": "refs/heads/main", "log": "https://log2026.rekor.test", "log:index": "11",
        "source:commit": COMMIT, "source:commit:from": "signature"}
    assert document["metadata"]["component"]["pedigree"] == {"commits": [{"uid": COMMIT}]}
    assert {"type": "build-system", "url": f"{REPOSITORY}/actions/runs/1/attempts/1"} in document["metadata"]["component"]["externalReferences"]
    assert "metadata.json.sigstore" in files(document) and said["digest"] == "holds"

    document, _ = sbom(hub, tmp_path / "cache", repository)  # by the root that khub comes with
    said = properties(document)
    assert said["signature"] == "unknown-authority" and said["signature:words"] and not [k for k in said if k.startswith("signer")]
    assert (said["source:commit"], said["source:commit:from"]) == ("a" * 40, "metadata.json")

    repository[BUILD + "metadata.json"] += b" "
    document, _ = sbom(hub, tmp_path / "other", repository, "--trusted-root", root)
    assert properties(document)["signature"] == "other-bytes" and "signer" not in properties(document)


def test_a_publisher_who_is_not_trusted(hub, tmp_path):
    """The files aren't fetched; who vouches for the publisher is told."""
    hub.trusted["org"] = False
    hub.repos["kernels/org/good"] = {"v1": fake()}
    run = khub(hub, tmp_path / "cache", "info", "--sbom", "org/good@v1")
    assert run.returncode == 4 and "org/good: the Hub doesn't call org a trusted publisher" in run.stderr and not run.stdout
    assert [p for p in hub.paths() if p.endswith(".so")] == []
    sbom(hub, tmp_path / "cache", fake(), "--trust", "org")


def test_builds_of_this_machine(tmp_path):
    document, _ = sbom(None, tmp_path / "cache", None, name="khub/norm")
    said = properties(document)
    assert said["digest"] == "holds" and "commit" not in said and document["metadata"]["component"]["name"] == "norm"
    assert document["metadata"]["component"]["bom-ref"] == "kernel" and "supplier" not in document["metadata"]
    for path, content in fake().items():
        (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / path).write_bytes(content)
    document, _ = sbom(None, tmp_path / "cache", None, name=f"{tmp_path}/mine")
    assert properties(document)["digest"] == "none" and set(files(document)) == {p.removeprefix(BUILD) for p in fake() if p.startswith(BUILD)}
    (tmp_path / "mine" / BUILD / "link").symlink_to("nowhere")
    run = khub(None, tmp_path / "cache", "info", "--sbom", tmp_path / "mine")
    assert run.returncode == 1 and "/link: is a link that leads nowhere" in run.stderr and not run.stdout
