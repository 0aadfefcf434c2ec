"""What takes an oracle long is kept in the build directory, under a hash of all that it was made from."""
import hashlib
import os
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["KHUB_BINARY"], "tests", "kept")
PACKAGES = Path(os.environ["KHUB_SOURCE"], "deps", "test.txt")  # every package by version and hash
DAYS = 14  # that an answer stays which nobody asks for


def digest(parts):
    """Of bytes, files (as Path) and what has a repr that says it all."""
    whole = hashlib.sha256(f"{sys.version}{PACKAGES.read_text()}".encode())
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part if isinstance(part, bytes) else repr(part).encode()
        whole.update(b"%d " % len(data) + data)
    return whole.hexdigest()


def kept(parts, make):
    """make()'s bytes, made once for these parts: they name the code that makes them too."""
    path = FOLDER / digest(parts)
    try:
        data = path.read_bytes()
        os.utime(path)
        return data
    except FileNotFoundError:
        pass
    data = make()
    FOLDER.mkdir(exist_ok=True)
    part = FOLDER / f"{path.name}.{os.getpid()}"
    part.write_bytes(data)
    part.rename(path)
    for old in FOLDER.iterdir():
        if old.stat().st_mtime < time.time() - DAYS * 86400:
            old.unlink(missing_ok=True)
    return data
