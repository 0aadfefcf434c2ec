"""A `khub serve` for tests: started on a free port, stopped by its process id."""
import collections
import contextlib
import functools
import importlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

STAGE = pathlib.Path(os.environ["KHUB_STAGE"])
KHUB = STAGE / "bin" / "khub"
BUILT_IN = STAGE / "share" / "khub" / "kernels" / "khub"


class Hub:
    def __init__(self, process, url, log):
        self.process, self.url, self.log_file = process, url, log

    def log(self):
        return self.log_file.read_text(errors="replace")

    def stop(self, number=signal.SIGTERM, within=30):
        """Its exit status."""
        self.process.send_signal(number)
        return self.process.wait(within)


@contextlib.contextmanager
def serving(folder, *options, log=None, env=None, command=(KHUB, "serve"), **more):
    """Yields a Hub of `folder`; afterwards it must have ended well. `log`: where stderr goes."""
    log = pathlib.Path(log or str(folder).rstrip("/") + ".log")
    with open(log, "wb") as errors:
        process = subprocess.Popen([*command, folder, "--port", "0", *options], stdout=subprocess.PIPE, stderr=errors,
                                   stdin=subprocess.DEVNULL, env=env, **more)
    try:
        assert select.select([process.stdout], [], [], 30)[0], "it doesn't say its address"
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http"), log.read_text(errors="replace")
        hub = Hub(process, url, log)
        yield hub
        if process.poll() is None:
            hub.stop()
        assert process.returncode == 0, hub.log()
        assert "Sanitizer" not in hub.log() and "runtime error" not in hub.log(), hub.log()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


Answer = collections.namedtuple("Answer", "status headers body")


def ask(hub, path, method="GET", body=None, **headers):
    """One request to a Hub; `headers` with "_" for "-"."""
    request = urllib.request.Request(hub.url + path, method=method, data=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=60) as got:
            return Answer(got.status, got.headers, got.read())
    except urllib.error.HTTPError as got:
        return Answer(got.code, got.headers, got.read())


def eventually(answer, wanted):
    """answer(), asked again until wanted(it) holds: a change in DIR is seen after a while."""
    for _ in range(400):
        got = answer()
        if wanted(got):
            break
        time.sleep(0.05)
    return got


@functools.cache
def import_packages():
    """What a program of python() starts with: once, for all of them."""
    import huggingface_hub._snapshot_download
    import huggingface_hub.hf_api  # noqa: F401


def run_program(program, env, folder, out, errors):
    """In a child of this process: ends it."""
    status = 1
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)
        importlib.reload(sys.modules["huggingface_hub.constants"])  # its settings, which everything reads there, are of this environment
        exec(compile("import json, huggingface_hub as h\napi = h.HfApi()\n" + program, "program", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def python(hub, tmp_path, program, **environment):
    """Runs a program in a process of its own, whose Hub is ours; returns what it prints, as JSON. A child of this one, so that packages
    are imported once."""
    env = {**os.environ, "HF_ENDPOINT": hub if isinstance(hub, str) else hub.url, "HF_HOME": str(tmp_path / "home"),
           "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1", **environment}
    if "HF_TOKEN" not in environment:
        env.pop("HF_TOKEN", None)
    import_packages()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            run_program(program, env, tmp_path, out, errors)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, errors):
            file.seek(0)
        assert status == 0, errors.read()
        return json.loads(out.read().splitlines()[-1])
