"""./dev bench --gpu, as far as a machine without a GPU shows it: that it says so, and what becomes of the figures."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["KHUB_SOURCE"])
REPORT = SOURCE / "bench" / "gpu" / "report.py"

TIMING = {"median": 2e-6, "best": 2e-6}
CASE = {"layer": "RMSNorm", "dtype": "float32", "shape": "m=4,n=1024", "reason": None, "kernel": TIMING, "copy_share": 0.75, "fma_share": 0.01}
BENCH = {"machine": {"device": "Fake Hopper (cuda:0)", "copy_memory": 4e12, "fma_flops": 6e13}, "cases": [CASE]}
LAYER = {"kernel": "khub/norm", "layer": "RMSNorm", "broken": False, "error": None, "worst": {"worst": 0.5}, "deterministic": True,
         "batch_invariant": True, "checks": {"returns": {"kept": True}}}
# Stands for the command, which says what the files beside it have.
KHUB = """#!{python}
import pathlib, sys
here = pathlib.Path(__file__).parent
if sys.argv[1] == "platform":
    sys.exit(0 if (here / "gpu").exists() else 3)
(here / "calls").open("a").write(" ".join(sys.argv[1:]) + "\\n")
print((here / sys.argv[1]).read_text())
"""


def stage(folder, gpu=True, bench=BENCH, layers=(LAYER,)):
    (folder / "bin").mkdir(parents=True)
    khub = folder / "bin" / "khub"
    khub.write_text(KHUB.format(python=sys.executable))
    khub.chmod(0o755)
    (khub.parent / "bench").write_text(json.dumps(bench))
    (khub.parent / "compare").write_text(json.dumps(layers))
    if gpu:
        (khub.parent / "gpu").touch()
    return khub.parent


def report(tmp_path, **how):
    there = stage(tmp_path / "stage", **how)
    env = {**os.environ, "KHUB_STAGE": str(tmp_path / "stage"), "KHUB_PEER_PYTHON": "/nobody/has/this"}
    run = subprocess.run([sys.executable, REPORT, tmp_path / "out"], env=env, capture_output=True, text=True, timeout=100)
    return run, there


def test_without_a_gpu_nothing_is_run(tmp_path):
    run, there = report(tmp_path, gpu=False)
    assert run.returncode == 1 and run.stderr == "bench: no CUDA device: nothing was run\n" and run.stdout == ""
    assert not (there / "calls").exists() and not (tmp_path / "out").exists()


def test_dev_says_so_before_it_builds_for_cuda(tmp_path):
    """Its own functions but for those that build."""
    shutil.copy(SOURCE / "dev", tmp_path)
    stage(tmp_path / "build" / "stage", gpu=False)
    script = '. "$0" >/dev/null; build() { :; }; build_release() { echo built; }; bench --gpu'
    run = subprocess.run(["sh", "-c", script, tmp_path / "dev", "help"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert run.returncode == 1 and run.stderr == "dev: bench: no CUDA device: nothing was run\n" and run.stdout == ""
    assert not (tmp_path / "build" / "gpu").exists()


def test_the_report(tmp_path):
    run, there = report(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    calls = (there / "calls").read_text().splitlines()
    assert len(calls) == 10 and all("--device cuda:0 --json" in call for call in calls)
    assert "Fake Hopper (cuda:0): copies 4000 GB/s; float32 60.0 TFLOP/s by its clock" in run.stdout
    assert "75 %" in run.stdout and "0.5  True" in run.stdout
    kept = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert kept["broken"] == kept["missing"] == [] and kept["cases"][0]["kernel"]["median"] == 2e-6
    assert (tmp_path / "out" / "bench.txt").read_text() == run.stdout


def test_a_broken_promise_fails(tmp_path):
    bad = {**LAYER, "broken": True, "checks": {"memory": {"kept": False, "case": "float32/normal/4x33", "what": "wrote behind the end of out"}}}
    run, _ = report(tmp_path, layers=(bad,))
    assert run.returncode == 1 and "BROKEN" in run.stdout and "memory: first in float32/normal/4x33: wrote behind" in run.stdout


def test_what_was_not_measured_is_missing(tmp_path):
    run, _ = report(tmp_path, bench={**BENCH, "cases": [{**CASE, "reason": "the time was over"}]})
    assert run.returncode == 1 and "missing: RMSNorm float32 m=4,n=1024: the time was over" in run.stdout
