"""Machines that nobody here has: a root directory each, with drivers (tests/drivers), devices on the bus and in /dev, and what khub has to
say of it. What is expected comes from the vendors: NVIDIA's list of compute capabilities and its driver API, LLVM's list of AMD's
processors and the HIP API, Intel's list of GMDIDs and the Level Zero specification, Huawei's AscendCL, AWS's kernel driver, and JAX's
list of TPUs."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

BINARY = pathlib.Path(os.environ["KHUB_BINARY"])
DRIVERS = BINARY / "tests" / "drivers"
CUDA, HIP, ZE, ACL = "libcuda.so.1", "libamdhip64.so.6", "libze_loader.so.1", "libascendcl.so"
GIB = 1 << 30

MACHINES = []


def machine(name, drivers, backend, archs=(), *, said="", presence=None, env=None, bus=(), nodes=(), files=None, timeout=30000):
    """`drivers`: description by library. `said` and `presence` are of the first accelerator that has a driver or a device; without
    `presence` it is found where `backend` isn't the CPU."""
    MACHINES.append(dict(name=name, drivers=drivers, backend=backend, archs=list(archs), said=said, presence=presence, env=env or {}, bus=bus,
                         nodes=nodes, files=files or {}, timeout=timeout))


def device(*fields):
    return "device " + "|".join(map(str, fields)) + "\n"


# ---- NVIDIA: developer.nvidia.com/cuda-gpus; a driver says 1000 · major + 10 · minor

for name, capability in {
        "Tesla P100": "6.0", "GeForce GTX 1080": "6.1", "Tesla P4": "6.1", "Tesla V100-SXM2-32GB": "7.0", "TITAN V": "7.0", "Xavier": "7.2", "Tesla T4": "7.5",
        "GeForce RTX 2080 Ti": "7.5", "GeForce GTX 1660 Ti": "7.5", "Quadro RTX 8000": "7.5", "NVIDIA A100-SXM4-80GB": "8.0", "NVIDIA A30": "8.0",
        "NVIDIA A10": "8.6", "NVIDIA A40": "8.6", "NVIDIA GeForce RTX 3090": "8.6", "NVIDIA RTX A6000": "8.6", "Orin": "8.7", "NVIDIA GeForce RTX 4090": "8.9",
        "NVIDIA L4": "8.9", "NVIDIA L40S": "8.9", "NVIDIA RTX 6000 Ada Generation": "8.9", "NVIDIA H100 80GB HBM3": "9.0", "NVIDIA H200": "9.0",
        "NVIDIA GH200 480GB": "9.0", "NVIDIA B200": "10.0", "NVIDIA GB200": "10.0", "NVIDIA B300": "10.3", "NVIDIA GB300": "10.3", "NVIDIA Thor": "11.0",
        "NVIDIA GeForce RTX 5090": "12.0", "NVIDIA GeForce RTX 5060": "12.0", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "12.0", "NVIDIA GB10": "12.1",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "8.0"}.items():
    old = float(capability) < 7
    machine(name, {CUDA: "version 13000\n" + device(name, capability, 24 * GIB, 1)}, "cu130", [capability],
            said="built for capability 7.0 and later" if old else None)
for version, backend in {9020: "cu92", 10020: "cu102", 11000: "cu110", 11040: "cu114", 11080: "cu118", 12000: "cu120", 12020: "cu122", 12040: "cu124",
                         12060: "cu126", 12080: "cu128", 12090: "cu129", 13010: "cu131", 13020: "cu132"}.items():
    machine(f"driver {version}", {CUDA: f"version {version}\n" + device("NVIDIA T4", "7.5", GIB, 1)}, backend, ["7.5"])
machine("two of one kind and another", {CUDA: "version 12080\n" + device("A", "8.6", GIB, 1) * 2 + device("B", "12.0", GIB, 2)}, "cu128", ["8.6", "12.0"])
for code, words in {3: "says 3", 35: "update it", 46: "another process", 101: "says 101", 214: "reset it", 304: "/dev/nvidia*", 802: "nvidia-fabricmanager",
                    803: "reboot", 804: "cuda-compat", 999: "unknown error: often after the machine slept"}.items():
    machine(f"cuInit says {code}", {CUDA: f"cuInit return {code}\n"}, "cpu", said=words, presence="broken")
