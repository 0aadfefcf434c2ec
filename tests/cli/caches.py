"""Caches as the Hugging Face tools lay them out, written file by file."""
import hashlib
import os
import subprocess

from fakes import KHUB

A, B, C = "a" * 40, "b" * 40, "c" * 40


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def add(cache, kind, repo, commit, files, refs=(), name=git_hash):
    """Adds a snapshot of `files` ({path: bytes}); returns the repository's folder."""
    folder = cache / (kind + "s--" + repo.replace("/", "--"))
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        (folder / "blobs" / name(data)).write_bytes(data)
        link = folder / "snapshots" / commit / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(folder / "blobs" / name(data), link.parent))
    for ref in refs:
        (folder / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (folder / "refs" / ref).write_text(commit)
    return folder


def khub_cache(cache, *arguments, **environment):
    """khub cache …, on that cache alone; "": on the one that the environment names."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "KERNELS_", "HUGGINGFACE_", "XDG_"))}
    return subprocess.run([KHUB, "cache", *map(str, arguments), *(["--cache-dir", str(cache)] if cache else [])], capture_output=True, text=True,
                          timeout=120, env=clean | environment)
