"""khub on a GPU, by the driver of tests/drivers and the kernels of tests/fake: gpu.c, and some liars."""
import json
import os
import pathlib
import platform
import shutil

import numpy as np
import pytest

from fakes import REPOS, khub

DRIVERS = pathlib.Path(os.environ["KHUB_BINARY"], "tests", "drivers")
GPU = REPOS / "gpu"
TWO = "version 13000\ndevice Fake Hopper|9.0|1073741824|70\ndevice Fake Hopper|9.0|1073741824|71\n"
ROCM = "version 60443484\nlayout 1160 1472\n" + 2 * "device AMD Instinct MI300X|gfx942:sramecc+:xnack-|206158430208|0\n"
LEFT = ["left memory 0", "left streams 0", "left events 0"]


class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "log"
        self.x = np.arange(6, dtype="float32").reshape(2, 3) / 4
        np.save(folder / "x.npy", self.x)

    def run(self, *arguments, described=TWO, library=DRIVERS / "libcuda.so.1", reports=LEFT):
        driver = self.folder / "driver"
        driver.mkdir(exist_ok=True)
        shutil.copy(library, driver / library.name)
        (driver / "driver").write_text(described)
        self.log.unlink(missing_ok=True)
        env = {"LD_LIBRARY_PATH": str(driver), "FAKE_DRIVER_LOG": str(self.log), "XDG_CACHE_HOME": str(self.folder / "cache"),
               "KHUB_TVM_FFI": os.path.join(os.environ["KHUB_STAGE"], "lib", "libtvm_ffi.so")}
        done = khub(*arguments, cwd=self.folder, env=env)
        lines = self.log.read_text().splitlines()
        assert [line for line in lines if line.startswith(("left", "fault"))] == reports, done.stderr
        return done

    def call(self, function, *arguments, **how):
        return self.run("call", f"{GPU}:{function}", *arguments, **how)

    def compare(self, kernel, *arguments, status=0):
        """What kernels leave behind goes with the child process that they run in."""
        done = self.run("compare", REPOS / kernel, "--json", *arguments, described=TWO + "memory 100000000\n", reports=[])
        assert done.returncode == status, done.stdout + done.stderr
        (layer,) = json.loads(done.stdout)
        assert layer["broken"] == (status == 1)
        return layer

    def fails(self, words, *arguments, status=1, **options):
        done = self.call(*arguments, **options)
        assert done.returncode == status and done.stdout == "", done.stderr
        for word in [words] if isinstance(words, str) else words:
            assert word in done.stderr
        assert not (self.folder / "out.npy").exists()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize("device", [[], ["--device", "cuda:1"]])
def test_there_and_back(machine, device):
    done = machine.call("add_one", "out=float32[2,3]", "x.npy", *device)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    np.testing.assert_array_equal(np.load(machine.folder / "out.npy"), machine.x + 1)


@pytest.mark.parametrize("device", [[], ["--device", "rocm:1"]])
def test_there_and_back_over_rocm(machine, device):
    how = {"described": ROCM, "library": DRIVERS / "libamdhip64.so.6", "reports": []}  # a HIP device isn't given up
    done = machine.call("add_one", "out=float32[2,3]", "x.npy", *device, **how)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    np.testing.assert_array_equal(np.load(machine.folder / "out.npy"), machine.x + 1)
    done = machine.call("add_two", "x.npy", "-o", ".", *device, **how)
    np.testing.assert_array_equal(np.load(machine.folder / "result.npy"), machine.x + 2)


def test_a_tensor_that_the_function_allocates(machine):
    done = machine.call("add_two", "[1, 2.5]", "-o", ".", "--device", "cuda:0")
    assert done.returncode == 0 and "float32[2]: 3 4.5" in done.stdout, done.stderr
    np.testing.assert_array_equal(np.load(machine.folder / "result.npy"), [3, 4.5])


def test_an_error_that_comes_later_is_the_call_s(machine):
    machine.fails([f"{GPU}:illegal: failed on cuda:0 after the call had returned: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal "
                   "memory access was encountered"], "illegal", "out=float32[3]", reports=["left memory 1", *LEFT[1:]])


def test_what_the_driver_refuses(machine):
    machine.fails("cuda:0: allocating 4000000 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", "add_one", "out=float32[1000000]",
                  "x.npy")
    machine.fails("CUDA_ERROR_OUT_OF_MEMORY (2)", "add_two", "x.npy", described=TWO + "memory 10\n")
    machine.fails("the driver has no cuEventElapsedTime: it is too old, update it", "add_two", "x.npy",
                  library=DRIVERS / "old" / "libcuda.so.1", reports=[])
    machine.fails("making a stream: CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "add_two", "x.npy",
                  described=TWO + "cuStreamCreate return 46\n")
    machine.fails("add_two: failed on cuda:0 after the call had returned: an unknown error (999): unknown error", "add_two", "x.npy",
                  described=TWO + "cuStreamSynchronize return 999\n", reports=["left memory 2", *LEFT[1:]])
    machine.fails("cuda:2: this machine has 2 of them", "add_two", "x.npy", "--device", "cuda:2", status=2, reports=[])


def broken(layer):
    return {name for name, check in layer["checks"].items() if check["kept"] is False}


@pytest.mark.parametrize("device", [[], ["--device=cuda:1"]])
def test_an_honest_kernel_is_compared(machine, device):
    layer = machine.compare("gpu_liar_honest", "--dtype=bfloat16", *device)
    assert "cu130" in layer["variant"] and broken(layer) == set() and layer["worst"]["worst"] == 0
    assert all(check["kept"] and check["tried"] > 40 for name, check in layer["checks"].items() if name not in ("tolerance", "threads"))
    assert layer["checks"]["threads"]["kept"] is None  # a device is one thread's at a time


