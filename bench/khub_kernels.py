"""The built-in kernels beside the standard functions and what the machine can do: khub bench.

Linear layers are measured as a model calls them: a batch of sentences through weights that were last read a layer stack ago. With
KHUB_CHARTS=DIR a chart of each goes there."""

import os
import pathlib
import subprocess

KHUB = pathlib.Path(os.environ["KHUB_STAGE"]) / "bin" / "khub"
CHARTS = os.environ.get("KHUB_CHARTS")
SECONDS = 20

MODEL = [word for m in (1, 2, 12, 37, 252) for n, k in ((384, 384), (1536, 384), (384, 1536)) for word in ("--shape", f"m={m},n={n},k={k}")]
RUNS = {
    "norm": ["khub/norm"],
    "activation": ["khub/activation"],
    "softmax": ["khub/softmax"],
    "rotary": ["khub/rotary"],
    "attention": ["khub/attention"],
    "linear": ["khub/linear:Linear"],
    "linear-cold": ["khub/linear:Linear", "--cold", *MODEL],
    "linear-gelu-cold": ["khub/linear:LinearGeLU", "--cold", "--dtype", "float32", *MODEL],
    "linear-unpacked-cold": ["khub/linear:linear", "--layer", "Linear", "--cold", *MODEL],
}

for name, words in RUNS.items():
    chart = ["--svg", pathlib.Path(CHARTS) / f"{name}.svg"] if CHARTS else []
    print(f"\nkhub bench {words[0]}{' --cold' if '--cold' in words else ''}", flush=True)
    subprocess.run([KHUB, "bench", *words, "--time", str(SECONDS), *chart], check=True)
