"""Comparing tensors, against NumPy and ml_dtypes: steps by their nextafter, widths of steps by spacing, rounding by astype, sums in
long double."""
import json
import os
import pathlib
import subprocess
import tempfile

import ml_dtypes
import numpy as np
import pytest

HELPER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "oracle_compare"

SMALL = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
FLOATS = ["float64", "float32", *SMALL]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BESIDE = [("float32", "float64")] + [(name, wide) for name in SMALL for wide in ("float32", "float64")]
SHAPES = [(1,), (7,), (3, 5), (40, 3), (2, 3, 100), (1, 2500), (3, 1025), (2, 4099), (37, 64), (18, 300)]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def save(path, array):
    """numpy.save, but for float8_e5m2, which it writes as what it can't read: as void, which khub reads by its name only."""
    if array.dtype == ml_dtypes.float8_e5m2:
        header = f"{{'descr': 'float8_e5m2', 'fortran_order': False, 'shape': {array.shape}, }}\n".encode()
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + array.tobytes())
    else:
        np.save(path, array)


def compare(pairs):
    """[(a, b)] -> what the helper says of each, in one process."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        lines = []
        for i, (a, b) in enumerate(pairs):
            names = [pathlib.Path(folder) / f"{i}{side}.npy" for side in "ab"]
            for name, array in zip(names, (a, b)):
                save(name, array)
            lines.append(f"{names[0]} {names[1]}\n")
        done = subprocess.run([HELPER], input="".join(lines), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(pairs)
    return answers


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


@np.errstate(all="ignore")
def expected(a, b, ulp):
    """What khub must find; `ulp` is the distance of each finite pair (elsewhere anything)."""
    b = np.broadcast_to(b, a.shape)
    r = b.astype(a.dtype)
    last = a.shape[-1] if a.ndim else 1
    same_argmax = np.argmax(a.reshape(-1, last), 1) == np.argmax(b.reshape(-1, last), 1)
    a, b, r, ulp = (np.ascontiguousarray(x).ravel() for x in (a, b, r, ulp))
    floating = a.dtype.name in FLOATS
    kind = [np.isnan(x) * 2 + np.isinf(x) if floating else np.zeros(x.shape, int) for x in (a, r)]
    same = bits(a) == bits(r)
    if b.dtype != a.dtype:
        same |= (kind[0] == 2) & (kind[1] == 2)
    ok = (kind[0] == 0) & (kind[1] == 0)
    wide = np.longdouble if floating else object  # integers exactly
    x, y = (np.where(ok, v, np.zeros((), v.dtype)).astype(np.float64 if floating else object).astype(wide) for v in (a, b))
    if floating:
        distance = np.abs(x - y).astype(np.float64).astype(wide)  # khub subtracts doubles
    else:
        distance = np.abs(x - y)
    ulp = np.where(ok, ulp, 0)
    nonzero = y != 0
    relative = np.where(nonzero, distance / np.where(nonzero, np.abs(y), 1), 0)
    out = {"count": a.size, "identical": same.sum(), "first_different": a.size if same.all() else np.argmin(same),
           "finite": ok.sum(), "zero_signs": (ok & ~same & (a == 0) & (r == 0)).sum(), "rows": same_argmax.size,
           "argmax_same": same_argmax.sum(), "zero_missed": (ok & ~nonzero & (distance != 0)).sum(),
           "both_nan": ((kind[0] == 2) & (kind[1] == 2)).sum(),
           "nan_payloads": ((kind[0] == 2) & (kind[1] == 2) & ~same).sum(),
           "nan_only_a": ((kind[0] == 2) & (kind[1] != 2)).sum(), "nan_only_b": ((kind[0] != 2) & (kind[1] == 2)).sum(),
           "infinity_only_a": ((kind[0] == 1) & (kind[1] == 0)).sum(), "infinity_only_b": ((kind[0] == 0) & (kind[1] == 1)).sum()}
    both = (kind[0] == 1) & (kind[1] == 1)
    out["infinity_same"], out["infinity_opposite"] = (both & same).sum(), (both & ~same).sum()
    number = max(1, ok.sum())
    xs, ys, ds = (v.astype(np.longdouble) for v in (x, y, distance))
    aa, bb = (xs * xs).sum(), (ys * ys).sum()
    measures = {"mean_ulp": np.asarray(ulp, np.longdouble).sum() / number, "mean_absolute": ds.sum() / number,
                "rms": np.sqrt((ds * ds).sum() / number), "identical_share": same.sum() / max(1, a.size)}
    cosine = 1 if aa == bb == 0 else 0 if 0 in (aa, bb) else (xs * ys).sum() / np.sqrt(aa) / np.sqrt(bb)
    return out, measures, cosine, {"ulp": ulp, "absolute": distance, "relative": relative}, (x, y)


@np.errstate(all="ignore")
def check(answer, a, b, ulp):
    counts, measures, cosine, worst, (x, y) = expected(a, b, ulp)
    assert "status" not in answer, answer
    assert {name: answer[name] for name in counts} == counts
    sizes = np.abs(np.concatenate([np.asarray(v, np.float64) for v in (x, y, worst["absolute"])]))
    if (sizes[sizes > 0] < 1e-150).any() or (sizes > 1e150).any():  # only float64: their squares are no doubles
        del measures["rms"]
        cosine = answer["cosine"]
    if (sizes > 1e300).any():
        del measures["mean_absolute"]
    for name, value in measures.items():
        assert np.isclose(answer[name], float(value), rtol=1e-12, atol=0), (name, answer[name], value)
    assert cosine is answer["cosine"] or abs(answer["cosine"] - float(cosine)) < 1e-12
    for name, values in worst.items():
        values = np.asarray(values, np.float64)
        most = values.max(initial=0)
        assert np.isclose(answer[name]["value"], most, rtol=1e-15, atol=0), name
        if most > 0:
            at = answer[name]["index"]
            assert np.isclose(values[at], most, rtol=1e-15) and not (values[:at] > most * (1 - 1e-15)).any(), name
            assert (answer[name]["a"], answer[name]["b"]) == (float(x[at]), float(y[at])), name


def random_floats(generator, dtype, shape):
    """Any bits, NaN and infinities among them, but mostly numbers from 2^-4 to 2^4."""
    count = int(np.prod(shape))
    raw = generator.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    plain = (generator.standard_normal(count) * 2.0 ** generator.integers(-4, 5, count)).astype(dtype)
    return np.where(generator.random(count) < generator.choice([0, 0.05, 0.5]), raw, plain).reshape(shape)


def steps_away(generator, a):
    """Elements up to 3 steps from a's, by nextafter, and how many steps; infinities and NaN stay."""
    b, steps = a.copy(), np.zeros(a.shape)
    for _ in range(3):
        towards = generator.choice([-1, 0, 1], a.shape)
        goal = np.full(a.shape, np.inf if a.dtype != ml_dtypes.float8_e4m3fn else 448).astype(a.dtype)
        direction = np.where(steps == 0, towards, np.sign(steps) * np.abs(towards))
        moved = np.where(direction == 0, b, np.where(direction > 0, np.nextafter(b, goal), np.nextafter(b, -goal)))
        stays = ~np.isfinite(moved) | (np.abs(moved.astype(np.float64)) >= float(ml_dtypes.finfo(a.dtype).max))
        moved = np.where(stays, b, moved).astype(a.dtype)
        steps = steps + np.where((moved == b) | stays, 0, direction)
        b = moved
    return b, np.abs(steps)


