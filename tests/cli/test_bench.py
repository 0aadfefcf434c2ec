"""khub bench: what it shows and says. No figure is judged: this machine may be busy. The first case is measured however little time
there is; where there are more, the time is never over: small calls end by their number of samples long before."""
import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
REPOS = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "fake" / "repos"
SVG = "{http://www.w3.org/2000/svg}"


def bench(*arguments, time="0.05", **environment):
    return subprocess.run([KHUB, "bench", *map(str, arguments), "--time", time], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=60)


def answer(*arguments, **options):
    run = bench(*arguments, "--json", **options)
    assert (run.returncode, run.stderr) == (0, "")
    return json.loads(run.stdout)


def fails(status, *arguments, words):
    run = bench(*arguments)
    assert (run.returncode, run.stdout) == (status, ""), run.stderr
    for word in words:
        assert word in run.stderr


def near(a, b):
    return abs(a - b) <= 1e-6 * abs(b)


def check_timing(t):
    assert 0 < t["best"] <= t["q1"] <= t["median"] <= t["q3"]
    assert t["samples"] >= 3 and t["calls"] >= 1 and 0 <= t["outliers"] <= t["samples"]


def check(found, case):
    """The fields of one case agree with one another."""
    check_timing(case["kernel"])
    median = case["kernel"]["median"]
    assert near(case["bytes_per_second"], case["bytes"] / median)
    assert near(case["copy_share"], case["bytes_per_second"] / case["copy_bytes_per_second"])
    if case["flops"] is None:
        assert case["flops_per_second"] is None and case["fma_share"] is None
    else:
        assert near(case["flops_per_second"], case["flops"] / median)
        assert near(case["fma_share"], case["flops_per_second"] / found["machine"]["fma_flops"])
    if case["standard"]:
        check_timing(case["standard"])
        assert 0 < case["ratio"]["q1"] <= case["ratio"]["median"] <= case["ratio"]["q3"]
    else:
        assert case["standard"] is None and case["ratio"] is None


def test_json_of_a_layer(tmp_path):
    found = answer("khub/norm:AddLayerNorm", "--shape", "m=3,n=8", "--shape", "m=2,n=16,sum=0", "--svg", tmp_path / "a.svg",
                   time="30")
    assert found["kernel"] == "khub/norm" and found["variant"].startswith("tvm-ffi")
    machine = found["machine"]
    assert machine["threads"] == 1 and machine["fma_isa"] in ("portable", "avx2", "avx512", "neon")
    assert machine["fma_flops"] > 0 and machine["copy_cache"] > 0 and machine["copy_memory"] > 0
    assert [(c["layer"], c["function"], c["shape"], c["dtype"]) for c in found["cases"]] == [
        ("AddLayerNorm", "add_layer_norm", shape, dtype)
        for shape in ("m=3,n=8", "m=2,n=16,sum=0") for dtype in ("float32", "bfloat16")]
    # out, sum, x, residual of 24, weight and bias of 8; without sum three of 32 and two of 16
    assert [c["bytes"] for c in found["cases"]] == [4 * 112, 2 * 112, 4 * 128, 2 * 128]
    # 6 and the sum and the bias for each element, 5 for each row
    assert [c["flops"] for c in found["cases"]] == [24 * 8 + 15, 24 * 8 + 15, 32 * 8 + 10, 32 * 8 + 10]
    for case in found["cases"]:
        check(found, case)
        assert case["standard"] and case["reason"] is None
    check_chart(tmp_path / "a.svg", cases=4, unit="GB/s")


def check_chart(path, cases, unit):
    text = path.read_text()
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag == SVG + "svg"
    assert len(root.findall(f"{SVG}rect[@class='kernel']")) == cases + 1  # and the key
    words = " ".join("".join(t.itertext()) for t in root.iter(SVG + "text"))
    assert unit in words and "1 thread" in words
    width, height = (float(n) for n in root.get("viewBox").split()[2:])
    for bar in root.iter(SVG + "rect"):
        x, y = float(bar.get("x", 0)), float(bar.get("y", 0))
        assert x + float(bar.get("width")) <= width and y + float(bar.get("height")) <= height
    assert "prefers-color-scheme:dark" in text
    for name in "http", "script", "url(", "@import", "href":
        assert name not in text.replace("http://www.w3.org/2000/svg", "")
    return words


def test_the_chart_of_what_computes(tmp_path):
    found = answer("khub/linear:Linear", "--shape", "m=64,n=64,k=64", "--dtype", "float32", "--svg", tmp_path / "l.svg")
    assert found["cases"][0]["flops"] == 64 * 64 * (2 * 64 + 1)
    words = check_chart(tmp_path / "l.svg", cases=1, unit="GFLOP/s")
    assert "m=64,n=64,k=64" in words and "% of peak" in words


def test_the_path_that_ran():
    for isa in "", "portable":
        found = answer("khub/activation:ReLU", "--shape", "m=1,n=16", "--dtype", "float32", KHUB_KERNEL_ISA=isa)
        assert found["isa"] == "portable" if isa else found["isa"] in ("portable", "avx2", "avx512", "neon")


