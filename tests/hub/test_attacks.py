"""Whatever is done to a kernel, in the cache or on its way there: its code runs as its publisher built it, or not at all. The kernel's
constructor leaves a mark in a file, "g"; what an attacker puts in its place leaves "e"."""

import base64
import contextlib
import hashlib
import json
import mmap
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
from small_hub import FAKES, VARIANT, Hub, files_of, khub

sys.path.append(str(pathlib.Path(__file__).parents[1] / "oracle"))
from authority import Authority  # noqa: E402
from changes import certificate_changes, checkpoint_changes, promise_changes, proof_changes, text_changes  # noqa: E402

BUILD = f"build/{VARIANT}"
LIBRARY = "_marks_cpu_fa4e000.so"
LOADS = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "hub_loads")
TVM_FFI = pathlib.Path(os.environ["KHUB_STAGE"], "lib", "libtvm_ffi.so").resolve()  # the name has the version
OTHER = 12345  # the number of another user

GOOD = (FAKES / "marks" / BUILD / LIBRARY).read_bytes()
EVIL = (FAKES / "evil" / BUILD / "_evil_cpu_fa4e000.so").read_bytes()
SIZE = max(len(GOOD), len(EVIL))
GOOD, EVIL = GOOD.ljust(SIZE, b"\0"), EVIL.ljust(SIZE, b"\0")

authority = Authority()


def digest_of(files, algorithm="sha256"):
    """As the builder writes it: over all but the top-level metadata.json and its signature."""
    named = {p.removeprefix(f"{BUILD}/"): c for p, c in files.items() if p.startswith(f"{BUILD}/")}
    return {"algorithm": algorithm, "files": {p: base64.b64encode(hashlib.new(algorithm, c).digest()).decode()
                                              for p, c in named.items() if p not in ("metadata.json", "metadata.json.sigstore")}}


def kernel(digest=None, signed=None, **more):
    """The files of a repository. `digest`: its algorithm, or what to do with one. `signed`: a bundle made of the bytes of metadata.json."""
    files = files_of(FAKES / "marks")
    files[f"{BUILD}/{LIBRARY}"] = GOOD
    files[f"{BUILD}/__init__.py"] = b"# Python\n"
    files[f"{BUILD}/layers.json"] = b'{"layers": {}}'
    files |= {f"{BUILD}/{path}": content for path, content in more.pop("files", {}).items()}
    metadata = json.loads(files[f"{BUILD}/metadata.json"]) | more
    if digest:
        metadata["digest"] = digest_of(files, digest) if isinstance(digest, str) else digest(digest_of(files))
    files[f"{BUILD}/metadata.json"] = json.dumps(metadata).encode()
    if signed:
        files[f"{BUILD}/metadata.json.sigstore"] = signed(files[f"{BUILD}/metadata.json"])
    return files


class Case:
    """A Hub, a cache, and what ran."""

    def __init__(self, tmp_path):
        self.hub, self.cache, self.mark = Hub(), tmp_path / "cache", tmp_path / "mark"
        self.root = tmp_path / "root.json"
        self.root.write_text(json.dumps(authority.trusted_root()))

    def serve(self, files, branch="v1"):
        self.hub.repos.setdefault("kernels/org/marks", {})[branch] = files
        self.folder = self.cache / "kernels--org--marks"
        self.snapshot = self.folder / "snapshots" / self.hub.commit(files)
        self.build = self.snapshot / BUILD
        return self

    def get(self, *words, name="org/marks@v1", offline=False, **env):
        """(exit status, what ran, the words)."""
        self.mark.unlink(missing_ok=True)
        run = khub(None if offline else self.hub, self.cache, "get", name, *(["--offline"] if offline else []), *words,
                   env={"FAKE_MARK_FILE": str(self.mark), **env})
        self.out, self.ran = run.stdout, self.mark.read_text() if self.mark.exists() else ""
        return run.returncode, "".join(sorted(set(self.ran))), run.stderr  # it may run in a child process first

    def refused(self, *facts, status=4, **how):
        got = self.get(*how.pop("words", ()), **how)
        assert got[:2] == (status, ""), got
        for fact in facts:
            assert fact in got[2], (fact, got[2])

    def loaded(self, *words, **how):
        got = self.get(*words, **how)
        assert got[:2] == (0, "g"), got
        return got[2]

    def decisions(self, *words, **how):
        self.loaded("--json", *words, **how)
        return {d["about"]: (d["decision"], d["words"]) for d in json.loads(self.out)["trust"]}

    def receipts(self):
        return sorted(self.folder.glob("receipt.*.txt"))

    def settle(self):
        """Until a receipt is kept: files that were just written are looked at again."""
        for path in [self.build, *self.build.iterdir(), *self.folder.glob("blobs/*")]:
            os.utime(path, (1, 1))
        for _ in range(50):
            self.loaded(offline=True)
            if self.receipts() and '\ndirectory ' in self.receipts()[0].read_text():
                return
            subprocess.run(["sleep", "0.1"], check=True)
        raise AssertionError("no receipt is kept")


