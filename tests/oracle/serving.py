"""A `khub serve` for tests: started on a free port, stopped by its process id."""
import contextlib
import os
import pathlib
import select
import signal
import subprocess

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
def serving(folder, *options, log=None, env=None, **more):
    """Yields a Hub of `folder`; afterwards it must have ended well. `log`: where stderr goes."""
    log = pathlib.Path(log or str(folder).rstrip("/") + ".log")
    with open(log, "wb") as errors:
        process = subprocess.Popen([KHUB, "serve", folder, "--port", "0", *options], stdout=subprocess.PIPE, stderr=errors,
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
