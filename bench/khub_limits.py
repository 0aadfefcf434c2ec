"""The built-in kernels, and a model made of them, beside the fastest peers and what the machine can do: the table of docs/bench.md.

    ./dev bench khub_limits                                   # all of it: minutes
    ./dev bench khub_limits -- linear --threads 2             # a part: norm softmax activation linear attention model process
    ./dev bench khub_limits -- linear:m=1, attention --time 2 # works whose name has that text; seconds for each
    ./dev bench khub_limits -- --save                         # and into bench/results/PROCESSOR.json

Kernels: khub bench calls both from C, in one process, sample by sample; torch through its C interface, into memory that is there
(or, where it has no such way, leaving its result in memory of its own), OpenBLAS cut by khub's pool. That is at least as fast as
torch called from Python. Models: embedders.py, a process each, in turns."""

import argparse
import ctypes
import datetime
import importlib.metadata
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
STAGE = pathlib.Path(os.environ["KHUB_STAGE"])
KHUB = STAGE / "bin" / "khub"
# A thread of OpenMP's looks for work for a few milliseconds, and two threads of two libraries don't fit on two processors: so long,
# some 200 µs, is enough between torch's own calls, and over before it is khub's turn.
ENVIRONMENT = {**os.environ, "KHUB_TORCH_DIR": os.environ["KHUB_TORCH"], "GOMP_SPINCOUNT": "30000", "HF_HUB_OFFLINE": "1"}

ROWS = [f"m={m},n=4096" for m in (1, 64, 2048)]
LINEAR = [f"m={m},n={n},k={k}" for n, k in ((1536, 384), (384, 1536), (4096, 1024)) for m in (1, 12, 64, 252, 2048)]
ATTENTION = [
    "b=1,t=252,s=252,h=12,g=12,d=32",
    "b=1,t=1024,s=1024,h=32,g=32,d=64,causal=1",
    "b=1,t=1,s=4096,h=32,g=32,d=64",
    "b=1,t=512,s=512,h=32,g=4,d=128,causal=1",
    "b=1,t=1,s=4096,h=32,g=4,d=128",
]
# Part: layers with their kernel, shapes, peers.
KERNELS = {
    "norm": (["khub/norm:RMSNorm", "khub/norm:LayerNorm"], ROWS, ["torch"]),
    "softmax": (["khub/softmax:Softmax"], ROWS, ["torch"]),
    "activation": ([f"khub/activation:{a}" for a in ("GeLU", "GeluTanh", "SiLU", "SiluAndMul")], ROWS, ["torch"]),
    "linear": (["khub/linear:Linear"], LINEAR, ["torch", "OpenBLAS"]),
    "attention": (["khub/attention:Attention"], ATTENTION, ["torch"]),
}
PARTS = [*KERNELS, "model", "process"]
# Against the better peer: at every point, and as a geometric mean. Of the limit: at least, for the works that `where` finds.
GOALS = {
    "norm": {"every": 1.0, "mean": 1.6, "limit": 0.85, "where": "m=2048"},
    "softmax": {"every": 1.0, "mean": 1.6, "limit": 0.85, "where": "m=2048"},
    "activation": {"every": 1.0, "mean": 1.6, "limit": 0.85, "where": "m=2048"},
    "linear": {"every": 0.97, "mean": 1.2, "limit": 0.85, "where": r"m=(64|252|2048),"},
    "attention": {"every": 1.5},
    "model": {"every": 1.3, "peers": ["onnxruntime"]},
    "process": {"every": 50},
}


def row(part, work, threads, khub, peers):
    """khub and each peer: {"best", "median"} in seconds."""
    return {"part": part, "work": work, "threads": threads, "khub": khub, "peers": peers, "share": None, "limit": None}


def summary(times):
    return {"best": min(times), "median": statistics.median(times)}


def asked(peer, options):
    return not options.peer or peer in options.peer


# --- kernels


def wanted(part, work, texts):
    return any(text in f"{work}," for text in texts[part])