machine("the toolkit's stub", {CUDA: "cuInit return 34\n"}, "cpu", said="is the toolkit's stub, not a driver", presence="absent")
machine("no device", {CUDA: "cuInit return 100\n"}, "cpu", said="the driver sees no device", presence="absent")
machine("no device when counted", {CUDA: "version 13000\n"}, "cpu", said="the driver sees no device", presence="absent")
machine("a device that is lost", {CUDA: "version 13000\ncuDeviceGetAttribute return 999\n" + device("A", "8.6", GIB, 1)}, "cpu", said="cuDeviceGetAttribute says 999",
        presence="broken")
for call in "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDeviceGetUuid_v2":
    machine(f"{call} crashes", {CUDA: f"version 13000\n{call} abort\n" + device("A", "8.6", GIB, 1)}, "cpu", said="the driver", presence="broken")
machine("a slow driver", {CUDA: "version 13000\ncuInit sleep 300\n" + device("A", "8.6", GIB, 1)}, "cu130", ["8.6"])
machine("all hang at once", {lib: "first hang\n" for lib in (CUDA, HIP, ZE, ACL)}, "cpu", said="the driver hung (cuInit) and was given up after 0.4 s",
        presence="broken", timeout=400)

# ---- AMD: llvm.org/docs/AMDGPUUsage.html; HIP says 10,000,000 · major + 100,000 · minor + build

for name, arch, inside in [
        ("AMD Instinct MI50", "gfx906:sramecc+:xnack-", 0), ("AMD Instinct MI100", "gfx908:sramecc+:xnack-", 0), ("AMD Instinct MI210", "gfx90a:sramecc+:xnack-", 0),
        ("AMD Instinct MI250X", "gfx90a:sramecc+:xnack-", 0), ("AMD Instinct MI300A", "gfx942:sramecc+:xnack+", 1), ("AMD Instinct MI300X", "gfx942:sramecc+:xnack-", 0),
        ("AMD Instinct MI325X", "gfx942:sramecc+:xnack-", 0), ("AMD Instinct MI350X", "gfx950:sramecc+:xnack-", 0), ("AMD Instinct MI355X", "gfx950:sramecc+:xnack-", 0),
        ("AMD Radeon RX 6900 XT", "gfx1030", 0), ("AMD Radeon RX 7900 XTX", "gfx1100", 0), ("AMD Radeon RX 7800 XT", "gfx1101", 0), ("AMD Radeon RX 7600", "gfx1102", 0),
        ("AMD Radeon 780M", "gfx1103", 1), ("Radeon 8060S Graphics", "gfx1151", 1), ("AMD Radeon RX 9060 XT", "gfx1200", 0), ("AMD Radeon RX 9070 XT", "gfx1201", 0)]:
    machine(name, {HIP: "version 70125424\nlayout 1160 1472\n" + device(name, arch, 16 * GIB, inside)}, "rocm71", [arch])
for version, backend in {60032830: "rocm60", 60241133: "rocm62", 60342131: "rocm63", 60443484: "rocm64", 70051831: "rocm70", 70226015: "rocm72"}.items():
    machine(f"HIP {version}", {HIP: f"version {version}\n" + device("MI210", "gfx90a", GIB, 0)}, backend, ["gfx90a"])
machine("ROCm 5, with properties of another layout", {"libamdhip64.so.5": "version 50731921\nlayout 396 792\n" + device("MI210", "gfx90a:sramecc+:xnack-", GIB, 0)},
        "rocm57", ["gfx90a:sramecc+:xnack-"])
machine("properties without an architecture", {HIP: "version 60443484\nlayout 300 300\n" + device("old", "gfx906", GIB, 0)}, "rocm64", [])
machine("a card beside the GPU inside the CPU", {HIP: "version 60443484\n" + device("RX 9070 XT", "gfx1201", GIB, 0) + device("Graphics", "gfx1036", GIB, 1)}, "rocm64",
        ["gfx1201"])