@pytest.fixture
def case(tmp_path):
    made = Case(tmp_path)
    yield made
    made.hub.close()


def test_a_changed_byte_in_any_file(case):
    case.serve(kernel("sha256", signed=lambda data: authority.sign(data, "0.3").encode()))
    case.loaded("--trusted-root", case.root)
    for path in sorted(case.build.iterdir()):
        right = path.read_bytes()
        path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))  # through the link
        words = "--trusted-root", case.root
        case.refused(path.name, "doesn't match its name", hashlib.sha1(b"blob %d\0" % len(right) + right).hexdigest(), words=words, offline=True)
        assert "fetched again" in case.loaded(*words) and path.read_bytes() == right
        assert case.loaded(*words) == ""


def test_a_receipt_counts_until_something_changes(case):
    case.serve(kernel("sha512"))
    case.loaded()
    case.settle()
    found = case.decisions(offline=True)
    assert "as a receipt says" in found["content"][1] and found["digest"][0] == "accepted"
    case.hub.paths()
    case.loaded()
    assert case.hub.paths() == []
    library, kept = case.build / LIBRARY, case.receipts()[0].read_text()
    before = library.stat()
    with open(library, "r+b") as file:
        file.write(EVIL)
    os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))  # the time of change can't be set back
    case.refused(LIBRARY, "doesn't match its name", offline=True)
    library.write_bytes(GOOD)
    case.loaded(offline=True)
    case.receipts()[0].unlink()
    assert "as a receipt says" not in case.decisions(offline=True)["content"][1]
    library.write_bytes(EVIL)
    now = library.stat()
    forged = []
    for line in kept.splitlines():
        word, *rest = line.split(" ")
        if word == "file":
            st = (case.build / rest[-1]).stat()
            line = f"file {rest[0]} {st.st_dev:x} {st.st_ino:x} {st.st_size:x} {st.st_ctime_ns:x} {rest[-1]}"
        forged.append(line + "\n")
    receipt = case.folder / f"receipt.{case.snapshot.name}.{VARIANT}.txt"
    receipt.write_text("".join(forged))
    assert case.get(offline=True)[1] == "e" and now.st_size == len(GOOD)  # so the forgery is a good one
    os.chmod(receipt, 0o666)
    case.refused("doesn't match its name", offline=True)
    os.chmod(receipt, 0o644)
    os.chown(receipt, OTHER, OTHER)
    case.refused("doesn't match its name", offline=True)
    os.chown(receipt, 0, 0)
    os.chmod(receipt.parent, 0o777)
    case.refused("others may write to", offline=True)


def test_a_library_is_loaded_in_a_child_first_until_it_is_known_to_load(case, tmp_path):
    """In this company: the libraries in the process, and where they are looked for. What crashes never gets to be known."""
    ours, theirs = tmp_path / TVM_FFI.name, tmp_path / "theirs"
    shutil.copy(TVM_FFI, ours)
    theirs.mkdir()
    env = {"KHUB_TVM_FFI": str(ours), "offline": True}
    case.hub.repos["kernels/org/crashes"] = {"v1": files_of(FAKES / "crash_on_load")}
    assert khub(case.hub, case.cache, "get", "org/crashes@v1").returncode == 1
    case.serve(kernel("sha256"))
    case.loaded()
    assert case.ran == "gg"
    case.settle()

    def runs(**more):
        case.loaded(**env, **more)
        return case.ran

    assert [runs(), runs(), runs()] == ["gg", "g", "g"]
    shutil.copy(TVM_FFI, tmp_path / "other.so")
    os.replace(tmp_path / "other.so", ours)
    assert [runs(), runs()] == ["gg", "g"]
    assert [runs(LD_LIBRARY_PATH=str(theirs)), runs(LD_LIBRARY_PATH=str(theirs)), runs()] == ["gg", "g", "gg"]
    receipt = case.receipts()[0]
    receipt.write_text(receipt.read_text().replace(" since ", " since f"))  # the machine was started again
    assert [runs(), runs()] == ["gg", "g"]
    for _ in range(2):
        crash = khub(None, case.cache, "get", "org/crashes@v1", "--offline")
        assert crash.returncode == 1 and "_crash_on_load_cpu_fa4e000.so: loading it ends the process: SIGSEGV" in crash.stderr
    kept = [path.read_text() for path in case.cache.glob("kernels--org--crashes/receipt.*.txt")]
    assert len(kept) == 1 and "\nloaded " not in kept[0] and "\nloaded by khub " in receipt.read_text()


