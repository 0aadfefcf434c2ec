"""khub serve before the real clients: huggingface_hub and kernels work against it unchanged."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from small_hub import git_hash
from serving import BUILT_IN, ask, python, serving

SANITIZE = os.environ["KHUB_SANITIZE"] == "1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two kernels, one as versions and one as it is built; a model."""
    top = tmp_path_factory.mktemp("hub") / "dir"
    shutil.copytree(BUILT_IN / "norm", top / "khub" / "norm" / "v1")
    shutil.copytree(BUILT_IN / "norm", top / "khub" / "norm" / "v2")
    (top / "khub" / "norm" / "v2" / "README.md").write_text("two\n")
    shutil.copytree(BUILT_IN / "activation", top / "khub" / "activation")
    model = top / "models" / "org" / "tiny"
    (model / "sub folder").mkdir(parents=True)
    (model / "config.json").write_text('{"a": 1}')
    (model / "model.safetensors").write_bytes(os.urandom(100_000))
    (model / "sub folder" / "caf\u00e9 #1%.txt").write_text("hello")
    (model / "empty").write_text("")
    (top / "models" / "gpt0").mkdir()
    (top / "models" / "gpt0" / "config.json").write_text("{}")
    return top


@pytest.fixture(scope="module")
def hub(folder):
    with serving(folder) as running:
        yield running


# ---- huggingface_hub ----


def test_refs(hub, tmp_path):
    names = python(hub, tmp_path, """
refs = api.list_repo_refs("khub/norm", repo_type="kernel", include_pull_requests=True)
print(json.dumps([[b.name, b.ref, b.target_commit] for b in refs.branches] + [refs.tags, refs.converts, refs.pull_requests]))""")
    assert [n[:2] for n in names[:2]] == [["v1", "refs/heads/v1"], ["v2", "refs/heads/v2"]]
    assert all(len(n[2]) == 40 for n in names[:2]) and names[0][2] != names[1][2] and names[2:] == [[], [], []]


def test_a_built_repository_is_main_and_its_version(hub, tmp_path):
    names = python(hub, tmp_path, """
print(json.dumps([[b.name, b.target_commit] for b in api.list_repo_refs("khub/activation", repo_type="kernel").branches]))""")
    version = json.loads(next((BUILT_IN / "activation").glob("build/*/metadata.json")).read_text())["version"]
    assert [n[0] for n in names] == ["main", f"v{version}"] and names[0][1] == names[1][1]


def test_tree_names_the_content(hub, folder, tmp_path):
    listed = python(hub, tmp_path, """
files = [f for f in api.list_repo_tree("org/tiny", recursive=True) if isinstance(f, h.hf_api.RepoFile)]
print(json.dumps({f.path: [f.size, f.blob_id, f.lfs and [f.lfs.sha256, f.lfs.size, f.lfs.pointer_size]] for f in files}))""")
    expected = {}
    model = folder / "models" / "org" / "tiny"
    for file in (p for p in model.rglob("*") if p.is_file()):
        content = file.read_bytes()
        oid, lfs = git_hash(content), None
        if file.suffix == ".safetensors":
            sha256 = hashlib.sha256(content).hexdigest()
            pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()
            oid, lfs = git_hash(pointer), [sha256, len(content), len(pointer)]
        expected[str(file.relative_to(model))] = [len(content), oid, lfs]
    assert listed == expected


def test_tree_of_a_folder(hub, tmp_path):
    found = python(hub, tmp_path, """
top = [[type(f).__name__, f.path] for f in api.list_repo_tree("org/tiny")]
sub = [f.path for f in api.list_repo_tree("org/tiny", "sub folder")]
try:
    list(api.list_repo_tree("org/tiny", "nosuch"))
except h.errors.EntryNotFoundError as e:
    print(json.dumps([top, sub, "not found"]))""")
    assert ["RepoFolder", "sub folder"] in found[0] and len(found[0]) == 4
    assert found[1:] == [["sub folder/caf\u00e9 #1%.txt"], "not found"]


