"""Weights in several files as huggingface_hub splits them: khub embed gives the bits of the whole."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from tiny_model import read_safetensors, safetensors  # noqa: E402

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")
MODEL = Path(os.environ["KHUB_MODEL"])
TEXTS = ["a first text", "and another one, which is longer", ""]


def embed(model):
    done = subprocess.run([KHUB, "embed", "--model", model, "--kernels", *TEXTS], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_real_model_split_by_the_peer(tmp_path):
    made = tmp_path / "model"
    shutil.copytree(MODEL, made, ignore=lambda _, names: {"model.safetensors"} & set(names))
    tensors = read_safetensors(MODEL / "model.safetensors")
    split = huggingface_hub.split_state_dict_into_shards_factory(
        tensors, get_storage_size=lambda t: t.nbytes, filename_pattern="model{suffix}.safetensors", max_shard_size="20MB"
    )
    assert len(split.filename_to_tensors) > 2
    for file, names in split.filename_to_tensors.items():
        (made / file).write_bytes(safetensors({name: tensors[name] for name in names}))
    index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
    (made / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    assert embed(made) == embed(MODEL)
