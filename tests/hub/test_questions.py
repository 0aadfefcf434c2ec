"""Refs, revisions, trees, publishers: what the API says, and what it says when it isn't well."""
import json

import pytest
from hub import COMMIT, Hub, git_blob

OTHER = "b" * 40


def answer_with(value, **headers):
    return lambda request, connection: connection.json(value, **headers)


def test_refs():
    refs = {"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}, {"name": "v1", "targetCommit": OTHER}],
            "tags": [{"name": "t/1", "targetCommit": OTHER}], "converts": []}
    with Hub(answer_with(refs)) as hub:
        got = hub.ask("refs", "o/n")
        assert hub.paths() == ["/api/kernels/o/n/refs"]
    assert got["status"] == "KHUB_OK", got
    assert got["branches"] == {"main": COMMIT, "v1": OTHER} and got["tags"] == {"t/1": OTHER} and got["moved_to"] == ""


def test_commit_is_one_segment():
    with Hub(answer_with({"sha": OTHER})) as hub:
        got = hub.ask("--model", "commit", "o/n", "refs/pr/4")
        assert hub.requests[0].target == "/api/models/o/n/revision/refs%2Fpr%2F4"
    assert got["commit"] == OTHER


@pytest.mark.parametrize("answer, trusted", [({"trustedKernelPublisher": True}, True), ({"trustedKernelPublisher": False}, False), ({}, False)])
def test_publisher(answer, trusted):
    with Hub(answer_with(answer)) as hub:
        got = hub.ask("publisher", "org")
        assert hub.paths() == ["/api/organizations/org/overview"]
    assert got["trusted"] is trusted


def test_publisher_is_a_person():
    with Hub(lambda r, c: c.json({}, 404)) as hub:
        got = hub.ask("publisher", "person")
    assert got["status"] == "KHUB_OK" and got["trusted"] is False


def entry(path, size=3, **more):
    return {"type": "file", "path": path, "size": size, "oid": git_blob(b"x"), **more}


def test_tree_has_both_names():
    entries = [entry("b/c", lfs={"oid": "c" * 64, "size": 9, "pointerSize": 130}), entry("a"), {"type": "directory", "path": "b", "oid": "d" * 40, "size": 0}]
    with Hub(answer_with(entries)) as hub:
        got = hub.ask("tree", "o/n", COMMIT)
        assert hub.requests[0].target == f"/api/kernels/o/n/tree/{COMMIT}?recursive=true"
    assert got["tree"] == [{"path": "a", "size": 3, "etag": git_blob(b"x")}, {"path": "b/c", "size": 9, "etag": "c" * 64}]


def test_waits_are_counted():
    answers = [500, 503, 502, 504, 408]

    def handle(request, connection):
        connection.answer(status=answers.pop(0)) if answers else connection.json({"sha": OTHER})

    with Hub(handle) as hub:
        got = hub.ask("commit", "o/n", "v1")
    assert got["commit"] == OTHER and got["waits"] == [1000, 2000, 4000, 8000, 8000] and got["requests"] == 6