def test_paths_info(hub, tmp_path):
    """The same of each path as the listing says, of those that are there."""
    same, kernel, missing, kinds = python(hub, tmp_path, """
def facts(entries):
    return [[e.path, getattr(e, "size", None), getattr(e, "blob_id", None) or e.tree_id, e.lfs.sha256 if getattr(e, "lfs", None) else None] for e in entries]
listed = list(api.list_repo_tree("org/tiny", recursive=True))
asked = api.get_paths_info("org/tiny", [e.path for e in listed])
kernel = api.get_paths_info("khub/norm", "build", repo_type="kernel", revision="refs/heads/v1", expand=True)
kinds = []
for repo, revision, paths in [("org/nosuch", "main", "a"), ("org/tiny", "v9", "a"), ("org/tiny", "main", ["config.json"] * 1001)]:
    try:
        api.get_paths_info(repo, paths, revision=revision)
    except Exception as e:
        kinds.append(type(e).__name__)
print(json.dumps([facts(asked) == facts(listed) and len(listed) == 5, facts(kernel),
                  facts(api.get_paths_info("org/tiny", ["nosuch", "empty", "../x", "", "sub folder/", "config.json/x"])), kinds]))""")
    assert same
    assert [k[0] for k in kernel] == ["build"] and [m[0] for m in missing] == ["empty"]
    assert kinds == ["RepositoryNotFoundError", "RevisionNotFoundError", "BadRequestError"]


def test_snapshot_download(hub, folder, tmp_path):
    path = python(hub, tmp_path, 'print(json.dumps(h.snapshot_download("org/tiny")))')
    got = {str(p.relative_to(path)): p.read_bytes() for p in pathlib.Path(path).rglob("*") if p.is_file()}
    model = folder / "models" / "org" / "tiny"
    assert got == {str(p.relative_to(model)): p.read_bytes() for p in model.rglob("*") if p.is_file()}
    offline = python("http://127.0.0.1:9", tmp_path, 'print(json.dumps(h.snapshot_download("org/tiny")))', HF_HUB_OFFLINE="1")
    assert offline == path


def test_hf_hub_download(hub, folder, tmp_path):
    found = python(hub, tmp_path, """
one = h.hf_hub_download("org/tiny", "sub folder/caf\u00e9 #1%.txt")
print(json.dumps([open(one).read(), api.file_exists("org/tiny", "config.json"), api.file_exists("org/tiny", "nosuch"),
                  api.repo_exists("org/tiny"), api.repo_exists("org/nosuch"), api.revision_exists("org/tiny", "v9"),
                  api.model_info("org/tiny").sha, api.kernel_info("khub/norm", revision="refs/heads/v1").sha]))""")
    assert found[:6] == ["hello", True, False, True, False, False] and len(found[6]) == 40 and len(found[7]) == 40


def test_a_model_without_an_owner(hub, tmp_path):
    found = python(hub, tmp_path, """
print(json.dumps([open(h.hf_hub_download("gpt0", "config.json")).read(), [b.name for b in api.list_repo_refs("gpt0").branches],
                  [f.path for f in api.list_repo_tree("gpt0")], api.repo_exists("org"), api.repo_exists("gpt1")]))""")
    assert found == ["{}", ["main"], ["config.json"], False, False]


def test_errors_have_their_kinds(hub, tmp_path):
    kinds = python(hub, tmp_path, """
kinds = []
for repo, file, revision in [("org/nosuch", "x", "main"), ("org/tiny", "nosuch", "main"), ("org/tiny", "config.json", "v9"),
                             ("org/tiny", "config.json", "0" * 40)]:
    try:
        h.hf_hub_download(repo, file, revision=revision)
    except Exception as e:
        kinds.append(type(e).__name__)
print(json.dumps(kinds))""")
    assert kinds == ["RepositoryNotFoundError", "RemoteEntryNotFoundError", "RevisionNotFoundError", "RevisionNotFoundError"]


def test_pages(tmp_path):
    """2,500 files are three pages."""
    files = tmp_path / "dir" / "models" / "org" / "many" / "main"
    for i in range(2500):
        (files / f"d{i % 7}").mkdir(parents=True, exist_ok=True)
        (files / f"d{i % 7}" / f"{i}.txt").write_text(str(i))
    with serving(tmp_path / "dir") as hub:
        found = python(hub, tmp_path, """
print(json.dumps([f.path for f in api.list_repo_tree("org/many", recursive=True)]))""")
        requests = [line for line in hub.log().splitlines() if "/tree/" in line]
    assert sorted(found) == sorted([f"d{i}" for i in range(7)] + [f"d{i % 7}/{i}.txt" for i in range(2500)])
    assert len(requests) == 3