def test_a_mapping_that_outlives_the_right_to_write():
    """What is written through it needn't change the time of change. So no receipt is kept while there is one, by whatever hashed the files."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, contextlib.ExitStack() as mapped:
        case = Case(pathlib.Path(folder))
        mapped.callback(case.hub.close)
        case.serve(kernel("sha256", signed=lambda data: authority.sign(data, "0.3").encode()))
        words = "--trusted-root", case.root
        case.loaded(*words)
        memory = {}
        for path in case.build.iterdir():
            with open(path, "r+b") as file:
                memory[path.name] = mapped.enter_context(mmap.mmap(file.fileno(), 0))
            memory[path.name][-1:] = memory[path.name][-1:]
        subprocess.run(["sleep", "2.1"], check=True)
        case.loaded(*words, offline=True)
        assert khub(None, case.cache, "verify", "org/marks@v1", *map(str, words), env={"HF_HUB_OFFLINE": "1"}).returncode == 0
        assert not case.receipts()
        for name, right in {name: content[:] for name, content in memory.items()}.items():
            memory[name][:] = EVIL if name == LIBRARY else right.replace(b"1", b"9").replace(b"y", b"z").replace(b"{}", b"[]")
            case.refused(name, "doesn't match its name", words=words, offline=True)
            memory[name][:] = right
        case.loaded(*words, offline=True)


def test_what_vouches_for_a_snapshot_of_another_tool(case):
    """It has no list of files: the links' names say what their content should be, and of a file that is no link nothing does."""
    case.serve(kernel())
    case.loaded()
    shutil.rmtree(case.folder / "trees")
    for receipt in case.receipts():
        receipt.unlink()
    count = len(list(case.build.iterdir()))
    assert f"{count} of the {count} files" in case.decisions(offline=True)["content"][1] and "no list" in case.decisions(offline=True)["content"][1]
    for i, path in enumerate(sorted(case.build.iterdir())):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        case.loaded("--json", offline=True)
        words = [d["words"] for d in json.loads(case.out)["trust"] if d["about"] == "content" and d["decision"] == "accepted"]
        assert not words if i == count - 1 else f"{count - i - 1} of the {count} files" in words[0]


def test_a_file_in_a_directory_that_was_empty(case):
    case.serve(kernel("sha256"))
    case.loaded()
    (case.build / "sub" / "empty").mkdir(parents=True)
    subprocess.run(["sleep", "2.1"], check=True)
    case.settle()
    assert "as a receipt says" in case.decisions(offline=True)["content"][1]
    (case.build / "sub" / "empty" / "evil.so").write_bytes(EVIL)
    case.refused("sub/empty/evil.so", "somebody added it", offline=True)


def test_a_digest_of_many_files_that_are_missing(case):
    many = {f"{i:06}": "" for i in range(110_000)}
    case.serve(kernel(lambda digest: digest | {"files": digest["files"] | many}))
    case.refused("000000: is missing")
    told = khub(None, case.cache, "verify", "org/marks@v1", env={"HF_HUB_OFFLINE": "1"})
    assert told.returncode == 4 and "doesn't hold for 109900 more files" in told.stdout and len(told.stdout) < 50_000


def test_files_that_are_added(case):
    case.serve(kernel("sha256"))
    case.loaded()
    case.settle()
    outside = case.cache.parent / "outside.so"
    outside.write_bytes(EVIL)
    added = [("evil.so", lambda p: p.write_bytes(EVIL), "somebody added it"), ("sub/metadata.json", lambda p: p.write_bytes(b"{}"), "somebody added it"),
             ("metadata.json.sigstore", lambda p: p.write_bytes(b"{}"), "somebody added it"), ("evil.so", lambda p: p.symlink_to(outside), "leads out of the build"),
             ("lib", lambda p: p.symlink_to(outside.parent), "a link to a directory"), ("pipe", os.mkfifo, "a device or pipe")]
    for name, add, words in added:
        path = case.build / name
        path.parent.mkdir(exist_ok=True)
        add(path)
        case.refused(name, words, offline=added[0][0] == name)
        path.unlink()
        if path.parent != case.build:
            path.parent.rmdir()
        case.loaded(offline=True)
    (case.build / "__pycache__").mkdir()  # Python writes these
    (case.build / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"code")
    case.loaded(offline=True)