machine("no device for HIP", {HIP: "hipGetDeviceCount return 100\n"}, "cpu", said="/dev/kfd isn't there: the amdgpu kernel driver isn't loaded", presence="absent")
machine("masked away", {HIP: "hipGetDeviceCount return 100\n"}, "cpu", said="each of these selects", env={"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"})
machine("HIP fails", {HIP: "hipGetDeviceCount return 101\n"}, "cpu", said="hipGetDeviceCount says 101: invalid device ordinal", presence="broken")
for call in "hipGetDeviceCount", "hipRuntimeGetVersion", "hipGetDeviceProperties", "hipDeviceTotalMem", "hipDeviceGetAttribute":
    machine(f"{call} crashes", {HIP: f"version 60443484\n{call} abort\n" + device("A", "gfx90a", GIB, 0)}, "cpu", said="the driver", presence="broken")

# ---- Intel: GMDID; builds are named after a version that Level Zero doesn't tell

for name, arch, inside in [("Intel(R) Data Center GPU Max 1550", "12.60.7", 0), ("Intel(R) Data Center GPU Max 1100", "12.60.7", 0),
                           ("Intel(R) Data Center GPU Flex 170", "12.56.5", 0), ("Intel(R) Arc(TM) A770 Graphics", "12.55.8", 0),
                           ("Intel(R) Arc(TM) B580 Graphics", "20.1.4", 0), ("Intel(R) Iris(R) Xe Graphics", "12.0.0", 1), ("Intel(R) Arc(TM) 140V GPU", "20.4.4", 1)]:
    machine(name, {ZE: device(name, arch, inside)}, "cpu" if inside else "xpu", [] if inside else [arch],
            said="only integrated GPUs" if inside else "the version that builds are named after isn't known", presence="broken" if inside else "found")
machine("Level Zero is uninitialized", {ZE: "zeInit return 0x78000001\n"}, "cpu", said="no device: /dev/dri has no render node", presence="absent")
machine("its driver is missing", {ZE: "zeInit return 0x78000001\n"}, "cpu", said="libze_intel_gpu.so.1) is missing", presence="broken", nodes=["dri/renderD128"])
machine("a loader of another version", {ZE: "zeInit return 0x78000002\n"}, "cpu", said="unsupported version", presence="broken")
machine("device lost", {ZE: "zeDriverGet return 0x70000001\n"}, "cpu", said="device lost", presence="broken")
machine("Level Zero without a GPU", {ZE: "count 0\n"}, "cpu", said="Level Zero sees no GPU", presence="absent")
for call in "zeInit", "zeDriverGet", "zeDeviceGet", "zeDeviceGetProperties":
    machine(f"{call} crashes", {ZE: f"{call} abort\n" + device("A", "12.60.7", 0)}, "cpu", said="the driver", presence="broken")

# ---- Huawei

for version, backend in {"7.0.RC1": "cann70", "8.0.0": "cann80", "8.1.RC1": "cann81", "8.2.RC1.alpha003": "cann82", "8.3.RC1": "cann83", "8.5.0": "cann85"}.items():
    machine(f"CANN {version}", {ACL: f"version {version}\nsoc Ascend910B3\n" + device("") * 8}, backend, ["Ascend910B3"])
for soc in "Ascend910_9391", "Ascend310P3":
    machine(soc, {ACL: f"version 8.3.RC1\nsoc {soc}\n" + device("")}, "cann83", [soc])
machine("CANN without its environment", {ACL: "soc Ascend910B1\n" + device("")}, "cann", ["Ascend910B1"], said="CANN's set_env.sh does it")
machine("CANN without a device", {ACL: "version 8.3.RC1\n"}, "cpu", said="/dev has no davinci0", presence="absent")
machine("CANN's driver fails", {ACL: "aclInit return 507008\n"}, "cpu", said="driver isn't ready", presence="broken")
for call in "aclInit", "aclrtGetDeviceCount", "aclsysGetCANNVersion":
    machine(f"{call} crashes", {ACL: f"version 8.3.RC1\n{call} abort\n" + device("")}, "cpu", said="the driver", presence="broken")

# ---- AWS and Google: what is on the bus, in /dev, in reach

