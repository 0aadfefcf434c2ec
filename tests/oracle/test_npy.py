"""What NumPy writes is read, and what is written NumPy reads: the same bits for every dtype, order and rank."""
import itertools
import os
import pathlib
import subprocess
import tempfile

import ml_dtypes
import numpy as np
import pytest

HELPER = pathlib.Path(os.environ["KHUB_BINARY"]) / "tests" / "oracle_npy_copy"

NUMPY = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]
EXTRA = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
DTYPES = {name: np.dtype(name) for name in NUMPY} | {name: np.dtype(getattr(ml_dtypes, name)) for name in EXTRA}

SHAPES = [(), (1,), (7,), (0,), (2, 3), (3, 0), (5, 1), (2, 3, 4), (1, 1, 1), (4, 0, 2), (2, 1, 3, 2), (1, 2, 1, 2, 1),
          (2, 2, 2, 2, 2, 2), (1, 2, 3, 1, 2, 1, 2), (2, 1, 2, 1, 2, 1, 2, 3), (300, 257)]  # the last: several pieces


@pytest.fixture
def tmp_path():
    """In memory where the system has that: every file written is synced, and hundreds of them would wait for a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield pathlib.Path(folder)


def copy(jobs):
    """[(in, out, mode)] -> the helper's lines."""
    text = "".join(f"{a} {b} {mode}\n" for a, b, mode in jobs)
    done = subprocess.run([HELPER], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(jobs)
    return lines


def random_array(dtype, shape, generator):
    """Any bits, since nothing is computed with them; booleans are 0 or 1."""
    count = int(np.prod(shape, dtype=np.int64))
    data = generator.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    if dtype == np.bool_:
        data &= 1
    return data.view(dtype).reshape(shape)


def same(read, written, dtype):
    """numpy.load makes void of ml_dtypes' types; their bits are there."""
    assert read.shape == written.shape
    if read.dtype != dtype:
        assert read.dtype.kind == "V" and read.dtype.itemsize == dtype.itemsize
    assert np.ascontiguousarray(read).tobytes() == np.ascontiguousarray(written).tobytes()


def expected(array, mode):
    if mode == "copy":
        return array
    return array.T if mode == "transpose" else array[..., ::-1] if array.ndim else array


@pytest.mark.parametrize("name", DTYPES)
def test_there_and_back(name, tmp_path):
    dtype = DTYPES[name]
    generator = np.random.default_rng(7)
    jobs, arrays = [], []
    ways = [("C", "copy"), ("F", "copy"), ("C", "transpose"), ("C", "flip")]
    for shape, (order, mode) in itertools.product(SHAPES, ways):
        array = np.asarray(random_array(dtype, shape, generator), order=order)
        np.save(tmp_path / f"{len(jobs)}.npy", array)
        jobs.append((tmp_path / f"{len(jobs)}.npy", tmp_path / f"{len(jobs)}.out.npy", mode))
        arrays.append(array)
    for (_, out, mode), array, line in zip(jobs, arrays, copy(jobs)):
        assert line.split() == ["ok", name, *map(str, array.shape)]
        same(np.load(out), expected(array, mode), dtype)


@pytest.mark.parametrize("name", NUMPY)
def test_big_endian(name, tmp_path):
    dtype = DTYPES[name]
    generator = np.random.default_rng(8)
    jobs, arrays = [], []
    for shape, order in itertools.product(SHAPES, "CF"):
        array = np.asarray(random_array(dtype, shape, generator), order=order)
        np.save(tmp_path / f"{len(jobs)}.npy", array.astype(dtype.newbyteorder(">"), order="K"))
        jobs.append((tmp_path / f"{len(jobs)}.npy", tmp_path / f"{len(jobs)}.out.npy", "copy"))
        arrays.append(array)
    for (_, out, _), array, line in zip(jobs, arrays, copy(jobs)):
        assert line.split() == ["ok", name, *map(str, array.shape)]
        same(np.load(out), array, dtype)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(version, tmp_path):
    array = np.arange(12, dtype="int32").reshape(3, 4)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version)
    assert copy([(tmp_path / "a.npy", tmp_path / "b.npy", "copy")]) == ["ok int32 3 4"]
    assert np.array_equal(np.load(tmp_path / "b.npy"), array)


@pytest.mark.parametrize("name", DTYPES)
def test_written_as_numpy_writes(name, tmp_path):
    """Byte for byte, header and all, but for float8_e5m2, for which NumPy writes what it can't read."""
    generator = np.random.default_rng(9)
    jobs = []
    for i, shape in enumerate(SHAPES):
        np.save(tmp_path / f"{i}.npy", random_array(DTYPES[name], shape, generator))
        jobs.append((tmp_path / f"{i}.npy", tmp_path / f"{i}.out.npy", "copy"))
    assert all(line.startswith("ok ") for line in copy(jobs))
    equal = [a.read_bytes() == b.read_bytes() for a, b, _ in jobs]
    assert all(equal) if name != "float8_e5m2" else not any(equal)


def test_float8_e5m2_is_loaded_as_itself(tmp_path):
    """NumPy's own file isn't: numpy.load refuses "<f1". When this fails, NumPy's word can be written."""
    array = np.array([1.5, -2, 0.25], ml_dtypes.float8_e5m2)
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ValueError):
        np.load(tmp_path / "a.npy")
    assert copy([(tmp_path / "a.npy", tmp_path / "b.npy", "copy")]) == ["ok float8_e5m2 3"]
    assert np.load(tmp_path / "b.npy").dtype == ml_dtypes.float8_e5m2


@pytest.mark.parametrize("descr", EXTRA)
def test_names_of_ml_dtypes(descr, tmp_path):
    """A header may name the type, which numpy.load takes too."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n".encode()
    data = bytes(range(2 * DTYPES[descr].itemsize))
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)
    assert np.load(tmp_path / "a.npy").dtype == DTYPES[descr]
    assert copy([(tmp_path / "a.npy", tmp_path / "b.npy", "copy")]) == [f"ok {descr} 2"]
    assert np.load(tmp_path / "b.npy").tobytes() == data


REFUSED = {
    "objects": np.array([None, 1]),
    "records": np.zeros(2, [("a", "i4"), ("b", "f4")]),
    "text": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "dates": np.zeros(2, "M8[s]"),
    "durations": np.zeros(2, "m8[ns]"),
    "void": np.zeros(2, "V5"),
    "long double": np.zeros(2, "g"),
    "long complex": np.zeros(2, "G"),
    "nine dimensions": np.zeros((1,) * 9),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_dlpack_does_not_have(what, tmp_path):
    np.save(tmp_path / "a.npy", REFUSED[what], allow_pickle=True)
    (line,) = copy([(tmp_path / "a.npy", tmp_path / "b.npy", "copy")])
    assert line.startswith("KHUB_E_UNSUPPORTED") and str(tmp_path / "a.npy") in line
    assert not (tmp_path / "b.npy").exists()
