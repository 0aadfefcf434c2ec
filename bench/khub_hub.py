"""khub get, khub download against the Python packages and curl, on loopback, in one run, best and median.

Goals: a process warm by commit 5 ms and no request, warm by version 8 ms; cold 40 ms for 5 small files; 1 GB, hashed and in place, at
0.8 of the rate of `curl -o`, at most 40 MB resident; 2,000 files of 1 KB at 10 times huggingface_hub's rate.

Small things come from `khub serve`; 1 GB from nginx, whose folder holds the Hub's answers as files (nginx and curl are needed for that part)."""

import hashlib
import json
import os
import pathlib
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

STAGE = pathlib.Path(os.environ["KHUB_STAGE"])
KHUB = str(STAGE / "bin" / "khub")
PEER = os.environ["KHUB_PEER_PYTHON"]  # has kernels and huggingface_hub
VARIANT = f"tvm-ffi01-cpu-{platform.machine()}-linux"
GET = """
import sys
from kernels import get_kernel
get_kernel("org/small", version=1, backend="cpu", trust_remote_code=True)
"""
SNAPSHOT = """
import sys
from huggingface_hub import snapshot_download
snapshot_download(sys.argv[1], repo_type="kernel", revision=sys.argv[2])
"""


def run(command, env):
    """Milliseconds, and megabytes resident at most."""
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(command[0], command, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    took = (time.perf_counter_ns() - start) / 1e6
    assert os.waitstatus_to_exitcode(status) == 0, command
    return took, usage.ru_maxrss / 1024


def report(what, samples, rate=None):
    times = [took for took, _ in samples]
    line = f"{what:46}  best {min(times):9.2f} ms   median {statistics.median(times):9.2f} ms"
    if rate:
        line += f"   best {rate / min(times):8.1f} {'files' if rate < 1e5 else 'kB'}/ms"
    print(f"{line}   {max(mb for _, mb in samples):5.0f} MB   ({len(times)} runs)", flush=True)


def measure(contenders, runs, before=lambda: None):
    """Each in turn in every round, so that a slow moment hits all. {name: (command, env, runs of it)}"""
    samples = {name: [] for name in contenders}
    for i in range(runs):
        for name, (command, env, most) in contenders.items():
            if i >= most:
                continue
            before()
            samples[name].append(run(command, env))
    return samples


class Served:
    """khub serve over a folder."""

    def __init__(self, folder):
        self.process = subprocess.Popen([KHUB, "serve", str(folder), "--port", "0", "-q"], stdout=subprocess.PIPE, text=True)
        self.endpoint = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self.endpoint

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)