def test_token(folder, tmp_path):
    (tmp_path / "token").write_text("secret-1\n")
    program = """
try:
    print(json.dumps(h.hf_hub_download("org/tiny", "config.json")))
except Exception as e:
    print(json.dumps([type(e).__name__, str(e)]))"""
    with serving(folder, "--token-file", tmp_path / "token", log=tmp_path / "log") as hub:
        assert python(hub, tmp_path, program, HF_TOKEN="secret-1").endswith("config.json")
        shutil.rmtree(tmp_path / "home")
        assert python(hub, tmp_path, program)[0] == "RepositoryNotFoundError"
        assert "Invalid credentials" in python(hub, tmp_path, program, HF_TOKEN="wrong")[1]
        who = python(hub, tmp_path, "print(json.dumps(api.whoami()))", HF_TOKEN="secret-1")
        assert who["type"] == "user" and who["auth"]["accessToken"]["role"] == "read"
        assert "secret" not in hub.log()


# ---- kernels ----


@pytest.mark.skipif(SANITIZE, reason="Python can't load sanitized kernels; the release run does")
def test_get_kernel(hub, tmp_path):
    program = """
import kernels
k = kernels.get_kernel("khub/norm", version=1, backend="cpu")
print(json.dumps([k.__file__, sorted(n for n in dir(k) if n[0] != "_")[:3]]))"""
    found = python(hub, tmp_path, program)
    assert "kernels--khub--norm" in found[0] and found[1]
    assert "khub/norm" in hub.log() and "kernel-status.toml" not in found[0]
    again = python(hub, tmp_path, program.replace("version=1", 'revision=%r' % found[0].split("/snapshots/")[1][:40]), HF_HUB_OFFLINE="1")
    assert again == found


def test_lock_and_download(hub, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[tool.kernels.dependencies]\n"khub/norm" = 1\n"khub/activation" = 1\n')
    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}
    kernels = pathlib.Path(sys.executable).parent / "kernels"
    for command in ("lock", "download"):
        more = ["--all-variants"] if command == "download" else []
        done = subprocess.run([kernels, command, project, *more], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stderr
    locked = {e["dependency"]["repo-id"]: e["lock"]["commit"] for e in json.loads((project / "kernels.lock").read_text())}
    for name in ("norm", "activation"):
        refs = json.loads(ask(hub, f"/api/kernels/khub/{name}/refs").body)
        commit = next(b["targetCommit"] for b in refs["branches"] if b["name"] == "v1")
        assert locked[f"khub/{name}"] == commit
        got = tmp_path / f"home/hub/kernels--khub--{name}/snapshots/{commit}/build"
        assert sorted(p.name for p in got.rglob("*") if p.is_file()) == sorted(
            p.name for p in (BUILT_IN / name / "build").rglob("*") if p.is_file())


def test_a_redirected_kernel(tmp_path):
    """kernel-status.toml is a file as any other; the peer reads it."""
    shutil.copytree(BUILT_IN / "norm", tmp_path / "dir/khub/norm/main")
    (tmp_path / "dir/old/norm/main").mkdir(parents=True)
    (tmp_path / "dir/old/norm/main/kernel-status.toml").write_text('kind = "redirect"\ndestination = "khub/norm"\n')
    with serving(tmp_path / "dir") as hub:
        found = python(hub, tmp_path, """
from kernels.status import resolve_status
print(json.dumps([resolve_status(api, "old/norm", "main"), resolve_status(api, "khub/norm", "main")]))""")
    assert found == [["khub/norm", "main"], ["khub/norm", "main"]]


def test_trust(folder, tmp_path):
    program = """
import kernels
try:
    kernels.install_kernel("khub/norm", version=1, backend="cpu")
    print(json.dumps("installed"))
except Exception as e:
    print(json.dumps(str(e)))"""
    with serving(folder, "--trust", "someone", "--trust", "khub", log=tmp_path / "log") as hub:
        assert python(hub, tmp_path, program) == "installed"
    with serving(folder, "--trust", "someone", log=tmp_path / "log") as hub:
        assert "not from a trusted publisher" in python(hub, tmp_path, program)