NEURON, TPU = {"libnrt.so.1": b"\x7fELF"}, {"libtpu.so": b"\x7fELF"}
for number, arch in {"7064": "inf1", "7164": "trn1", "7264": "inf2", "7364": "trn2", "7564": "trn3"}.items():
    machine(arch, {}, "neuron", [arch], bus=[("0x1d0f", f"0x{number}")] * 2, nodes=["neuron0", "neuron1"], files=NEURON)
for number, arch in {"0027": "v3", "005e": "v4", "0062": "v5p", "0063": "v5e", "006f": "v6e", "0076": "v7x"}.items():
    machine(f"TPU {arch}", {}, "tpu", [arch], bus=[("0x1ae0", f"0x{number}")] * 4, nodes=["accel0"] if arch in ("v3", "v4") else ["vfio/0"], files=TPU)
machine("Neuron without its kernel driver", {}, "cpu", said="aws-neuronx-dkms", presence="broken", bus=[("0x1d0f", "0x7364")], files=NEURON)
machine("Neuron without its runtime", {}, "cpu", said="libnrt.so.1", presence="broken", bus=[("0x1d0f", "0x7364")], nodes=["neuron0"])
machine("TPU without its runtime", {}, "cpu", said="libtpu", presence="broken", bus=[("0x1ae0", "0x0063")], nodes=["vfio/0"])
machine("TPU runtime without a TPU", {}, "cpu", said="no TPU on the PCI bus", presence="absent", bus=[("0x1ae0", "0x0fff"), ("0x8086", "0x0063")],
        nodes=["vfio/0"], files=TPU)

# ---- what isn't as it should be

good = "version 13000\n" + device("A", "8.6", GIB, 1)
machine("minus one device", {CUDA: "count -1\n" + good}, "cpu", said="sees no device", presence="absent")
machine("a million devices", {CUDA: "count 1000000\n" + good}, "cu130", ["8.6", "0.0"])
machine("a million devices for HIP", {HIP: "count 1000000\nversion 60443484\n" + device("A", "gfx90a", GIB, 0)}, "rocm64", ["gfx90a"])
machine("names without end", {CUDA: "version 13000\n" + device("endless", "8.6", GIB, 1)}, "cu130", ["8.6"])
machine("names without end for HIP", {HIP: "version 60443484\n" + device("endless", "gfx90a", GIB, 0)}, "rocm64", ["gfx90a"])
machine("a CANN version without end", {ACL: "version endless\nsoc A\n" + device("")}, "cann", ["A"])
for version in 0, -1, 7:
    machine(f"driver version {version}", {CUDA: f"version {version}\n" + device("A", "8.6", GIB, 1)}, "cuda", ["8.6"], said="isn't known", presence="found")
machine("a HIP version of nothing", {HIP: "version 0\n" + device("A", "gfx90a", GIB, 0)}, "rocm", ["gfx90a"], said="isn't known", presence="found")
machine("a CANN version in words", {ACL: "version next\nsoc A\n" + device("")}, "cann", ["A"], said="isn't known", presence="found")
machine("a driver that is a text", {}, "cpu", said="the loader refuses it", presence="broken", files={CUDA: b"hello\n"})
machine("a driver that is empty", {}, "cpu", said="the loader refuses it", presence="broken", files={CUDA: b""})
elf = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\xb7\0\x01\0\0\0" + bytes(44)  # e_machine 183: AArch64
machine("a driver for another processor", {}, "cpu", said="the loader refuses it", presence="broken", files={CUDA: elf})
machine("a driver that is a directory", {}, "cpu", files={CUDA + "/x": b""})
machine("a driver of somebody else", {}, "cpu", said="has no function cuInit", presence="broken", files={CUDA: DRIVERS / ZE})
for mask in "", "-1", "0,foo", "GPU-46000102-0304-0506-0708-090a0b0c0d0e", "MIG-x", "\x01;$(reboot)", "99999999999999999999":
    hidden = mask in ("", "-1")
    machine(f"CUDA_VISIBLE_DEVICES={mask!r}", {CUDA: good}, "cpu" if hidden else "cu130", [] if hidden else ["8.6"], said="hidden by CUDA_VISIBLE_DEVICES" if hidden else None,
            presence="absent" if hidden else "found", env={"CUDA_VISIBLE_DEVICES": mask})
