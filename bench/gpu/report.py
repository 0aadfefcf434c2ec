"""The built-in kernels on the first GPU, in 8 minutes at most: results beside float64, times beside the GPU's own copying and peak, and
beside torch's where a Python has one for CUDA. ./dev bench --gpu runs it; bench.json and bench.txt go to the folder that is given."""

import json
import os
import pathlib
import subprocess
import sys
import time

KHUB = pathlib.Path(os.environ["KHUB_STAGE"], "bin", "khub")
KERNELS = ["norm", "activation", "softmax", "rotary", "attention"]
SECONDS = 480
BENCH_SECONDS = 20  # for a kernel; comparing gets what is left, torch what is left then
TORCH_SECONDS = 90
# With times in seconds by torch's own events, for the works that it has a function for; reads and writes JSON.
TORCH = pathlib.Path(__file__).with_name("torch_times.py")


def ask(deadline, *words):
    """What the command prints as JSON; or why there is nothing."""
    try:
        run = subprocess.run([KHUB, *words, "--device", "cuda:0", "--json"], capture_output=True, text=True,
                             timeout=max(1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None, "the time was over"
    try:
        return json.loads(run.stdout), None
    except ValueError:
        return None, run.stderr.strip() or f"exit status {run.returncode}"


def times_of_torch(cases, deadline):
    """Seconds by work; {} where no Python has torch for CUDA."""
    for python in dict.fromkeys([os.environ.get("KHUB_PEER_PYTHON", "python3"), "python3"]):
        try:
            run = subprocess.run([python, TORCH], input=json.dumps(cases), capture_output=True, text=True,
                                 timeout=max(1, min(TORCH_SECONDS, deadline - time.monotonic())))
            return {tuple(work): seconds for *work, seconds in json.loads(run.stdout)}
        except (OSError, subprocess.TimeoutExpired, ValueError):
            continue
    return {}


def measure():
    start = time.monotonic()
    end = start + SECONDS
    report = {"machine": None, "cases": [], "layers": [], "missing": []}
    for kernel in KERNELS:
        bench, why = ask(end, "bench", f"khub/{kernel}", "--time", str(BENCH_SECONDS))
        if why:
            report["missing"].append(f"khub bench khub/{kernel}: {why}")
            continue
        report["machine"] = report["machine"] or bench["machine"]
        report["cases"] += [{"kernel": f"khub/{kernel}", **case} for case in bench["cases"]]
    timed = [case for case in report["cases"] if not case["reason"]]
    torch = times_of_torch([[c["layer"], c["dtype"], c["shape"]] for c in timed], end)
    for case in timed:
        seconds = torch.get((case["layer"], case["dtype"], case["shape"]))
        case["torch"] = seconds
        case["times_as_fast_as_torch"] = seconds / case["kernel"]["median"] if seconds else None
    report["missing"] += [f"{c['layer']} {c['dtype']} {c['shape']}: {c['reason']}" for c in report["cases"] if c["reason"]]
    for i, kernel in enumerate(KERNELS):
        share = (end - time.monotonic()) / (len(KERNELS) - i)
        layers, why = ask(time.monotonic() + share, "compare", f"khub/{kernel}")
        report["missing"] += [f"khub compare khub/{kernel}: {why}"] if why else []
        report["layers"] += layers or []
    report["seconds"] = round(time.monotonic() - start)
    report["broken"] = [f"{layer['kernel']}:{layer['layer']}" for layer in report["layers"] if layer["broken"] or layer["error"]]
    return report


def share(value):
    return f"{100 * value:.0f} %" if value else "-"


def lines(report):
    machine = report["machine"] or {}
    yield f"{machine.get('device')}: copies {(machine.get('copy_memory') or 0) / 1e9:.0f} GB/s; float32 {(machine.get('fma_flops') or 0) / 1e12:.1f} TFLOP/s by its clock"
    yield ""
    yield f"{'layer':20} {'dtype':9} {'shape':40} {'median µs':>10} {'of copy':>8} {'of peak':>8} {'torch µs':>10} {'times as fast':>14}"
    for c in report["cases"]:
        if c["reason"]:
            continue
        beside = f"{1e6 * c['torch']:10.1f} {c['times_as_fast_as_torch']:14.2f}" if c["torch"] else f"{'-':>10} {'-':>14}"
        yield (f"{c['layer']:20} {c['dtype']:9} {c['shape']:40} {1e6 * c['kernel']['median']:10.1f} {share(c['copy_share']):>8} "
               f"{share(c['fma_share']):>8} {beside}")
    yield ""
    yield f"{'layer':20} {'worst ULP':>10}  deterministic  batch-invariant"
    for layer in report["layers"]:
        worst = layer["worst"].get("worst")
        yield (f"{layer['layer']:20} {'-' if worst is None else f'{worst:.3g}':>10}  {layer['deterministic']!s:13}  {layer['batch_invariant']!s:15}"
               f"{'  BROKEN' if layer['broken'] else ''}{'  ' + layer['error'] if layer['error'] else ''}")
        yield from (f"    {name}: first in {check['case']}: {check['what']}" for name, check in layer["checks"].items()
                    if check["kept"] is False and name != "identical")
    yield ""
    yield from (f"missing: {one}" for one in report["missing"])
    yield f"{report['seconds']} seconds"


def main():
    (folder,) = sys.argv[1:]
    if subprocess.run([KHUB, "platform", "--backend", "cuda"], capture_output=True).returncode:
        sys.exit("bench: no CUDA device: nothing was run")
    report = measure()
    text = "\n".join(lines(report)) + "\n"
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    pathlib.Path(folder, "bench.json").write_text(json.dumps(report, indent=1) + "\n")
    pathlib.Path(folder, "bench.txt").write_text(text)
    print(text, end="")
    sys.exit(1 if report["broken"] or report["missing"] else 0)


if __name__ == "__main__":
    main()
