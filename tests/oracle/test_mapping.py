"""Which kernel a mapping gives a layer: as the Python package `kernels` has it, over modes, devices, ranges of capabilities and
repeated registration."""

import json
import os
import random
import subprocess

import pytest
from kernels.layer import CUDAProperties, Device, Mode, ROCMProperties, register_kernel_mapping
from kernels.layer import globals as peer_globals
from kernels.layer import repos as peer

DRIVER = os.path.join(os.environ["KHUB_BINARY"], "tests", "oracle_mapping")
CASES = 300

LAYERS = ["GeLU", "RMSNorm"]
DEVICES = ["cpu", "cuda", "rocm", "mps", "xpu", "npu", "neuron", "tpu"]
MODES = {"inference": Mode.INFERENCE, "inference|compile": Mode.INFERENCE | Mode.TORCH_COMPILE, "training": Mode.TRAINING,
         "training|compile": Mode.TRAINING | Mode.TORCH_COMPILE}
ENTRY_MODES = {**MODES, "fallback": Mode.FALLBACK}
CAPABILITIES = [70, 75, 80, 89, 90, 100, 120]
ASKED = [0, 74, 75, 79, 80, 86, 89, 90, 95, 120, 121]


def draw_range(rng):
    """A range, as khub writes it and as the peer has it. None: every capability."""
    low, high = sorted(rng.choices(CAPABILITIES, k=2))
    return rng.choice([("", None), ("", None), (":0-", None), (f":{low}", (low, low)), (f":{low}-{high}", (low, high)),
                       (f":{low}-", (low, 2**63 - 1))])


def draw_registration(rng, names):
    """One registration: what khub reads, and the peer's own value."""
    text, value = {}, {}
    for layer in rng.sample(LAYERS, rng.randint(1, 2)):
        text[layer], value[layer] = {}, {}
        for _ in range(rng.randint(1, 4)):
            device = rng.choice(DEVICES if rng.random() < 0.5 else ["cuda", "rocm"])
            written, bounds = draw_range(rng) if device in ("cuda", "rocm") else ("", None)
            properties = bounds and {"cuda": CUDAProperties, "rocm": ROCMProperties}[device](*bounds)
            key = Device(device, properties)
            if key in value[layer]:
                continue
            if rng.random() < 0.4:
                name = next(names)
                text[layer][device + written], value[layer][key] = f"/{name}", name
            else:
                table = {mode: next(names) for mode in rng.sample(list(ENTRY_MODES), rng.randint(1, 4))}
                text[layer][device + written] = {mode: f"/{name}" for mode, name in table.items()}
                value[layer][key] = {ENTRY_MODES[mode]: name for mode, name in table.items()}
    return json.dumps(text), value


def ranges_of(registrations, layer, device):
    return {key.properties and (key.properties.min_capability, key.properties.max_capability)
            for value in registrations for key in value.get(layer, {}) if key.type == device}


def is_tied(ranges, capability):
    """Two smallest ranges of one size: the peer takes any of them."""
    sizes = sorted(high - low for low, high in (r or (0, 2**63 - 1) for r in ranges) if low <= capability <= high)
    return len(sizes) > 1 and sizes[0] == sizes[1]


def peer_answer(monkeypatch, layer, device, capability, mode):
    monkeypatch.setattr(peer, "_find_capability", lambda: capability)
    of_device = peer_globals._KERNEL_MAPPING.get().get(layer, {}).get(device)
    table = of_device.repos if of_device else None
    found = peer._select_repository(table, mode=MODES[mode]) if table is not None else None
    return found[0] if found else None


def test_lookups(monkeypatch):
    rng = random.Random(5)
    names = (f"k{i}" for i in range(10**6))
    questions, expected = [], []
    for _ in range(CASES):
        drawn = [draw_registration(rng, names) for _ in range(rng.randint(1, 4))]
        token = peer_globals._KERNEL_MAPPING.set({})
        for _, value in drawn:
            register_kernel_mapping(value)
        asks, answers = [], []
        for layer in LAYERS:
            for device in DEVICES:
                ranges = ranges_of([value for _, value in drawn], layer, device)
                for capability in rng.sample(ASKED, 4) if device in ("cuda", "rocm") else [None]:
                    if capability is not None and is_tied(ranges, capability):
                        continue
                    for mode in MODES:
                        asks.append([layer, device if capability is None else f"{device}:{capability}", mode])
                        answers.append(peer_answer(monkeypatch, layer, device, capability, mode))
        peer_globals._KERNEL_MAPPING.reset(token)
        questions.append({"register": [text for text, _ in drawn], "ask": asks})
        expected.append(answers)
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([DRIVER], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    for question, found, wanted in zip(questions, answers, expected):
        wrong = [(ask, a, b) for ask, a, b in zip(question["ask"], found, wanted) if a != b]
        assert not wrong, (question["register"], wrong[0])
    given = [answer for case in expected for answer in case]
    assert len(given) > 15000 and 0.2 < sum(a is not None for a in given) / len(given) < 0.8  # both answers are asked for


@pytest.mark.parametrize("mode", ["fallback", "compile"])
def test_modes_that_are_none_of_a_model(mode):
    """Where the peer refuses to look, so does khub."""
    with pytest.raises(ValueError):
        peer._select_repository({Mode.FALLBACK: "k"}, mode=Mode.FALLBACK if mode == "fallback" else Mode.TORCH_COMPILE)
    question = {"register": ['{"GeLU": "/k"}'], "ask": [["GeLU", "cpu", mode]]}
    done = subprocess.run([DRIVER], input=json.dumps(question), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "mode" in done.stderr