def test_links_out_and_files_in_their_place(case):
    case.serve(kernel())
    case.loaded()
    library, outside = case.build / LIBRARY, case.cache.parent / "outside.so"
    outside.write_bytes(GOOD)
    library.unlink()
    library.symlink_to(outside)
    case.refused("isn't in the cache", status=5, offline=True)
    case.loaded()
    library.unlink()
    library.write_bytes(EVIL)  # a file and no link, as where links are refused
    case.refused("doesn't match its name", offline=True)
    assert "fetched again" in case.loaded()
    library.unlink()
    library.write_bytes(GOOD)
    case.loaded(offline=True)
    shutil.rmtree(case.folder / "trees")  # as another tool leaves it
    case.loaded(offline=True)
    case.refused("the policy refuses", offline=True, KHUB_TRUST_FILE=policy(case, offline="refuse"))
    blob = next(p for p in (case.folder / "blobs").iterdir() if p.read_bytes() == GOOD)
    library.unlink()
    library.symlink_to(os.path.relpath(blob, library.parent))
    blob.write_bytes(EVIL)
    case.refused("doesn't match its name", offline=True)


def policy(case, **what):
    path = case.cache.parent / "trust.json"
    path.write_text(json.dumps(what))
    return str(path)


def test_digests_that_do_not_hold(case):
    def changed(d):
        return {**d, "files": {**d["files"], LIBRARY: d["files"]["__init__.py"]}}

    def without(d):
        return {**d, "files": {p: h for p, h in d["files"].items() if p != "__init__.py"}}

    def more(d):
        return {**d, "files": {**d["files"], "lib/gone.so": d["files"][LIBRARY]}}

    for i, (wrong, words) in enumerate([(changed, (LIBRARY, "hashes to", "metadata.json says")), (without, ("__init__.py", "doesn't have it")), (more, ("lib/gone.so", "is missing"))]):
        case.serve(kernel(wrong, source=f"https://{i}"))
        case.refused(*words, words=("--refresh",))
        case.refused(*words, offline=True)
    case.serve(kernel(without, files={"sub/metadata.json": b"{}"}))
    case.refused("__init__.py", words=("--refresh",))
    case.serve(kernel(lambda d: {**d, "files": {p: h for p, h in d["files"].items() if p != "sub/metadata.json"}}, files={"sub/metadata.json": b"{}"}))
    case.refused("sub/metadata.json", "doesn't have it", words=("--refresh",))  # the top-level one alone is left out
    for level, status in (("publisher", 0), ("verified", 4), ("signed", 4)):
        case.serve(kernel())
        assert case.get("--refresh", "--trust-level", level)[0] == status
    lock = case.cache.parent / "kernels.lock"
    lock.write_text(json.dumps([{"dependency": {"repo-id": "org/marks", "version": 1}, "lock": {"commit": case.snapshot.name}}]))
    assert case.decisions("--lock", lock, "--trust-level", "verified")["lock"][0] == "accepted"


def test_signatures(case):
    def stranger(data):
        return authority.sign(data, "0.3", extensions=lambda e: [(o, c, v.replace(b"kernels-community", b"kernels-communitY")) for o, c, v in e]).encode()

    def good(data):
        return authority.sign(data, "new").encode()

    for i, (bundle, status, strict, words) in enumerate([
            (good, 0, 0, "is signed by https://github.com/huggingface/kernels-community/.github/workflows/build.yaml@refs/heads/main"),
            (lambda data: good(data + b" "), 4, 4, "other-bytes"), (lambda data: good(data)[:-9], 4, 4, "not-json"), (stranger, 0, 4, "identity"), (None, 0, 4, "has no signature")]):
        case.serve(kernel("sha256", signed=bundle, source=f"https://{i}"))
        for level, expected in (("publisher", status), ("signed", strict)):
            got = case.get("--json", "--refresh", "--trust-level", level, "--trusted-root", case.root)
            assert got[:2] == (expected, "" if expected else "g"), got
            assert words in (got[2] if expected else case.out)
    case.serve(kernel(signed=good))
    case.refused("has no digest", words=("--refresh", "--trust-level", "signed", "--trusted-root", case.root))
    case.serve(kernel("sha256", signed=lambda data: b" " * ((1 << 20) + 1)))
    case.hub.paths()
    case.refused("metadata.json.sigstore is 1048577 bytes long, at most 1048576 are read", words=("--refresh",))
    assert not [p for p in case.hub.paths() if "/resolve/" in p and "metadata.json" not in p]
    case.serve(kernel("sha256", signed=good))
    case.loaded("--refresh", "--trust-level", "signed", "--trusted-root", case.root)
    for path in [case.build, *case.folder.glob("blobs/*")]:
        os.utime(path)
    subprocess.run(["sleep", "0.1"], check=True)
    for _ in range(2):  # the second time by what the receipt says
        found = case.decisions("--trust-level", "signed", "--trusted-root", case.root, offline=True)
        assert found["signature"][0] == "accepted"
    assert "as a receipt says" in found["content"][1]
    case.refused("unknown-authority", words=("--trust-level", "signed"), offline=True)  # by another root it isn't