def kernel_rows(part, threads, options, machine):
    kernels, shapes, peers = KERNELS[part]
    for kernel in kernels:
        layer = kernel.split(":")[1]
        chosen = [s for s in shapes if wanted(part, f"{layer} {s}", options.parts)]
        rows = {s: row(part, f"{layer} {s}", threads, None, {}) for s in chosen}
        for peer in (p for p in peers if chosen and asked(p, options)):
            for shape, case in measure(kernel, chosen, peer, threads, options.time, machine).items():
                take(rows[shape], peer, case)
        yield from (r for r in rows.values() if r["khub"])


def measure(kernel, shapes, peer, threads, seconds, machine):
    command = [KHUB, "bench", kernel, "--standard", "torch" if peer == "torch" else "khub", "--dtype", "float32", "--json"]
    command += ["--threads", str(threads), "--time", str(seconds * len(shapes))]
    command += [word for shape in shapes for word in ("--shape", shape)]
    given = json.loads(subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True).stdout)
    seen = machine.setdefault(f"{threads} thread{'s' * (threads > 1)}", {"fma_flops": 0, "copy_memory": 0, "copy_cache": 0})
    for name in seen:  # the best that was seen in this run
        seen[name] = max(seen[name], given["machine"][name])
    return {shape: {**case, "fma_flops": given["machine"]["fma_flops"]} for shape, case in zip(shapes, given["cases"])}


def take(to, peer, case):
    assert not case["reason"], (to["work"], case["reason"])
    khub, standard = ({kind: case[who][kind] for kind in ("best", "median")} for who in ("kernel", "standard"))
    to["peers"][peer] = {**standard, "ratio": case["ratio"]["median"]}
    # No kernel can be faster than copying what it reads and writes, nor than its multiply-adds.
    limits = {"copy": case["bytes"] / case["copy_bytes_per_second"], "FMA": case["flops"] / case["fma_flops"]}
    if to["khub"] is None or khub["best"] < to["khub"]["best"]:
        to["khub"], to["limit"] = khub, max(limits, key=limits.get)
        to["share"] = {kind: limits[to["limit"]] / seconds for kind, seconds in khub.items()}


# --- models