@pytest.mark.parametrize("name", FLOATS)
def test_steps(name):
    generator = np.random.default_rng(11)
    cases = []
    for shape in SHAPES * 4:
        a = random_floats(generator, dtype_of(name), shape)
        with np.errstate(all="ignore"):
            b, steps = steps_away(generator, a)
            cases.append((b, a, steps))
    for (a, b, steps), answer in zip(cases, compare([case[:2] for case in cases])):
        check(answer, a, b, steps)


@pytest.mark.parametrize("name", FLOATS)
def test_any_pair(name):
    """Steps of any number, as integers in order."""
    generator = np.random.default_rng(12)
    dtype = dtype_of(name)
    sign = 1 << (8 * dtype.itemsize - 1)
    cases = []
    for shape in SHAPES * 4:
        a, b = random_floats(generator, dtype, shape), random_floats(generator, dtype, shape)
        order = [np.array([-(v ^ sign) if v & sign else v for v in bits(x).ravel().tolist()], object) for x in (a, b)]
        cases.append((a, b, np.abs(order[0] - order[1]).astype(np.float64).reshape(shape)))
    for (a, b, steps), answer in zip(cases, compare([case[:2] for case in cases])):
        check(answer, a, b, steps)


@pytest.mark.parametrize("name,wide", BESIDE)
def test_beside_wider(name, wide):
    generator = np.random.default_rng(13)
    dtype, cases = dtype_of(name), []
    with np.errstate(all="ignore"):
        for shape in SHAPES * 4:
            a = random_floats(generator, dtype, shape)
            error = 1 + generator.standard_normal(shape) * float(ml_dtypes.finfo(dtype).eps)
            b = (a.astype(np.float64) * error).astype(wide)
            r = b.astype(dtype)
            spacing = np.spacing(np.where(np.isfinite(r), np.abs(r), np.ones((), dtype))).astype(np.float64)
            largest = float(ml_dtypes.finfo(dtype).max)
            top = largest - float(np.nextafter(np.array(largest, dtype), np.array(0, dtype)))
            spacing = np.where(np.abs(r.astype(np.float64)) == largest, top, spacing)
            cases.append((a, b, np.abs(a.astype(np.float64) - b.astype(np.float64)) / spacing))
    for (a, b, ulp), answer in zip(cases, compare([case[:2] for case in cases])):
        check(answer, a, b, ulp)