def test_signatures_that_are_forged(case, tmp_path):
    """One of each kind of those that tests/oracle/test_signature.py tells apart: here nothing runs."""
    rows = [("workflow 'https://github.com/huggingface/kernels-community/.github/workflows/build.yaml@refs/pull/7/merge'", "identity"),
            ("workflow 'https://github.com/huggingface/kernels-community/.github/workflows/other.yaml@refs/heads/main'", "identity"), ("key: not on the curve", "bad-key"),
            ("no promise and no timestamps", "no-time"), ("begins a second later than used", "expired"), ("promise: over another entry", "forged-promise"),
            ("checkpoint: changed after it was signed", "forged-checkpoint"), ("proof: index is the size", "bad-field"), ("promise: time after the year 9999", "bad-field"),
            ("treeSize twice", "not-json")]
    changes = {what: (kind, steps, reason) for what, kind, steps, reason in (
        *text_changes(), *certificate_changes(), *proof_changes(), *checkpoint_changes("0.1", authority.old_log, authority.new_log), *promise_changes())}
    case.serve(kernel("sha256", signed=lambda data: authority.sign(data, "0.3").encode()))
    words = ("--trust-level", "signed", "--trusted-root", case.root)
    case.loaded(*words)
    local = tmp_path / "local"
    shutil.copytree(case.snapshot, local)
    case.loaded(*words, name=local)
    for what, expected in rows:
        kind, steps, reason = changes[what]
        assert reason == expected, what
        (local / BUILD / "metadata.json.sigstore").write_text(authority.sign((local / BUILD / "metadata.json").read_bytes(), kind, **steps))
        case.refused(f"doesn't count ({reason})", name=local, words=words)


def test_what_is_too_long(case):
    """What isn't what it says it is has status 4; what can't be read, whosever it is, status 1. None of it is read to its end."""
    case.serve(kernel("sha256", signed=lambda data: authority.sign(data, "0.3").encode()))
    words = "--trusted-root", case.root
    case.loaded(*words)
    right = {path: path.read_bytes() for path in case.build.iterdir()}
    for path in right:  # grown in the cache: as if it weren't there
        os.truncate(path, 1 << 31)
        case.refused("isn't in the cache", path.name, status=5, words=words, offline=True)
        verified = khub(None, case.cache, "verify", "org/marks@v1", *map(str, words), env={"HF_HUB_OFFLINE": "1"})
        assert verified.returncode == 4 and f"{path.name}: has 2147483648 bytes, the commit's list of files says {len(right[path])}" in verified.stdout + verified.stderr, verified
        case.loaded(*words)
        assert path.read_bytes() == right[path]
    for path in (*case.folder.glob("trees/*"), *case.receipts()):
        os.truncate(path, 1 << 31)
    case.loaded(*words)
    local = case.cache.parent / "local"
    shutil.copytree(case.snapshot, local)
    bundle = local / BUILD / "metadata.json.sigstore"
    os.truncate(bundle, 1 << 31)
    case.refused("the signature of metadata.json can't be one", "is 2147483648 bytes long, at most 1048576 are read", name=local)
    bundle.unlink()
    bundle.mkdir()
    case.refused("the signature of metadata.json can't be one", "is a directory, not a file", name=local)
    for option, most in (("--lock", 16 << 20), ("--trusted-root", 1 << 20), ("KHUB_TRUST_FILE", 1 << 20)):
        long = case.cache.parent / "long"
        long.write_text("")
        os.truncate(long, most + 1)
        how = {"words": (option, long)} if option.startswith("--") else {option: str(long)}
        case.refused(f"long: is {most + 1} bytes long, at most {most} are read", status=1, **how)
    files = kernel("sha256", signed=None, files={"layers.json": b" " * ((16 << 20) + 1)})
    case.serve(files)
    case.refused("layers.json", "is 16777217 bytes long, at most 16777216 are read", status=1, words=("--refresh",))


