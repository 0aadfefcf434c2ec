"""khub platform as a user meets it: the table, the JSON, simulated machines, drivers that misbehave."""
import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

STAGE = Path(os.environ["KHUB_STAGE"])
BINARY = Path(os.environ["KHUB_BINARY"])
SOURCE = Path(os.environ["KHUB_SOURCE"])
SANITIZE = os.environ.get("KHUB_SANITIZE") == "1"
KHUB = STAGE / "bin" / "khub"
VARIABLES = ["LD_LIBRARY_PATH", "VIRTUAL_ENV", "KHUB_TVM_FFI", "KHUB_TORCH_DIR", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH"]
SHORT = {"os": "linux", "arch": "x86_64", "backend": "cu128", "torch": "2.10", "torch_cxx11_abi": True,
         "tvm_ffi": "0.1", "macos": None, "archs": ["9.0"]}


@pytest.fixture(autouse=True)
def nothing_is_remembered(tmp_path_factory, monkeypatch):
    """Of drivers, beyond a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def khub(*arguments, **variables):
    env = {k: v for k, v in os.environ.items() if k not in VARIABLES} | {k: str(v) for k, v in variables.items()}
    return subprocess.run([KHUB, "platform", *map(str, arguments)], env=env, capture_output=True, text=True, timeout=120)


def as_json(*arguments, **variables):
    done = khub("--json", *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def platform_file(tmp_path, content):
    path = tmp_path / "machine.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def driver(tmp_path, behaviour, name="libcuda.so.1"):
    """A directory for LD_LIBRARY_PATH with a fake driver that behaves as the directory is called."""
    (tmp_path / behaviour).mkdir(exist_ok=True)
    shutil.copy(BINARY / "tests" / "drivers" / name, tmp_path / behaviour / name)
    return tmp_path / behaviour


def accelerator(report, backend):
    return next(a for a in report["accelerators"] if a["backend"] == backend)


def library(report, name):
    return next(entry for entry in report["libraries"] if entry["name"] == name)


def test_this_machine():
    report = as_json()
    assert report["os"] == "linux"
    assert report["arch"] == platform.machine()
    assert report["cores"] == os.cpu_count()
    assert 1 <= report["threads"] <= len(os.sched_getaffinity(0))
    assert report["glibc"] == platform.libc_ver()[1]
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split()
    for feature in ("avx2", "fma", "f16c", "avx512f", "bmi2", "sve", "i8mm"):
        assert (feature in report["cpu_features"]) == (feature in flags), feature
    assert [a["backend"] for a in report["accelerators"]] == ["cuda", "rocm", "metal", "xpu", "cann", "neuron", "tpu"]


def test_table_says_what_json_says():
    report, table = as_json(), khub().stdout
    assert report["cpu_model"] in table
    assert f"glibc {report['glibc']}" in table
    assert " ".join(report["cpu_features"][:3]) in table
    assert library(report, "libtvm_ffi")["path"] in table
    flat = re.sub(r"\s+", " ", table)
    for a in report["accelerators"]:
        assert a["reason"] in flat
    for heading in ("machine", "libraries", "accelerators", "builds that fit"):
        assert re.search(f"^{heading}$", table, re.M)
    assert all(len(line) <= 100 or " " not in line.strip() for line in table.splitlines())


def test_tvm_ffi_beside_libkhub():
    info = library(as_json(), "libtvm_ffi")
    assert info["presence"] == "found" and info["how"] == "beside libkhub"
    real = (STAGE / "lib" / "libtvm_ffi.so").resolve()
    assert info["path"] == str(real)
    assert info["version"] == real.name.removeprefix("libtvm_ffi.so.")
    major, minor = info["version"].split(".")[:2]
    assert f"  tvm-ffi{major}{minor}-cpu-{platform.machine()}-linux\n" in khub().stdout


def test_tvm_ffi_of_a_real_package():
    """The version that the package's own library gives, without opening it."""
    import tvm_ffi
    package = Path(tvm_ffi.__file__).parent
    info = library(as_json(KHUB_TVM_FFI=package / "lib" / "libtvm_ffi.so"), "libtvm_ffi")
    assert info["how"] == "KHUB_TVM_FFI" and info["presence"] == "found"
    import ctypes
    version = (ctypes.c_uint32 * 3)()
    ctypes.CDLL(str(package / "lib" / "libtvm_ffi.so")).TVMFFIGetVersion(version)
    assert info["version"] == ".".join(map(str, version))


def test_virtual_environment(tmp_path):
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    (site / "tvm_ffi" / "lib").mkdir(parents=True)
    shutil.copy((STAGE / "lib" / "libtvm_ffi.so").resolve(), site / "tvm_ffi" / "lib" / "libtvm_ffi.so")
    (site / "tvm_ffi" / "_version.py").write_text("__version__ = version = '0.2.1'\n")
    (site / "torch" / "lib").mkdir(parents=True)
    shutil.copy((STAGE / "lib" / "libkhub.so.0").resolve(), site / "torch" / "lib" / "libtorch_cpu.so")
    (site / "torch" / "version.py").write_text("__version__ = '2.10.0+cpu'\n")
    report = as_json(VIRTUAL_ENV=tmp_path)
    assert library(report, "libtvm_ffi")["how"] == "virtual environment"
    assert report["tvm_ffi"] == "0.2.1"
    torch = library(report, "libtorch")
    assert torch["version"] == "2.10.0+cpu" and torch["presence"] == "found"
    assert (report["torch"], report["torch_cxx11_abi"], report["torch_backend"]) == ("2.10.0", None, "cpu")
    shown = khub(VIRTUAL_ENV=tmp_path).stdout
    assert f"  torch-stable-abi210-cpu-{platform.machine()}-linux, and lower\n" in shown and " 1 file of " in shown
    assert "torch" not in khub("--no-torch", VIRTUAL_ENV=tmp_path).stdout.split("builds that fit")[1]
    (site / "torch" / "version.py").unlink()
    report = as_json(VIRTUAL_ENV=tmp_path)
    assert library(report, "libtorch")["presence"] == "broken" and report["torch"] is None


def test_variable_that_points_to_nothing():
    report = as_json(KHUB_TVM_FFI="/nowhere/libtvm_ffi.so")
    info = library(report, "libtvm_ffi")
    assert info["presence"] == "broken" and "/nowhere/libtvm_ffi.so isn't there" in info["reason"]
    assert report["tvm_ffi"] is None
    done = khub(KHUB_TVM_FFI="/nowhere/libtvm_ffi.so")
    assert done.returncode == 0 and "broken" in done.stdout and "none: neither tvm-ffi nor torch is known" in done.stdout


def test_json_is_a_platform_file(tmp_path):
    first = khub("--json").stdout
    again = khub("--json", "--platform", platform_file(tmp_path, first))
    assert again.returncode == 0 and again.stderr == ""
    assert again.stdout == first


def test_simulated_machine(tmp_path):
    path = platform_file(tmp_path, SHORT)
    report = as_json("--platform", path)
    assert {key: report[key] for key in SHORT} == SHORT
    table = khub("--platform", path).stdout
    assert "tvm-ffi01-cu128-x86_64-linux" in table and "torch210-cu128-x86_64-linux" in table and "9.0" in table
    assert as_json("--platform", path, "--backend", "cpu")["backend"] == "cpu"
    done = khub("--platform", path, "--backend", "rocm")
    assert done.returncode == 2 and "its backends are: cpu, cu128" in done.stderr and done.stdout == ""


def test_unknown_field_is_a_warning(tmp_path):
    done = khub("--json", "--platform", platform_file(tmp_path, SHORT | {"tvm-ffi": "0.1"}))
    assert done.returncode == 0
    assert "warning" in done.stderr and "machine.json" in done.stderr and '"tvm-ffi"' in done.stderr


@pytest.mark.parametrize("content, words", [
    (SHORT | {"backend": "cpu"}, ['"archs" lists 9.0', '"backend" is cpu']),
    (SHORT | {"torch": None}, ['"torch_cxx11_abi" is true', '"torch" is unknown']),
    (SHORT | {"backend": "metal", "archs": []}, ['"backend" is metal', '"os" is linux']),
    (SHORT | {"backend": "gpu"}, ['"backend" is "gpu"']),
    ('{"os": ', ["not valid JSON"]),
    ("[" * 100000, ["nested deeper"]),
    ("{}" + " " * (1 << 20), ["at most 1048576"]),
])
def test_bad_platform_file(tmp_path, content, words):
    path = platform_file(tmp_path, content)
    done = khub("--platform", path)
    assert done.returncode == 1 and done.stdout == ""
    for word in [str(path), *words]:
        assert word in done.stderr


def test_platform_file_is_missing(tmp_path):
    done = khub("--platform", tmp_path / "gone.json")
    assert done.returncode == 1 and "gone.json" in done.stderr and done.stdout == ""


def test_wrong_usage():
    assert khub("surplus").returncode == 2
    assert khub("--nonsense").returncode == 2
    assert khub("--platform").returncode == 2


def network(*arguments, **variables):
    """The lines of the table's part, stripped."""
    done = khub("-v", *arguments, **variables)
    assert done.returncode == 0, done.stderr
    part = done.stdout.partition("\nnetwork\n")[2].partition("\n\n")[0]
    return [line.strip() for line in part.splitlines()]


def test_what_the_hub_is_reached_with(tmp_path):
    theirs = ctypes.CDLL("libcurl.so.4").curl_version
    theirs.restype = ctypes.c_char_p
    version, tls, *_ = theirs().decode().split()  # "libcurl/7.88.1 OpenSSL/3.0.19 zlib/..."
    shown = network(SSL_CERT_FILE="")
    assert shown[0].split() == ["libcurl", version.partition("/")[2] + ",", "HTTP/2"] and shown[1].endswith("libcurl.so.4")
    assert shown[2].split() == ["TLS", tls]
    (tmp_path / "mine").write_text("")
    shown = network(SSL_CERT_FILE=tmp_path / "mine", SSL_CERT_DIR=tmp_path)
    assert [line.split(None, 1)[1] for line in shown[3:]] == [f"{tmp_path}/mine (SSL_CERT_FILE)", f"{tmp_path} (SSL_CERT_DIR)"]
    shown = network(SSL_CERT_FILE=tmp_path / "none")
    assert shown[3].split(None, 1)[1] == f"{tmp_path}/none (SSL_CERT_FILE): can't be read"
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_text("not a library")
    shown = network(LD_LIBRARY_PATH=tmp_path)
    assert shown[0].split() == ["libcurl", "not", "there"] and "without libcurl" in shown[1]


def test_plain_platform_opens_no_libcurl(tmp_path):
    for arguments, opened in (([], False), (["--json"], False), (["-v", "--platform", platform_file(tmp_path, SHORT)], False), (["-v"], True)):
        assert ("libcurl" in khub(*arguments, LD_DEBUG="files").stderr) is opened, arguments
    assert "libcurl" not in khub("-v", "--platform", platform_file(tmp_path, SHORT)).stdout


def test_closed_stdout():
    done = subprocess.run(f"exec '{KHUB}' platform >&-", shell=True, capture_output=True, text=True)
    assert done.returncode == 1 and "can't write the result" in done.stderr
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([KHUB, "platform", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "No space left" in done.stderr


def test_two_devices(tmp_path):
    """Case H3: all devices are listed, the first is the one in use."""
    report = as_json(LD_LIBRARY_PATH=driver(tmp_path, "two"))
    assert report["backend"] == "cu128" and report["archs"] == ["8.6", "12.0"]
    assert accelerator(report, "cuda")["devices"][1] == {"name": "Fake Blackwell", "arch": "12.0", "memory_bytes": 32 << 30,
                                                           "uuid": "GPU-47000102-0304-0506-0708-090a0b0c0d0e", "integrated": False}
    table = khub(LD_LIBRARY_PATH=tmp_path / "two").stdout
    assert "Fake Blackwell, 12.0, 32 GiB" in table and re.search(r"tvm-ffi\d+-cu128-", table)
    assert as_json("--backend", "cpu", LD_LIBRARY_PATH=tmp_path / "two")["backend"] == "cpu"


@pytest.mark.parametrize("behaviour, presence, words", [
    ("abort", "broken", "(cuInit)"),
    ("crash", "broken", "(cuInit)"),
    ("exit", "broken", "with status 7"),
    ("stub", "absent", "is the toolkit's stub, not a driver (cuInit says 34)"),
    ("none", "absent", "the driver sees no device"),
    ("mismatch", "broken", "cuInit says 803"),
])
def test_driver_that_does_not_work(tmp_path, behaviour, presence, words):
    done = khub("--json", LD_LIBRARY_PATH=driver(tmp_path, behaviour))
    assert done.returncode == 0 and done.stderr == ""
    report = json.loads(done.stdout)
    assert accelerator(report, "cuda")["presence"] == presence and words in accelerator(report, "cuda")["reason"]
    assert report["backend"] == "cpu"
    assert [path.name for path in tmp_path.iterdir()] == [behaviour]  # no core files


def test_driver_that_prints(tmp_path):
    done = khub("--json", LD_LIBRARY_PATH=driver(tmp_path, "print"))
    assert done.returncode == 0 and done.stderr == "" and json.loads(done.stdout)["backend"] == "cu128"


def test_hidden_devices(tmp_path):
    report = as_json(LD_LIBRARY_PATH=driver(tmp_path, "two"), CUDA_VISIBLE_DEVICES="")
    assert report["backend"] == "cpu"
    assert "hidden by CUDA_VISIBLE_DEVICES" in accelerator(report, "cuda")["reason"]


def test_toolkit_without_device(tmp_path):
    """Case H1: runtime files make no CUDA machine."""
    (tmp_path / "lib64").mkdir()
    shutil.copy((STAGE / "lib" / "libkhub.so.0").resolve(), tmp_path / "lib64" / "libcudart.so.12.8.90")
    (tmp_path / "lib64" / "libcudart.so").symlink_to("libcudart.so.12.8.90")
    report = as_json(CUDA_HOME=tmp_path)
    assert report["backend"] == "cpu"
    assert library(report, "libcudart")["version"] == "12.8.90"
    assert "CUDA runtime 12.8.90 found" in accelerator(report, "cuda")["reason"]


def test_metal_is_said_to_be_of_another_system():
    reason = accelerator(as_json(), "metal")["reason"]
    assert "Metal.framework" in reason and "macOS" in reason and "this is linux" in reason


def test_no_process_without_a_driver(tmp_path):
    """A probe that leaves a trace: it is run when a driver is in reach, and only then."""
    probe = tmp_path / "libexec" / "khub" / "khub-probe"
    probe.parent.mkdir(parents=True)
    probe.write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/trace\n")
    probe.chmod(0o755)
    as_json(KHUB_PREFIX=tmp_path)
    assert not (tmp_path / "trace").exists()
    as_json(KHUB_PREFIX=tmp_path, LD_LIBRARY_PATH=driver(tmp_path, "two"))
    assert (tmp_path / "trace").read_text() == "cuda\n"


if not SANITIZE:
    @pytest.mark.parametrize("cpu", ["qemu64", "Nehalem", "Haswell"])
    def test_baseline_processor(cpu):
        """Case G2: the program runs on the first x86-64 processor there was, and sees what that one has."""
        if platform.machine() != "x86_64":
            pytest.fail("this test needs an x86-64 build")
        qemu = shutil.which("qemu-x86_64")
        assert qemu, "qemu-user isn't installed (deps/debian.txt names it)"
        done = subprocess.run([qemu, "-cpu", cpu, KHUB, "platform", "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        features = set(json.loads(done.stdout)["cpu_features"])
        expected = {"qemu64": set(), "Nehalem": {"sse4.2"}, "Haswell": {"sse4.2", "avx", "avx2", "fma", "f16c", "bmi2"}}[cpu]
        assert features == expected
