"""What the Hub refuses, and the words for it."""
import pytest
from hub import COMMIT, Hub, one_file

INVALID = "Invalid credentials in Authorization header"


def refuse(status, code=None, message=None):
    headers = ({"X_Error_Code": code} if code else {}) | ({"X_Error_Message": message} if message else {})
    return Hub(lambda r, c: c.json({"error": "words"}, status, **headers))


def ask_all(hub, **environment):
    return [hub.ask("refs", "o/n", **environment), hub.ask("commit", "o/n", "v1", **environment), hub.ask("tree", "o/n", COMMIT, **environment),
            hub.ask("fetch", "o/n", COMMIT, one_file(b"x"), **environment)]


@pytest.mark.parametrize("status, code", [(404, "RepoNotFound"), (401, None), (401, "RepoNotFound")])
def test_no_such_repository(status, code):
    with refuse(status, code) as hub:
        for got in ask_all(hub):
            assert got["status"] == "KHUB_E_NOTFOUND" and "o/n" in got["message"] and "HF_TOKEN" in got["message"] and hub.url in got["message"]
            assert got["requests"] == 1
        for got in ask_all(hub, HF_TOKEN="hf_secret"):
            assert got["status"] == "KHUB_E_NOTFOUND" and "token of HF_TOKEN" in got["message"] and "hf_secret" not in got["text"]


@pytest.mark.parametrize("source", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "file", "caller"])
def test_rejected_token(source, tmp_path):
    """C7: not "not found"; the source is named, not the token."""
    (tmp_path / "token").write_text("hf_secret\n")
    options = ["--token", "hf_secret"] if source == "caller" else []
    environment = {"HF_TOKEN_PATH": str(tmp_path / "token")} if source == "file" else {source: "hf_secret"} if source != "caller" else {}
    with refuse(401, None, INVALID) as hub:
        got = hub.ask(*options, "refs", "o/n", **environment)
        assert hub.requests[0].headers["authorization"] == "Bearer hf_secret"
    assert got["status"] == "KHUB_E_DENIED" and "rejects the token" in got["message"] and "hf_secret" not in got["text"]
    assert {"file": str(tmp_path / "token"), "caller": "the caller"}.get(source, source) in got["message"]


def test_gated():
    with refuse(403, "GatedRepo", "Access to model o/n is restricted") as hub:
        for got in ask_all(hub):
            assert got["status"] == "KHUB_E_DENIED" and "gated" in got["message"] and f"{hub.url}/kernels/o/n" in got["message"]
        assert f"{hub.url}/o/n" in hub.ask("--model", "refs", "o/n")["message"]


@pytest.mark.parametrize("status", [403, 404, 451])
def test_disabled(status):
    with refuse(status, None, "Access to this resource is disabled.") as hub:
        for got in ask_all(hub):
            assert got["status"] == "KHUB_E_DENIED" and "disabled" in got["message"]


def test_no_such_revision():
    with refuse(404, "RevisionNotFound", "Invalid rev id: v1") as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["status"] == "KHUB_E_NOTFOUND" and '"v1"' in got["message"] and "o/n" in got["message"]


def test_no_such_file():
    with refuse(404, "EntryNotFound", "Entry not found") as hub:
        got = hub.ask("fetch", "o/n", COMMIT, one_file(b"x", "build/metadata.json"))
    assert got["status"] == "KHUB_E_NOTFOUND" and "build/metadata.json" in got["message"]


def test_other_404():
    with refuse(404) as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["status"] == "KHUB_E_NOTFOUND" and "is " + hub.url + " a Hub?" in got["message"]


def test_other_403():
    with refuse(403, None, "the firm's\x01 firewall") as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["status"] == "KHUB_E_DENIED" and "the firm's? firewall" in got["message"]


def test_publisher_of_a_hub_that_is_ill():
    with refuse(503) as hub:
        got = hub.ask("publisher", "org")
    assert got["status"] == "KHUB_E_NETWORK" and len(got["waits"]) == 5


def test_renamed_repository():
    """C6: a relative redirect; the new name is told."""
    def handle(request, connection):
        if "/old/" in request.path:
            return connection.redirect(request.path.replace("/old/", "/new/"), 307)
        connection.json({"branches": [], "tags": []})

    with Hub(handle) as hub:
        got = hub.ask("refs", "old/n")
        assert got["status"] == "KHUB_OK" and got["moved_to"] == "new/n"
        got = hub.ask("refs", "new/n", HF_ENDPOINT=hub.url + "/")
        assert got["moved_to"] == ""


def test_offline():
    with Hub(lambda r, c: c.json({})) as hub:
        for got in ask_all(hub, HF_HUB_OFFLINE="1") + ask_all(hub, TRANSFORMERS_OFFLINE="yes"):
            assert got["status"] == "KHUB_E_OFFLINE"
        assert hub.connections == 0


def test_hurry():
    with refuse(500) as hub:
        got = hub.ask("--hurry", "refs", "o/n")
        assert len(hub.requests) == 1
    assert got["status"] == "KHUB_E_NETWORK" and got["waits"] == []