def test_a_cache_that_another_user_prepared(case):
    """Everything in it agrees with itself: blobs, names, the list of files."""
    case.serve(kernel("sha256"))
    case.loaded()
    blob = (case.build / LIBRARY).resolve()
    evil = blob.with_name(hashlib.sha1(b"blob %d\0" % len(EVIL) + EVIL).hexdigest())
    evil.write_bytes(EVIL)
    (case.build / LIBRARY).unlink()
    (case.build / LIBRARY).symlink_to(os.path.relpath(evil, case.build))
    listed = case.folder / "trees" / f"{case.snapshot.name}.json"
    listed.write_text(listed.read_text().replace(blob.name, evil.name))
    metadata = case.build / "metadata.json"
    text = json.loads(metadata.read_text())
    del text["digest"]
    old = metadata.resolve()
    new = old.with_name(hashlib.sha1(b"blob %d\0" % len(json.dumps(text)) + json.dumps(text).encode()).hexdigest())
    new.write_text(json.dumps(text))
    metadata.unlink()
    metadata.symlink_to(os.path.relpath(new, case.build))
    listed.write_text(listed.read_text().replace(old.name, new.name).replace(f'"size": {old.stat().st_size}', f'"size": {new.stat().st_size}'))
    for path in case.receipts():
        path.unlink()
    assert case.get(offline=True)[1] == "e"  # it would run, were it ours
    for path in [case.cache, *case.cache.rglob("*")]:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    case.refused("isn't believed", str(OTHER), offline=True)
    case.hub.paths()
    case.loaded()  # the Hub knows better, and what is wrong is fetched
    asked = case.hub.paths()  # what the cache says isn't believed, neither which commit it is nor what is in it
    assert any(p.endswith("/refs") for p in asked) and any("/tree/" in p for p in asked)
    for path in [case.cache, *case.cache.rglob("*")]:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    found = case.decisions("--trust", "org")
    assert found["cache"][0] == "noted" and "another user may write" in found["cache"][1]
    case.refused("isn't believed", offline=True)


def test_a_redirect_that_somebody_changed(case):
    """Another kernel of a trusted publisher isn't the one that was asked for."""
    def to(name):
        return b'kind = "redirect"\ndestination = "org/%s"\n' % name

    case.serve(kernel("sha256"))
    case.hub.repos["kernels/org/barks"] = {"v1": kernel() | {f"{BUILD}/{LIBRARY}": EVIL}}
    case.hub.repos["kernels/org/front"] = {"v1": {"kernel-status.toml": to(b"marks")}}
    assert case.get(name="org/barks@v1")[:2] == (0, "e")
    case.loaded(name="org/front@v1")
    status = next(case.cache.glob("kernels--org--front/snapshots/*/kernel-status.toml"))
    status.write_bytes(to(b"barks"))  # through the link
    verified = khub(case.hub, case.cache, "verify", "org/front@v1")
    assert verified.returncode == 4 and status.read_bytes() == to(b"barks"), verified.stderr  # it mends nothing
    hashes = [hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest() for text in (to(b"barks"), to(b"marks"))]
    case.refused("kernel-status.toml", "doesn't match its name", *hashes, name="org/front@v1", offline=True)
    assert "fetched again" in case.loaded(name="org/front@v1") and status.read_bytes() == to(b"marks")
    case.loaded(name="org/front@v1", offline=True)
    listed = next(case.cache.glob("kernels--org--front/trees/*.json"))
    for path in (status.resolve(), listed):
        os.chown(path, OTHER, OTHER)
    case.refused("nothing proves what its kernel-status.toml says", str(OTHER), name="org/front@v1", offline=True)
    case.loaded(name="org/front@v1")
    listed.unlink()  # another tool's snapshot has none
    case.refused("nothing proves what its kernel-status.toml says", str(OTHER), name="org/front@v1", offline=True)
    os.chown(status.resolve(), 0, 0)
    case.loaded(name="org/front@v1", offline=True)


