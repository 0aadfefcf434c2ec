"""What khub compare measures of every built-in kernel, as the tables of docs/determinism.md, which are written anew."""

import json
import os
import pathlib
import subprocess
import sys

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "determinism.md"
BEGIN, END = "<!-- measured by ./dev bench determinism -->\n", "<!-- end -->\n"
KERNELS = ["activation", "attention", "embedding", "linear", "norm", "rotary", "softmax", "quantized", "bfloat16"]
ORDINARY = {"normal", "zeros", "ties", "bits"}
HEAD = ["layer", "deterministic", "batch-invariant", "float32: same bits", "worst ULP (standard's)", "promised", "mean (standard's)",
        "bfloat16: same bits", "worst ULP (standard's)", "NaN or infinity for a number in"]
QUANTIZED_HEAD = ["layer", "deterministic", "batch-invariant", "float32: worst rms (standard's)", "promised", "least cosine", "bfloat16: worst rms (standard's)",
                  "promised", "least cosine", "NaN or infinity for a number in"]


def number(x):
    return f"{x:.3g}" if x < 1e5 else f"{x:.0e}".replace("e+0", "e")


def word(verdict):
    return {True: "yes", False: "**no**", None: "not tried"}[verdict]


def together(rows, who):
    """(worst, mean) of some rows."""
    elements = sum(row[who]["elements"] for row in rows)
    worst = max(row[who].get("worst", 0) for row in rows)
    return worst, sum(row[who].get("mean", 0) * row[who]["elements"] for row in rows) / elements


def columns(layer, dtype):
    rows = [row for row in layer["rows"] if row["dtype"] == dtype and row["values"] in ORDINARY]
    share = sum(row["identical"] for row in rows) / sum(row["elements"] for row in rows)
    (worst, mean), (worst_standard, mean_standard) = together(rows, "kernel"), together(rows, "other")
    return (f"{100 * share:.1f} %", f"{number(worst)} ({number(worst_standard)})", f"{number(mean)} ({number(mean_standard)})")


def promise(layer, dtype, kind):
    return str(layer["promises"]["tolerance"].get(dtype, {}).get(kind, "–"))


def framed(layer, cells):
    """What is said of every layer, around the figures of its kind."""
    unlike = dict.fromkeys(row["values"] for row in layer["rows"] if row["kernel"]["unlike"] > row["other"]["unlike"])
    return [f"`{layer['layer']}`", word(layer["deterministic"]), word(layer["batch_invariant"]), *cells,
            ", ".join(f"`{values}`" for values in unlike) or "–"]


def line(layer):
    same, worst, mean = columns(layer, "float32")
    same16, worst16, _ = columns(layer, "bfloat16")
    return framed(layer, [same, worst, promise(layer, "float32", "ulp"), mean, same16, worst16])


def quantized_line(layer):
    cells = []
    for dtype in "float32", "bfloat16":
        rows = [row for row in layer["rows"] if row["dtype"] == dtype and row["values"] in ORDINARY]
        rms, standard = (max(row[who]["rms"] for row in rows) for who in ("kernel", "other"))
        cosine = min(row["kernel"]["cosine"] for row in rows)
        cells += [f"{number(rms)} ({number(standard)})", promise(layer, dtype, "relative"), f"{cosine:.5f}"]
    return framed(layer, cells)


def is_quantized(layer):
    return any("relative" in tolerance for tolerance in layer["promises"]["tolerance"].values())


def table(head, lines):
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *lines])


def measure():
    for kernel in KERNELS:
        print(f"khub compare khub/{kernel}", file=sys.stderr, flush=True)
        run = subprocess.run([KHUB, "compare", f"khub/{kernel}", "--json"], stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            sys.exit(f"khub/{kernel} doesn't keep its promises: khub compare khub/{kernel} says more")
        yield from json.loads(run.stdout)


layers = list(measure())
tables = table(HEAD, [line(layer) for layer in layers if not is_quantized(layer)])
tables += "\n" + table(QUANTIZED_HEAD, [quantized_line(layer) for layer in layers if is_quantized(layer)])
before, rest = PAGE.read_text().split(BEGIN)
PAGE.write_text(before + BEGIN + tables + END + rest.split(END)[1])
print(tables, end="")
