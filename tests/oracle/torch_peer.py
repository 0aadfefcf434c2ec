"""What torch.c does, by PyTorch in Python: the same lines in, the same lines out."""

import json
import pathlib
import sys

import torch

DTYPES = {name: getattr(torch, name) for name in (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128 float8_e4m3fn float8_e5m2").split()}
NAMED = {"strided": torch.strided, "contiguous_format": torch.contiguous_format, "channels_last": torch.channels_last}
DLPACK = {"cpu": 1, "cuda": 2}


def operators(repository):
    """The namespace of a repository's kernel, loaded."""
    (library,) = pathlib.Path(repository).glob("build/torch*/*.so")
    torch.ops.load_library(library)
    return getattr(torch.ops, json.loads((library.parent / "metadata.json").read_text())["id"])


def value(given, storages):
    if isinstance(given, list):
        return [value(item, storages) for item in given]
    if not isinstance(given, dict):
        return given
    if "data" in given:
        storages.append(bytearray.fromhex(given["data"]))
        dtype = DTYPES[given["dtype"]]
        whole = torch.frombuffer(storages[-1], dtype=dtype) if storages[-1] else torch.empty(0, dtype=dtype)
        if "strides" in given:
            return whole.as_strided(given["shape"], given["strides"], given.get("offset", 0))
        return whole[given.get("offset", 0):].reshape(given["shape"])
    if "dtype" in given:
        return DTYPES[given["dtype"]]
    return NAMED.get(given["name"]) or torch.device(given["name"])


def written(result):
    if isinstance(result, torch.Tensor):
        compact = result.contiguous().flatten()
        data = bytes(compact.view(torch.uint8).tolist()) if compact.numel() else b""
        return {"dtype": str(result.dtype).removeprefix("torch."), "shape": list(result.shape), "strides": list(result.stride()),
                "data": data.hex()}
    if isinstance(result, torch.device):
        return {"device": [DLPACK[result.type], result.index or 0]}
    if isinstance(result, (list, tuple)):
        return [written(item) for item in result]
    return result


def call(job, known):
    repository = job["kernel"]
    known[repository] = known.get(repository) or operators(repository)
    name, _, overload = job["function"].partition(".")
    f = getattr(getattr(known[repository], name), overload or "default")
    storages = []
    given = [value(item, storages) for item in job["arguments"]]
    named = {a.name: v for a, v in zip(f._schema.arguments, given) if a.kwarg_only}
    try:
        result = f(*given[: len(given) - len(named)], **named)
        if str(f._schema).endswith("-> ScalarType"):  # Python gets libtorch's number of it
            result = {"dtype": next(name for name, dtype in DTYPES.items() if f(dtype) == result)}
        answer = {"result": written(result)}
    except Exception as error:
        answer = {"error": str(error).splitlines()[0]}
    return {**answer, "after": [storage.hex() for storage in storages]}


known = {}
with torch.no_grad():
    for line in sys.stdin:
        print(json.dumps(call(json.loads(line), known)))