def test_what_a_changed_file_says_of_gpus(case, tmp_path):
    """A build is chosen by what its publisher says that it was built for."""
    machine, build = tmp_path / "machine.json", "build/tvm-ffi01-cu128-x86_64-linux"
    machine.write_text('{"os":"linux","arch":"x86_64","backend":"cu128","tvm_ffi":"0.1","archs":["9.0"]}')
    files = kernel(backend={"type": "cuda", "archs": ["9.0"]})
    case.serve({path.replace(BUILD, build): content for path, content in files.items()})

    def decision(hub=case.hub, *words):
        run = khub(hub, case.cache, "variants", "org/marks@v1", "--platform", machine, "--json", *words)
        found, = json.loads(run.stdout)["variants"]
        return found["decision"], found["reason"], run.stderr

    kind, reason, _ = right = decision()
    metadata = case.snapshot / build / "metadata.json"
    text = metadata.read_bytes()
    metadata.write_bytes(text.replace(b'"9.0"', b'"7.5"'))
    assert metadata.read_bytes() != text
    assert "doesn't match its name" in decision(None, "--offline")[1]
    mended = decision()
    assert mended[:2] == (kind, reason) and "fetched again" in mended[2] and metadata.read_bytes() == text
    assert decision(None, "--offline")[:2] == right[:2]


def test_a_version_that_a_changed_file_claims(case):
    """Offline, without a ref, snapshots say themselves of which version they are."""
    case.serve(kernel("sha256", version=2), "v2")
    case.loaded(name="org/marks@v2")
    shutil.rmtree(case.folder / "refs")
    metadata = case.build / "metadata.json"
    right = metadata.read_bytes()
    metadata.write_bytes(right.replace(b'"version": 2', b'"version": 3'))
    assert metadata.read_bytes() != right
    for name in ("org/marks@v3", "org/marks@>=3"):
        case.refused("isn't in the cache", status=5, name=name, offline=True)
    metadata.write_bytes(right)
    case.loaded(name="org/marks@>=2", offline=True)


def give_away(case):
    for path in [case.cache, *case.cache.rglob("*")]:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)


def sign(data):
    return authority.sign(data, "0.3").encode()


def test_a_signature_proves_another_users_cache(case):
    """Namely which kernel it is, which version and what is in it: not the commit."""
    case.serve(kernel("sha256", signed=sign))
    case.loaded("--trusted-root", case.root)
    give_away(case)
    case.refused("isn't believed", offline=True)
    commit, lock, words = case.snapshot.name, case.cache.parent / "kernels.lock", ("--trusted-root", case.root)
    for asked in ("org/marks@v1", "org/marks@>=1,<2"):
        found = case.decisions(*words, name=asked, offline=True)
        assert "content" not in found and found["digest"][0] == "accepted" and f"that it is commit {commit}'s isn't known" in found["digest"][1]
    lock.write_text(json.dumps([{"dependency": {"repo-id": "org/marks", "version": 1}, "lock": {"commit": commit}}]))
    case.refused("a lock means one commit", commit, str(OTHER), words=(*words, "--lock", lock), offline=True)
    case.refused("no version was asked for", commit, words=words, name=f"org/marks@{commit}", offline=True)
    env = {"HF_HUB_OFFLINE": "1"}
    checked = khub(None, case.cache, "verify", "org/marks@v1", *words, env=env)
    assert checked.returncode == 0, checked.stdout
    for name, more, fact in (("org/marks@v1", ("--lock", lock), "a lock means one commit"), (f"org/marks@{commit}", (), "no version was asked for")):
        checked = khub(None, case.cache, "verify", name, *words, *more, env=env)
        assert checked.returncode == 4 and fact in checked.stdout + checked.stderr
    case.loaded(*words, "--lock", lock)  # the Hub knows


@pytest.mark.parametrize("more, fact", [({"name": "other"}, "another kernel's (it says other, version 1)"), ({"version": 0}, "another version's (it says marks, version 0)")])
def test_another_kernel_that_is_signed_in_another_users_cache(case, more, fact):
    case.serve(kernel("sha256", signed=sign, **more))
    words = "--trusted-root", case.root
    case.loaded(*words)
    give_away(case)
    case.refused(fact, "isn't believed", words=words, offline=True)


def test_a_cache_that_others_may_write_to_or_nobody(case):
    case.serve(kernel("sha256"))
    case.loaded()
    for path in case.receipts():
        path.unlink()
    os.chmod((case.build / LIBRARY).resolve(), 0o666)
    found = case.decisions()
    assert found["cache"][0] == "noted" and LIBRARY in found["cache"][1] and not case.receipts()
    os.chmod((case.build / LIBRARY).resolve(), 0o644)
    (case.folder / f"receipt.{case.snapshot.name}.{VARIANT}.txt").mkdir()  # so that none can be kept
    assert case.loaded() == ""