class Worker:
    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, HERE / "peers" / "embedders.py", name],
            env={**ENVIRONMENT, "RAYON_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.times, self.vector = {}, {}

    def ask(self, threads, what, repeats):
        print(threads, repeats, what, file=self.process.stdin, flush=True)
        times, vector = self.process.stdout.readline().split("|")
        self.times.setdefault((threads, what), []).extend(map(float, times.split()))
        self.vector[what] = [float(v) for v in vector.split()]
        time.sleep(0.01)  # a peer's threads may go on looking for work for a while


def model_rows(options):
    works = [(w, repeats) for w, repeats in {"12 tokens": 20, "252 tokens": 4, "256 sentences": 1}.items() if wanted("model", w, options.parts)]
    names = ["khub", "khub, standard functions", "onnxruntime", "torch", "sentence-transformers"]
    workers = [Worker(name) for name in names if name == "khub" or asked(name, options)]
    assert all(w.process.stdout.readline() == "ready\n" for w in workers)
    turns = [(t, w, r) for t in options.threads for w, r in works]
    for turn in turns:
        end = time.monotonic() + options.time * len(workers)
        for round in range(1000):
            if round >= 2 and time.monotonic() > end:
                break
            for worker in workers if round % 2 else workers[::-1]:
                worker.ask(*turn)
    for worker in workers:
        worker.process.stdin.close()
        worker.process.wait()
        for what, vector in worker.vector.items():
            worst = max(abs(a - b) for a, b in zip(vector, workers[0].vector[what]))
            assert worst < 1e-5, (worker.name, what, worst)
    for threads, what, _ in turns:
        times = {w.name: summary(w.times[threads, what]) for w in workers}
        yield row("model", what, threads, times.pop("khub"), times)


# --- whole processes

ENCODE = "import sys, sentence_transformers as s; s.SentenceTransformer(sys.argv[1], device='cpu').encode(sys.argv[2])"


def run_process(command, null):
    """Seconds, and bytes resident at most."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, ENVIRONMENT, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (command, status)
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def process_rows(options):
    model, text = os.environ["KHUB_MODEL"], "kernel " * 10
    ways = {
        "khub": ([str(KHUB), "embed", "--model", model, "--kernels", text], 5),
        "sentence-transformers": ([sys.executable, "-c", ENCODE, model, text], 1),
    }
    taken = {name: [] for name in ways}
    with open(os.devnull, "w") as null:
        for round in range(3):
            for name, (command, repeats) in ways.items():
                some = [run_process(command, null.fileno()) for _ in range(repeats)]
                taken[name] += some if round else []  # the first brings the files into memory
    for i, work in enumerate(("one sentence, seconds", "one sentence, resident bytes")):
        if wanted("process", work, options.parts):
            times = {name: summary([t[i] for t in some]) for name, some in taken.items()}
            yield row("process", work, 2, times.pop("khub"), times)


# --- the table


def amount(value, work):
    if "bytes" in work:
        return f"{value / 1e6:8.1f} MB"
    for unit, name in ((1, "s "), (1e-3, "ms"), (1e-6, "µs")):
        if value >= 0.9995 * unit or name == "µs":
            return f"{value / unit:8.2f} {name}"


def ratio(of, peer, kind):
    """How many times as fast khub is; by the median of neighbouring samples where there are."""
    return peer["ratio"] if kind == "median" and "ratio" in peer else peer[kind] / of["khub"][kind]


def worst(of, kind, peers=None):
    return min(ratio(of, p, kind) for name, p in of["peers"].items() if not peers or name in peers)


def show_row(r):
    shown = f"{r['work']:46} {r['threads']:2}  {amount(r['khub']['best'], r['work'])} {amount(r['khub']['median'], r['work'])}"
    share = f"{100 * r['share']['best']:4.0f} {100 * r['share']['median']:4.0f} % of {r['limit']:4}" if r["share"] else " " * 19
    print(f"{shown}  {share}", end="")
    for i, (name, peer) in enumerate(r["peers"].items()):
        lead = "" if i == 0 else "\n" + " " * 95
        print(f"{lead}  {name:24} {amount(peer['best'], r['work'])} {amount(peer['median'], r['work'])}", end="")
        print(f"  {ratio(r, peer, 'best'):6.2f} {ratio(r, peer, 'median'):6.2f}", end="")
    print(flush=True)


def show_goals(part, rows):
    goal, shown = GOALS[part], []
    for kind in ("best", "median"):
        ratios = [worst(r, kind, goal.get("peers")) for r in rows if "bytes" not in r["work"]]
        if not ratios:
            continue
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        text = f"by the {kind}: least {min(ratios):.2f} (goal {goal['every']:g}), {sum(x >= goal['every'] for x in ratios)} of {len(ratios)}"
        text += f", geometric mean {mean:.2f}" + (f" (goal {goal['mean']:g})" if "mean" in goal else "")
        shares = [r["share"][kind] for r in rows if "limit" in goal and re.search(goal["where"], r["work"])]
        if shares:
            text += f", of the limit {100 * min(shares):.0f} % and more (goal {100 * goal['limit']:.0f} %)"
        shown.append(text)
    memory = [r for r in rows if "bytes" in r["work"]]
    shown += [f"memory: {1 / worst(r, 'median'):.3f} of the peer's (goal 0.25)" for r in memory]
    print(*(f"  {part}, {text}" for text in shown), sep="\n")


# --- what ran, and keeping it


def openblas():
    try:
        library = ctypes.CDLL("libblas.so.3")
        library.openblas_get_config.restype = ctypes.c_char_p
        return library.openblas_get_config().decode().strip()
    except (OSError, AttributeError):
        return "not OpenBLAS"


def versions():
    text = pathlib.Path(os.environ["KHUB_TORCH"], "version.py").read_text()
    found = {"torch (kernels)": re.search(r"__version__ = '([^']*)'", text)[1], "OpenBLAS": openblas()}
    for name in ("torch", "onnxruntime", "sentence-transformers", "transformers", "tokenizers"):
        found[name] = importlib.metadata.version(name)
    return found


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", "../kernels")  # from the script's folder
    return git("rev-parse", "--short=12", "HEAD") + (" with changes" if changed else "")


def save(machine, found):
    """A file for each processor, in which a part replaces what it gave before, and adds to what the same commit gave."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['family']} {machine['isa']}".lower()).strip("-")
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    kept = json.loads(path.read_text()) if path.exists() else {"machine": {}, "parts": {}}
    machine, parts = {**kept["machine"], **machine}, kept["parts"]
    for part, rows in found.items():
        head = {"date": datetime.date.today().isoformat(), "commit": commit(), "peers": versions()}
        before = parts.get(part, {"rows": []})
        same = [r for r in before["rows"] if all(before[k] == head[k] for k in head)]
        new = {(r["work"], r["threads"]) for r in rows}
        parts[part] = {**head, "rows": [r for r in same if (r["work"], r["threads"]) not in new] + rows}
    rounded = json.loads(json.dumps({"machine": machine, "parts": parts}), parse_float=lambda x: float(f"{float(x):.4g}"))
    lines = []
    for part, one in rounded["parts"].items():
        rows = ",\n  ".join(map(json.dumps, one.pop("rows")))
        lines.append(f'{json.dumps(part)}: {json.dumps(one)[:-1]}, "rows": [\n  {rows}]}}')
    path.write_text(f'{{"machine": {json.dumps(rounded["machine"])},\n"parts": {{\n' + ",\n".join(lines) + "}}\n")
    print(f"\nkept in {path.relative_to(HERE.parent)}")