# Bytes and numbers are those of the same lies on the CPU, in test_compare.py.
@pytest.mark.parametrize("lie, check, words", [
    ("forgets", "repeats", "out[0] is"),
    ("writes_behind", "memory", "wrote behind the end of out (byte 264 from its first)"),
    ("writes_before", "memory", "wrote before the start of out (byte -2 from its first)"),
    ("alignment", "places", "with memory that ends where its tensors do"),
    ("strides", "places", "with rows that lie apart"),
    ("in_place", "places", "out[0] is 0 in the memory of the input, 1.6484375 otherwise"),
    ("batch", "batches", "out[0] is 1.6484375 alone, 1.65625 otherwise"),
    ("adds", "repeats", "over an out of zeros"),
    ("spoils", "inputs", "changed x, from element 0 on"),
    ("crashes", "returns", "the process ended: SIGABRT (Aborted)"),
])
def test_a_lie_on_the_device_is_found(machine, lie, check, words):
    layer = machine.compare(f"gpu_liar_{lie}", "--dtype=bfloat16", "--device=cuda:1", status=1)
    assert check in broken(layer)
    assert words in layer["checks"][check]["what"] and layer["checks"][check]["case"].startswith("bfloat16/normal/")


def test_a_late_error_is_the_case_s_that_caused_it(machine):
    """The device is lost then: another process goes on with the next case, and smaller ones have right results."""
    layer = machine.compare("gpu_liar_illegal", "--dtype=bfloat16", "--device=cuda:1", status=1)
    found = layer["checks"]["returns"]
    assert found["case"] == "bfloat16/normal/9x384" and found["failed"] == layer["refused"] == 8
    assert "gpu_liar_illegal:relu: failed on cuda:1 after the call had returned: CUDA_ERROR_ILLEGAL_ADDRESS (700)" in found["what"]
    assert broken(layer) == {"returns"} and layer["worst"]["worst"] == 0
    pids = {line for line in machine.log.read_text().splitlines() if line.startswith("cuInit ")}
    assert len(pids) >= 8


def test_a_prepared_weight_is_the_device_s(machine):
    layer = machine.compare("gpu", "--case=float32/normal/4x33")
    assert layer["serves"] == "RMSNorm" and broken(layer) == {"returns"}  # strided rows are refused
    assert "rows that lie apart" in layer["checks"]["returns"]["what"] and layer["worst"]["worst"] <= 0.51


def test_built_in_kernels_for_cpus_on_a_machine_with_a_gpu(machine):
    for arguments in [["get", "khub/activation"], ["functions", "khub/softmax"], ["call", "khub/activation:relu", "out=float32[2,3]", "x.npy"]]:
        done = machine.run(*arguments, reports=[])
        assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(machine.folder / "out.npy"), machine.x)
    variants = json.loads(machine.run("variants", "khub/norm", "--json", reports=[]).stdout)
    assert "-cpu-" in variants["chosen"]


@pytest.mark.parametrize("arguments", [["variants", "khub/norm", "--backend", "cuda"], ["get", "khub/norm", "--backend", "cuda"],
                                       ["call", "khub/activation:relu", "out=float32[2,3]", "x.npy", "--device", "cuda:1"]])
def test_a_gpu_that_was_asked_for_by_name(machine, arguments):
    done = machine.run(*arguments, reports=[])
    assert done.returncode == 3, done.stdout + done.stderr
    assert "no build fits" in done.stderr


def test_a_kernel_is_timed_by_the_device_s_events(machine):
    """The fake driver's events are 1.5 ms apart, its 10 multiprocessors start 128 multiply-adds each at 1 GHz."""
    described = TWO + "memory 300000000\n"
    done = machine.run("bench", f"{REPOS / 'gpu_liar_honest'}:ReLU", "--json", "--device=cuda:1", "--shape=m=4,n=1024",
                       "--dtype=float32", "--time=0.2", described=described)
    assert done.returncode == 0, done.stderr
    bench = json.loads(done.stdout)
    (case,) = bench["cases"]
    assert bench["machine"]["device"] == "Fake Hopper (cuda:1)"
    assert bench["machine"]["fma_flops"] == 10 * 128 * 2 * 1e9
    assert bench["machine"]["copy_memory"] == pytest.approx((256 << 20) / 1.5e-3)
    assert case["kernel"]["median"] == case["kernel"]["best"] == pytest.approx(1.5e-3) and case["standard"] is None
    assert case["bytes"] == 2 * 4 * 4096 and case["copy_share"] == pytest.approx(1)  # as long as a copy takes there
    table = machine.run("bench", f"{GPU}:add_one", "out=float32[100]", "x=float32[100]", "--device=cuda:0", "--time=0.1",
                        described=described)
    assert "on Fake Hopper (cuda:0)" in table.stdout and "1.50 ms" in table.stdout, table.stderr


def test_a_kernel_that_fails_on_the_device_isn_t_timed(machine):
    done = machine.run("bench", f"{GPU}:illegal", "x=float32[100]", "--time=0.1", described=TWO + "memory 300000000\n",
                       reports=["left memory 2", *LEFT[1:]])
    assert done.returncode == 1 and f"{GPU}:illegal: failed on cuda:0 after the call had returned" in done.stderr