def environment(cache, endpoint):
    return {**os.environ, "HF_HUB_CACHE": str(cache), "KERNELS_CACHE": str(cache), "HF_HOME": str(cache), "HF_ENDPOINT": endpoint,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1"}


def small(where):
    """A built-in kernel as org/small: five small files."""
    build = where / "org" / "small" / "v1" / "build"
    shutil.copytree(STAGE / "share" / "khub" / "kernels" / "khub" / "activation" / "build", build)
    kept = [p for p in build.rglob("*") if p.is_file()]
    for i in range(len(kept), 5):
        (build / VARIANT / f"more_{i}.py").write_text("# filling\n")


def processes(where):
    cache, cold = where / "cache", where / "cold"
    with Served(where / "hub") as endpoint:
        env = environment(cache, endpoint)
        trust = ["--trust", "org"]
        built = subprocess.run([KHUB, "get", "org/small@v1", *trust], env=env, check=True, capture_output=True, text=True).stdout
        commit = built.split("/snapshots/")[1].split("/")[0]
        print(f"org/small: {sum(1 for _ in pathlib.Path(built.strip()).rglob('*'))} files")
        contenders = {
            "/bin/true": (["/bin/true"], env, 300),
            "khub get, warm by commit": ([KHUB, "get", f"org/small@{commit}", *trust], env, 300),
            "khub get, warm by version": ([KHUB, "get", "org/small@v1", *trust], env, 300),
            "khub get, warm by version, asked for": ([KHUB, "get", "org/small@v1", "--refresh", *trust], env, 300),
        }
        contenders["kernels (Python), warm by version"] = ([PEER, "-c", GET], env, 5)
        for name, samples in measure(contenders, 300).items():
            report(name, samples)
        again = os.path.join(os.environ["KHUB_BINARY"], "bench", "get")
        run([again, "org/small@v1"], {**env, "KHUB_PREFIX": str(STAGE)})
        env = environment(cold, endpoint)
        contenders = {"khub get, cold": ([KHUB, "get", "org/small@v1", *trust], env, 50),
                      "kernels (Python), cold": ([PEER, "-c", GET], env, 5)}
        for name, samples in measure(contenders, 50, lambda: shutil.rmtree(cold, ignore_errors=True)).items():
            report(name, samples)


def many(where, count=2000):
    files = where / "hub" / "org" / "many" / "v1" / "build" / VARIANT
    files.mkdir(parents=True)
    for i in range(count):
        (files / f"f{i:04}.txt").write_bytes(hashlib.sha512(str(i).encode()).digest() * 16)
    cold = where / "cold"
    with Served(where / "hub") as endpoint:
        env = environment(cold, endpoint)
        contenders = {"khub download, 2,000 files of 1 KB": ([KHUB, "download", "org/many@v1", "--all", "--trust", "org"], env, 10),
                      "snapshot_download, 2,000 files of 1 KB": ([PEER, "-c", SNAPSHOT, "org/many", "v1"], env, 2)}
        for name, samples in measure(contenders, 10, lambda: shutil.rmtree(cold, ignore_errors=True)).items():
            report(name, samples, count)


def nginx(root, port):
    root.mkdir(parents=True, exist_ok=True)
    config = root.parent / "nginx.conf"
    config.write_text(f"""daemon off; master_process off; pid {root.parent}/nginx.pid; error_log stderr;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; keepalive_requests 100000;
  client_body_temp_path {root.parent}/t1; proxy_temp_path {root.parent}/t2; fastcgi_temp_path {root.parent}/t3;
  uwsgi_temp_path {root.parent}/t4; scgi_temp_path {root.parent}/t5;
  server {{ listen 127.0.0.1:{port}; root {root}; default_type application/octet-stream;
    location /api/ {{ default_type application/json; try_files $uri $uri.json =404; }} }} }}""")
    process = subprocess.Popen(["nginx", "-c", str(config), "-e", "stderr"])
    for _ in range(100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    raise RuntimeError("nginx doesn't answer")


def large(where, size=1 << 30):
    root, cold, commit = where / "nginx" / "root", where / "cold", "c" * 40
    data = root / "kernels" / "org" / "large" / "resolve" / commit / "build" / "data.bin"
    data.parent.mkdir(parents=True)
    digest, block = hashlib.sha256(), os.urandom(1 << 20)
    with open(data, "wb") as file:
        for i in range(size >> 20):
            piece = i.to_bytes(8, "little") + block[8:]
            digest.update(piece)
            file.write(piece)
    api = root / "api" / "kernels" / "org" / "large"
    for path, answer in {
        api / "refs.json": {"branches": [{"name": "v1", "ref": "refs/heads/v1", "targetCommit": commit}], "tags": [], "converts": []},
        api / "tree" / f"{commit}.json": [{"type": "file", "path": "build/data.bin", "size": size, "oid": "0" * 40,
                                           "lfs": {"oid": digest.hexdigest(), "size": size, "pointerSize": 134}}],
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(answer))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = nginx(root, port)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        env = environment(cold, endpoint)
        out = where / "out.bin"
        contenders = {
            "curl -o, 1 GB": (["curl", "-s", "-o", str(out), f"{endpoint}/{data.relative_to(root)}"], env, 7),
            "khub download, 1 GB, hashed and in place": ([KHUB, "download", "org/large@v1", "--all", "--trust", "org"], env, 7),
        }

        def clean():
            shutil.rmtree(cold, ignore_errors=True)
            out.unlink(missing_ok=True)

        samples = measure(contenders, 7, clean)
        for name, taken in samples.items():
            report(name, taken, size / 1000)
        best = [min(took for took, _ in taken) for taken in samples.values()]
        print(f"khub's rate is {best[0] / best[1]:.2f} of curl's, best against best")
    finally:
        process.terminate()
        process.wait(10)


def main():
    wanted = set(sys.argv[1:]) or {"processes", "many", "large"}
    # In memory where there is such a place: a disk that others use is no measure of any of these.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as where:
        where = pathlib.Path(where)
        small(where / "hub")
        if "processes" in wanted:
            processes(where)
        if "many" in wanted:
            many(where)
        if "large" in wanted and shutil.which("nginx") and shutil.which("curl"):
            large(where)


main()
