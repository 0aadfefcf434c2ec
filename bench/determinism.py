"""What khub compare measures of every built-in kernel, as the table of docs/determinism.md, which is written anew."""

import json
import os
import pathlib
import subprocess
import sys

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "determinism.md"
BEGIN, END = "<!-- measured by ./dev bench determinism -->\n", "<!-- end -->\n"
KERNELS = ["activation", "attention", "linear", "norm", "rotary", "softmax"]
ORDINARY = {"normal", "zeros", "ties", "bits"}
HEAD = ["layer", "deterministic", "batch-invariant", "float32: same bits", "worst ULP (standard's)", "promised", "mean (standard's)",
        "bfloat16: same bits", "worst ULP (standard's)", "NaN or infinity for a number in"]


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


def line(layer):
    same, worst, mean = columns(layer, "float32")
    same16, worst16, _ = columns(layer, "bfloat16")
    promised = layer["promises"]["tolerance"].get("float32", {}).get("ulp", "–")
    unlike = dict.fromkeys(row["values"] for row in layer["rows"] if row["kernel"]["unlike"] > row["other"]["unlike"])
    return [f"`{layer['layer']}`", word(layer["deterministic"]), word(layer["batch_invariant"]), same, worst, str(promised), mean, same16, worst16,
            ", ".join(f"`{values}`" for values in unlike) or "–"]


def measure():
    for kernel in KERNELS:
        print(f"khub compare khub/{kernel}", file=sys.stderr, flush=True)
        run = subprocess.run([KHUB, "compare", f"khub/{kernel}", "--json"], stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            sys.exit(f"khub/{kernel} doesn't keep its promises: khub compare khub/{kernel} says more")
        yield from json.loads(run.stdout)


table = "".join(f"| {' | '.join(cells)} |\n" for cells in [HEAD, ["---"] * len(HEAD), *map(line, measure())])
before, rest = PAGE.read_text().split(BEGIN)
PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1])
print(table, end="")