def test_a_downgrade(case):
    case.serve(kernel("sha256", version=1), "v2")
    found = case.decisions(name="org/marks@v2")
    assert found["version"] == ("noted", f"org/marks: version 2 was asked for, the metadata.json of {BUILD} says version 1")
    lock = case.cache.parent / "kernels.lock"
    lock.write_text(json.dumps([{"dependency": {"repo-id": "org/marks", "version": 2}, "lock": {"commit": case.snapshot.name}}]))
    case.refused("version 2 was asked for", name="org/marks@v2", words=("--lock", lock))


@pytest.mark.parametrize("mode", ["rename", "write"])
def test_somebody_swaps_all_the_time(case, mode):
    case.serve(kernel("sha256"))
    case.loaded()
    good, evil = case.cache.parent / "good", case.cache.parent / "evil"
    good.write_bytes(GOOD)
    evil.write_bytes(EVIL)
    library = (case.build / LIBRARY).resolve()

    def attack(name, count):
        case.mark.unlink(missing_ok=True)
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS")}
        env = kept | {"HOME": str(case.cache), "HF_HUB_CACHE": str(case.cache), "HF_HUB_OFFLINE": "1", "FAKE_MARK_FILE": str(case.mark), "KHUB_TVM_FFI": "/nowhere"}
        done = subprocess.run([LOADS, name, str(count), mode, library, good, evil], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return json.loads(done.stdout), case.mark.read_text() if case.mark.exists() else ""

    ends, ran = attack("org/marks@v1", 40 if os.environ["KHUB_SANITIZE"] == "1" else 150)
    assert ends["other"] == 0 and ends["loaded"] > 0 and ran == "g" * ends["loaded"], (ends, ran)
    assert case.get("--json", name=str(case.snapshot), offline=True)[:2] == (0, "g")  # by its path: the digest is proven
    if mode == "rename":
        case.serve(kernel(), "v2")
        case.loaded(name="org/marks@v2")
        assert "e" in attack(str(case.snapshot), 30)[1]  # nothing says what that should be: the attack is a real one


@pytest.mark.parametrize("directory", ["", "blobs", "snapshots", "refs", "trees", ".no_exist", "moved"])
def test_nothing_is_removed_through_a_link(case, directory):
    case.serve(kernel("sha256"))
    case.loaded()
    there, place = case.cache.parent / "elsewhere", case.folder / directory
    if place.exists():
        shutil.move(place, there)
    for path in ((there / case.snapshot.name / "d" / "file"), (there / ("a" * 40) / "file"), (there / ("b" * 40))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    if directory != "refs":
        for ref in case.folder.glob("refs/*"):
            ref.unlink()
    place.symlink_to(there)
    before = sorted([*there.rglob("*"), *case.folder.rglob("*")])
    told = khub(None, case.cache, "cache", "ls", "-v")
    assert f"{str(place).rstrip('/')}: is a link" in told.stdout + told.stderr
    pruned = khub(None, case.cache, "cache", "prune")
    assert pruned.returncode == 0 and "-v lists" in pruned.stderr, pruned
    refused = khub(None, case.cache, "cache", "rm", "org/marks")
    assert refused.returncode == 1 and "nothing is removed through it" in refused.stderr, refused
    assert sorted([*there.rglob("*"), *case.folder.rglob("*")]) == before


def test_a_directory_that_becomes_a_link_while_it_is_removed(case):
    case.serve(kernel("sha256"))
    case.loaded()
    there, doomed = case.cache.parent / "elsewhere", case.folder / "snapshots" / ("a" * 40) / "d"
    there.mkdir()
    doomed.mkdir(parents=True)
    names = [f"file{i:04}" for i in range(2000)]
    for folder in (there, doomed):
        for name in names:
            (folder / name).touch()
    swap = f"""
import os
os.chdir({str(case.folder)!r})
print(flush=True)
while True:
    for name in os.listdir("."):
        if name.startswith(".khub-") and os.path.isdir(name + "/d"):
            os.rename(name + "/d", name + "/e")
            os.symlink({str(there)!r}, name + "/d")
            raise SystemExit
"""
    with subprocess.Popen([sys.executable, "-c", swap], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as swapper:
        swapper.stdout.readline()
        khub(None, case.cache, "cache", "prune")
        swapper.kill()
    assert sorted(path.name for path in there.iterdir()) == names