@pytest.mark.parametrize("name", [*INTEGERS, "bool"])
def test_integers(name):
    generator = np.random.default_rng(14)
    dtype, cases = np.dtype(name), []
    for shape in SHAPES * 2:
        raw = [generator.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8) for _ in range(2)]
        if name == "bool":
            raw = [x & 1 for x in raw]
        a, b = (x.view(dtype).reshape(shape) for x in raw)
        b = np.where(generator.random(shape) < 0.5, a, b)
        if name != "bool":
            b = np.where(generator.random(shape) < 0.3, a ^ dtype.type(1), b)
        cases.append((a, b, np.abs(a.astype(object) * 1 - b.astype(object) * 1).astype(np.float64)))
    for (a, b, distance), answer in zip(cases, compare([case[:2] for case in cases])):
        check(answer, a, b, distance)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_broadcast(name):
    """Where NumPy broadcasts b to a's shape, khub does, and refuses the rest."""
    generator = np.random.default_rng(15)
    shapes = [(), (1,), (4,), (5,), (3, 4), (3, 1), (1, 4), (2, 3, 4), (2, 1, 1), (1, 2, 3, 4)]
    cases = []
    for ours in shapes:
        for other in shapes:
            a, b = (generator.standard_normal(s).astype(dtype_of(name)) for s in (ours, other))
            cases.append((np.asarray(a), np.asarray(b)))
    for (a, b), answer in zip(cases, compare(cases)):
        try:
            fits = np.broadcast_shapes(a.shape, b.shape) == a.shape
        except ValueError:
            fits = False
        if not fits:
            assert answer["status"] == "KHUB_E_INVAL" and "shape" in answer["words"]
            continue
        assert answer["count"] == a.size
        assert answer["identical"] == (bits(a) == bits(np.broadcast_to(b, a.shape))).sum()
        distance = np.abs(a.astype(np.float64) - np.broadcast_to(b, a.shape).astype(np.float64))
        assert answer["absolute"]["value"] == distance.max()
        assert answer["absolute"]["index"] == distance.argmax()
