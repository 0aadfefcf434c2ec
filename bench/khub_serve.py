"""khub serve beside nginx that serves the same files, on loopback, in turn: small files by wrk (at least half of nginx's
rate), one file of 1 GB by curl. Prints best and median. Without wrk, nginx or curl here, what needs them is left out and said."""

import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
ROUNDS, SECONDS, GIGABYTE = 5, 2, 1_000_000_000
SMALL, LARGE = "/org/m/resolve/main/config.json", "/org/m/resolve/main/large.bin"

NGINX = """worker_processes auto; daemon off; pid {0}/pid; error_log {0}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; types {{ }} default_type application/json;
  client_body_temp_path {0}/t1; proxy_temp_path {0}/t2; fastcgi_temp_path {0}/t3; uwsgi_temp_path {0}/t4; scgi_temp_path {0}/t5;
  server {{ listen 127.0.0.1:{1}; root {2}; }} }}
"""


@contextlib.contextmanager
def running(command, **more):
    process = subprocess.Popen([str(c) for c in command], stderr=subprocess.DEVNULL, **more)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def make(top):
    """The same files as a repository, and as nginx finds them under the same addresses."""
    state = top / "dir/models/org/m/main"
    state.mkdir(parents=True)
    (state / "config.json").write_text('{"a": 1}' * 64)
    with open(state / "large.bin", "wb") as file:
        for _ in range(GIGABYTE // 1_000_000):
            file.write(os.urandom(1_000) * 1_000)
    (top / "nginx/org/m/resolve").mkdir(parents=True)
    (top / "nginx/org/m/resolve/main").symlink_to(state)
    top.chmod(0o755)  # nginx's workers are another user


def wrk(url, connections):
    done = subprocess.run(["wrk", f"-t{min(2, connections)}", f"-c{connections}", f"-d{SECONDS}", url], capture_output=True, text=True, check=True)
    assert "Non-2xx" not in done.stdout and "Socket errors" not in done.stdout, done.stdout
    return float(next(line for line in done.stdout.splitlines() if line.startswith("Requests/sec")).split()[1])


def curl(url):
    start = time.perf_counter()
    subprocess.run(["curl", "-sf", "-o", "/dev/null", url], check=True)
    return GIGABYTE / 1e6 / (time.perf_counter() - start)


def compare(what, unit, measure, servers):
    found = {name: [] for name in servers}
    for _ in range(ROUNDS):
        for name, url in servers.items():
            found[name].append(measure(url))
    for name, values in found.items():
        ratio = f"   {statistics.median(values) / statistics.median(found['nginx']):.2f} of nginx" if "nginx" in found else ""
        print(f"{what:36} {name:11} best {max(values):9.0f} {unit}   median {statistics.median(values):9.0f} {unit}{ratio}")


def resident(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1000


def run(top):
    make(top)
    (top / "nginx.conf").write_text(NGINX.format(top, 18_217, top / "nginx"))
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(running([KHUB, "serve", top / "dir", "--port", "0", "-q"], stdout=subprocess.PIPE, text=True))
        servers = {"khub serve": hub.stdout.readline().strip()}
        subprocess.run(["curl", "-sf", "-o", "/dev/null", servers["khub serve"] + "/api/models/org/m"], check=True) # hashed now
        if shutil.which("nginx"):
            stack.enter_context(running(["nginx", "-e", top / "error.log", "-c", top / "nginx.conf"]))
            servers["nginx"] = "http://127.0.0.1:18217"
            time.sleep(1)
        else:
            print("nginx isn't here: no ratios")
        if shutil.which("wrk"):
            for connections in (1, 64, 1000):
                compare(f"512 bytes, {connections} connections", "/s", lambda url: wrk(url + SMALL, connections), servers)
        else:
            print("wrk isn't here: no small files")
        compare("1 GB, one connection", "MB/s", lambda url: curl(url + LARGE), servers)
        print(f"khub serve had at most {resident(hub):.0f} MB resident")


def main():
    with tempfile.TemporaryDirectory() as top:
        run(pathlib.Path(top))


main()