def processor():
    """What tells one machine from another, without its name."""
    wanted = {"cpu family": "family", "model": "model", "stepping": "stepping"}
    found = dict(re.findall(r"^(.*?)\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0], re.M))
    flags = set(found.get("flags", found.get("Features", "")).split())
    known = "avx2 fma f16c avx512f avx512_bf16 avx512_vnni avx_vnni amx_tile amx_bf16 amx_int8 asimd bf16 i8mm sve".split()
    return {
        "cpu": found.get("model name", "unknown"),
        "family": " ".join(found[k] for k in wanted if k in found),
        "instruction sets": [f for f in known if f in flags],
        "processors": len(os.sched_getaffinity(0)),
        "isa": subprocess.run([KHUB, "call", "khub/linear:kernel_isa"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip(),
    }


def parse():
    parser = argparse.ArgumentParser(prog="khub_limits", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART[:TEXT]", help=" ".join(PARTS))
    parser.add_argument("--threads", type=int, action="append", help="1 and 2 unless given")
    parser.add_argument("--time", type=float, default=0.5, help="seconds for each work and peer")
    parser.add_argument("--peer", action="append", help="beside these alone")
    parser.add_argument("--save", action="store_true", help="into bench/results/")
    options = parser.parse_args()
    texts = {}
    for word in options.parts or PARTS:
        part, _, text = word.partition(":")
        if part not in PARTS:
            parser.error(f"{part}: there are {', '.join(PARTS)}")
        texts.setdefault(part, []).append(text)
    options.parts, options.threads = texts, options.threads or [1, 2]
    return options


def main():
    options, machine = parse(), processor()
    print(", ".join(f"{name} {version}" for name, version in versions().items()))
    print("each by the best and the median sample: time, share of the limit, the peer's time, times as fast\n")
    found = {part: [] for part in options.parts}
    for part in options.parts:
        of = {"model": lambda: model_rows(options), "process": lambda: process_rows(options)}
        default = lambda: (r for threads in options.threads for r in kernel_rows(part, threads, options, machine))
        for r in of.get(part, default)():
            show_row(r)
            found[part].append(r)
        show_goals(part, found[part])
    print(f"\n{machine['cpu']}, family, model, stepping {machine['family']}; {machine['isa']} path")
    for name, seen in machine.items():
        if "thread" in name:
            print(f"  {name}: {seen['fma_flops'] / 1e9:.0f} GFLOP/s, copies {seen['copy_memory'] / 1e9:.1f} GB/s, in cache {seen['copy_cache'] / 1e9:.0f}")
    if options.save:
        save(machine, found)


main()