machine("NVIDIA beside AMD beside Intel", {CUDA: good, HIP: "version 60443484\n" + device("A", "gfx90a", GIB, 0), ZE: device("A", "12.60.7", 0)}, "cu130", ["8.6"])
machine("a broken NVIDIA beside AMD", {CUDA: "cuInit abort\n", HIP: "version 60443484\n" + device("A", "gfx90a", GIB, 0)}, "rocm64", ["gfx90a"], said="the driver",
        presence="broken")
machine("topology that can't be read", {HIP: "hipGetDeviceCount return 100\n"}, "cpu", said="the runtime sees no device", presence="absent",
        files={"../../sys/class/kfd/kfd/topology/nodes/0/properties": b"gfx_target_version \xff\n", "../../sys/class/kfd/kfd/topology/nodes/1/properties": b""})
machine("topology of a GPU that the runtime hides", {HIP: "hipGetDeviceCount return 100\n"}, "cpu", said="the kernel's driver lists gfx942", presence="absent",
        files={"../../sys/class/kfd/kfd/topology/nodes/1/properties": b"simd_count 1216\ngfx_target_version 90402\n"})


def build(root, of):
    """Makes the machine's files; its libraries are in /usr/lib."""
    libraries = root / "usr" / "lib"
    libraries.mkdir(parents=True)
    for i, (library, text) in enumerate(of["drivers"].items()):
        folder = root / f"driver{i}"  # a description lies beside its library
        folder.mkdir()
        shutil.copy(DRIVERS / library, folder)
        (folder / "driver").write_text(text)
        (libraries / library).symlink_to(folder / library)
    for name, content in of["files"].items():
        path = libraries / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.read_bytes() if isinstance(content, pathlib.Path) else content)
    for i, (vendor, number) in enumerate(of["bus"]):
        place = root / "sys/bus/pci/devices" / f"0000:00:{i:02x}.0"
        place.mkdir(parents=True)
        (place / "vendor").write_text(vendor + "\n")
        (place / "device").write_text(number + "\n")
    for node in of["nodes"]:
        (root / "dev" / node).parent.mkdir(parents=True, exist_ok=True)
        (root / "dev" / node).touch()


def wrong(of, report):
    """What isn't as expected; None: nothing."""
    if (report["backend"], report["archs"]) != (of["backend"], of["archs"]):
        return f"{report['backend']} {report['archs']}, {of['backend']} {of['archs']} is expected"
    on_bus = of["bus"] and ("neuron" if of["bus"][0][0] == "0x1d0f" else "tpu")
    concerned = [a for a in report["accelerators"] if a["presence"] != "absent" or a["path"] or a["backend"] == on_bus]
    if not concerned:
        return None if of["presence"] is None and not of["said"] else "nothing was looked at"
    first = concerned[0]
    presence = of["presence"] or ("found" if of["backend"] != "cpu" else first["presence"])
    if first["presence"] != presence:
        return f"{first['backend']} is {first['presence']}, {presence} is expected: {first['reason']}"
    if of["said"] is None and first["reason"] or of["said"] and of["said"] not in (first["reason"] or ""):
        return f"{first['backend']}: {first['reason']!r}, {of['said']!r} is expected"
    return None


@pytest.fixture
def ask(monkeypatch, tmp_path):
    """What khub says of the machine below a root, in one process for all of them."""
    for name in ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "ASCEND_HOME_PATH",
                 "ASCEND_RT_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KHUB_PREFIX", os.environ["KHUB_STAGE"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with subprocess.Popen([DRIVERS / "machine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def answer(root, env, timeout):
            lines = [f"!{timeout}", *(f"={name} {value}" for name, value in env.items()), str(root), *(f"-{name}" for name in env)]
            process.stdin.write("".join(line + "\n" for line in lines))
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield answer
        process.stdin.close()
    assert process.returncode == 0


def test_each_machine_is_what_its_vendor_says(tmp_path, ask):
    assert len(MACHINES) >= 120 and len({m["name"] for m in MACHINES}) == len(MACHINES)
    findings = {}
    for i, of in enumerate(MACHINES):
        build(tmp_path / str(i), of)
        findings[of["name"]] = wrong(of, ask(tmp_path / str(i), of["env"], of["timeout"]))
    assert {name: finding for name, finding in findings.items() if finding} == {}