def test_table():
    run = bench("khub/norm", "--shape", "m=2,n=8", "--dtype", "float32", "--no-standard", time="30")
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("khub/norm (tvm-ffi") and "1 thread" in lines[0] and " path" in lines[0]
    assert re.match(r"copies 256 KiB at .* GB/s, \d+ MiB at .* GFLOP/s \(\w+\)$", lines[1])
    head = next(i for i, line in enumerate(lines) if line.startswith("layer"))
    assert "standard" not in lines[head]
    rows = lines[head + 1: lines.index("", head)]
    assert [r.split()[0] for r in rows] == ["RMSNorm", "AddRMSNorm", "LayerNorm", "AddLayerNorm"]
    for row in rows:
        assert re.search(r"float32   m=2,n=8 +[\d.]+ [nµm]s +[\d.]+ [nµm]s +[\d.]+ % ", row)
    beside = bench("khub/softmax:Softmax", "--shape", "m=2,n=8").stdout
    assert "standard  times as fast" in beside and re.search(r" [\d.]+ \([\d.]+ to [\d.]+\)$", beside, re.M)


def test_cold_and_threads_and_layer():
    found = answer("khub/linear:linear", "--layer", "Linear", "--cold", "--threads", "2", "--shape", "m=4,n=256,k=512",
                   "--dtype", "float32")
    assert found["machine"]["threads"] == 2
    case, = found["cases"]
    assert (case["layer"], case["function"]) == ("Linear", "linear")
    assert case["bytes"] == 4 * (4 * 256 + 4 * 512 + 256 * 512 + 256)
    check(found, case)


def test_another_form_of_a_layer():
    """An entry of layers.json under a name of its own, measured as the layer that it serves."""
    case, = answer("khub/quantized:LinearInt8", "--shape", "m=2,n=16,k=32", "--dtype", "float32")["cases"]
    assert (case["layer"], case["function"], case["flops"]) == ("LinearInt8", "linear_int8", 2 * 2 * 16 * 32 + 2 * 16)


def test_a_function_with_arguments():
    found = answer("khub/norm:rms_norm", "out=float32[4,8]", "x=float32[4,8]", "[1, 1, 1, 1, 1, 1, 1, 1]", "1e-5")
    case, = found["cases"]
    assert (case["layer"], case["function"], case["dtype"]) == (None, "rms_norm", "float32")
    assert case["shape"] == "float32[4,8] float32[4,8] float32[8] 1e-05"
    assert case["bytes"] == 4 * 72 and case["flops"] is None and case["standard"] is None
    check(found, case)
    nothing = answer(f"{REPOS}/good:half", "3.0")["cases"][0]
    assert (nothing["shape"], nothing["dtype"], nothing["bytes"]) == ("3", None, 0)


def test_what_cannot_be_measured_has_a_reason():
    found = answer("khub/norm:RMSNorm", "--shape", "m=1,n=8", "--dtype", "float32", "--dtype", "float16", time="30")
    good, bad = found["cases"]
    check(found, good)
    assert bad["kernel"] is None and bad["bytes"] is None and "float16" in bad["reason"]
    fails(1, "khub/norm:RMSNorm", "--dtype", "float16", words=["nothing could be measured", "float16"])
    fails(1, "khub/norm:GeLU", words=["nothing could be measured", "GeLU"])
    fails(1, "khub/norm", "--variant", "torch-cpu", words=["khub/norm", "torch-cpu"])
    fails(1, "khub/norm:rms_norm", words=['no layer "rms_norm", which is a function', "arguments"])
    fails(1, "khub/norm:rms_norm", "1", words=["rms_norm: 1 arguments given, 4 expected"])


def test_a_kernel_that_crashes_is_named():
    run = bench(f"{REPOS}/in_call:abort_now", "1")
    assert run.returncode == 1 and "in_call:abort_now" in run.stderr and "SIGABRT" in run.stderr


MISUSE = {
    (): "of which kernel?",
    ("khub/norm:",): "is expected behind",
    ("khub/norm", "1"): "arguments are for a function",
    ("khub/norm:rms_norm", "1", "--cold"): "takes none of",
    ("khub/norm:rms_norm", "1", "--shape", "m=1"): "takes none of",
    ("khub/norm", "--layer", "RMSNorm"): "which function?",
    ("khub/norm:rms_norm", "--layer", "Norm"): "no such layer",
    ("khub/norm:rms_norm", "out=float33[2]"): "float33",
    ("khub/norm", "--threads", "0"): "--threads takes a number from 1 on",
    ("khub/norm:RMSNorm", "--shape", "m=1,z=2"): 'RMSNorm has no "z"; there are m, n',
    ("khub/norm:RMSNorm", "--dtype", "float"): "float",
    ("khub/norm", "--time"): "--time needs a value",
}


@pytest.mark.parametrize("arguments", MISUSE, ids=lambda a: " ".join(a) or "nothing")
def test_misuse(arguments):
    run = subprocess.run([KHUB, "bench", *arguments], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (2, "")
    assert MISUSE[arguments] in run.stderr
    assert "khub call" not in run.stderr


@pytest.mark.parametrize("time", ["0", "-1", "soon", "nan", "inf", "1x", " "])
def test_time_is_seconds(time):
    run = bench("khub/norm", time=time)
    assert (run.returncode, run.stdout) == (2, "") and "--time takes seconds" in run.stderr


def test_a_chart_that_cannot_be_written(tmp_path):
    run = bench("khub/softmax:Softmax", "--shape", "m=1,n=8", "--svg", tmp_path / "no" / "a.svg")
    assert run.returncode == 1 and f"{tmp_path}/no/a.svg: can't write the chart: No such file" in run.stderr
    assert run.stdout.startswith("khub/softmax")


def test_time_that_is_over():
    """The first case is measured in any case, the last of many isn't."""
    cases = answer("khub/norm:RMSNorm", *(a for m in range(1, 60) for a in ("--shape", f"m={m},n=8")), time="0.02")["cases"]
    assert len(cases) == 118 and cases[0]["kernel"]
    assert (cases[-1]["kernel"], cases[-1]["reason"]) == (None, "the time was over")
