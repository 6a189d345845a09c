"""Records as no device has made them: suites of made-up phones with a wrong case, a broken one, and a slower build."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from device_runner.device import Identity
from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.measure.facts import Batches
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record

MODELS_MS = {"mobilenet_v1": 18.4, "resnet18": 41.0, "squeezenet1_1": 12.7, "densenet121": 96.0, "mnasnet1_0": 15.1}
"""Made-up latencies on path opencl; more models are called `net_5` and so on."""
PATHS = {"opencl": 1.0, "texture": 0.62, "clml": 0.5}
"""How long each takes, against opencl."""
KINDS = {"float32-untuned": 1.0, "float16-tuned": 0.7}
PHONES = (("SM8650", "Adreno750"), ("SM8550", "Adreno740"), ("SM8450", "Adreno730"))
WRONG, BROKEN = ("resnet18", "texture"), ("squeezenet1_1", "clml")
SAMPLES = 30


def suite(
    models: int, phones: int = 1, session_count: int = 2, *, bad: bool = True, slower: float = 1.0
) -> list[Record]:
    """Return all sessions of so many models on so many phones.

    Args:
        models: Each has six cases.
        phones: Each is slower than the one before.
        session_count: Of each case.
        bad: Whether one model is wrong on one path, and one broken.
        slower: Factor of the latency of mobilenet_v1 on path opencl, whose artifact it changes.
    """
    names = [*MODELS_MS, *(f"net_{number}" for number in range(len(MODELS_MS), models))][:models]
    return [
        record
        for number, (soc, gpu) in enumerate(PHONES[:phones])
        for record in _of_phone(names, _phone(soc, gpu), 1 + 0.2 * number, session_count, bad, slower)
    ]


def _phone(soc: str, gpu: str) -> Identity:
    driver = "OpenCL 3.0 QUALCOMM build: made up"
    return Identity(
        "phone", "example", soc=soc, gpu=gpu, driver=driver, clml="3", rom="example/made/up", memory_bytes=11 << 30
    )


def _of_phone(
    models: Sequence[str], phone: Identity, pace: float, session_count: int, bad: bool, slower: float
) -> Iterator[Record]:
    for model in models:
        for path, share in PATHS.items():
            for kind, faster in KINDS.items():
                chance = random.Random(f"{model}{path}{kind}{phone.gpu}{slower}")
                changed = slower != 1 and (model, path) == ("mobilenet_v1", "opencl")
                ms = MODELS_MS.get(model, 30.0) * pace * share * faster * (slower if changed else 1)
                facts = _bad(model, path) if bad else {}
                for _ in range(1 if facts else session_count):
                    known = facts or _times(ms * chance.gauss(1, 0.006), chance)
                    artifact = f"{random.Random(f'{model}{path}{kind}{changed}').getrandbits(96):024x}"
                    yield _record(f"{model}-{path}-{kind}", phone, {**known, "artifact": artifact}, chance)


def _bad(model: str, path: str) -> dict[str, Any]:
    if (model, path) == WRONG:
        told = "output 0 is off by 14.5 at [0, 888]: -9.81404 instead of 4.68917 (tolerance 0.0139)"
        find = f"adreno-bench diverge {model}-{path}-float32-untuned"
        hint = f"`{find}` finds the first operator whose output is off"
        errors = {"max_abs_err": 14.5, "tolerance": 0.0139}
        return {"outcome": Outcome.WRONG_RESULT, "message": told, "hint": hint, **errors}
    if (model, path) == BROKEN:
        told = "TVM failed to lower the model: ScheduleError: the buffer is read by two blocks"
        return {"outcome": Outcome.COMPILE_ERROR, "message": told, "evidence": f"Traceback\n{told}"}
    return {}


def _times(ms: float, chance: random.Random) -> dict[str, Any]:
    def sample() -> float:
        return ms * chance.lognormvariate(0, 0.012) + (ms * 0.12 * chance.random() if chance.random() < 0.08 else 0)

    wall = [sample() for _ in range(SAMPLES)]
    return {
        "outcome": Outcome.OK,
        "wall_ms": wall,
        "device_ms": [one * 0.9 * chance.lognormvariate(0, 0.004) for one in wall[:8]],
        "device_clock": "kernels",
        "parts": parts_of(Batches(8, [ms * 0.85 * chance.lognormvariate(0, 0.01) for _ in range(6)], [], 31)),
        "init_ms": 44.0,
        "first_run_ms": ms * 20,
        "library_bytes": 17_900_000,
        "compile_s": 7.7,
        "max_abs_err": 2.7e-6,
        "tolerance": 0.0027,
        "judge": "onnxruntime 1.24.4",
    }


def _record(case: str, phone: Identity, facts: dict[str, Any], chance: random.Random) -> Record:
    parsed = Case.parse(case)
    day, hour, minute = chance.randint(20, 23), chance.randint(10, 19), chance.randint(10, 59)
    steadiness = {"before": {"gpu_c": 36.0 + chance.random()}, "after": {"gpu_c": 41.0 + chance.random()}}
    known = {
        "case": case,
        "model": parsed.model,
        "path": parsed.path,
        "precision": parsed.precision.value,
        "tuning": parsed.tuning.value,
        "device": "example",
        "identity": phone,
        "identity_key": phone.key,
        "emulated": (),
        "quirks": ("tir-pipeline-tuple",),
        "facts": {"kernels": 32, "image_kernels": 12, "subgraphs": 3, "storage_bytes": 6_631_328},
        "steadiness": {**steadiness, "clock_histogram": {"903": 0.96, "680": 0.04}},
        "tvm": "0.27.0.post1",
        "ffi": "0.1.14.post1",
        "harness": "0.1.0",
        "started_at": f"2026-11-{day}T{hour}:{minute}:00.000+00:00",
        "run": f"{chance.getrandbits(48):012x}",
    }
    return Record.model_validate({**known, **facts})
