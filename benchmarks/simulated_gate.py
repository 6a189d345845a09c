"""The gate as it ships, on a device that is simulated: nothing of its rule is copied, and nothing runs.

`run_gate` blesses a build on one day, takes head's first session on another, and hands both to
`harness.judge.gate.Gate` with a device that answers with samples of a rig (`benchmarks.detection_rigs`).

    python -m benchmarks.simulated_gate

prints what it says of phones whose sessions lie 1, 1.5 and 2 % apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.detection_rigs import Rig, RigMaker, phone
from device_runner.device import Identity
from harness.base.outcome import Outcome
from harness.judge.baseline import Baseline, BlessedSession
from harness.judge.compare import Comparison
from harness.judge.gate import Gate
from harness.judge.noise import NoiseModel, learn
from harness.judge.sides import SeriesKey, Side
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.measure.records.record import Record

CASE = "tiny-opencl-float32-untuned"
IDENTITY = Identity("phone", "simulated")
BLESSED_ON, GATED_ON = "2026-01-01T00:00:00.000+00:00", "2026-01-02T00:00:00.000+00:00"
KEY = SeriesKey(IDENTITY.key, CASE)


def run_gate(
    make: RigMaker,
    step: float,
    seed: int,
    *,
    most_sessions: int = 32,
    learned: int = 0,
    rules: Rules | None = None,
    day_sd: float = 0.02,
) -> Comparison:
    """Return a gate's verdict on a case whose head is slower by `step`, after sessions that taught the noise.

    Days of the rig lie `day_sd` apart.
    """
    generator = np.random.default_rng([seed, 7])
    rig, day = make(generator), day_sd * float(generator.normal())
    blessed = _baseline([BlessedSession(started_at=BLESSED_ON, wall_ms=rig.session(day))])
    known = learn([_record(rig, "head", 0.0, BLESSED_ON) for _ in range(learned)]) if learned else NoiseModel({}, {})
    gate = Gate({blessed.side.key: blessed.side}, known, rules or Rules(), most_sessions)
    taken = (tuple(rig.session(step)),)
    kernels = (tuple(_kernels(rig)),) if _kernels(rig) else ()
    head = Side(KEY, Outcome.OK, sessions=taken, device_sessions=kernels, started=(GATED_ON,), artifact=f"head {seed}")

    def measure(arm: Arm) -> Record:
        return _record(rig, arm.value, step if arm is Arm.HEAD else 0.0, GATED_ON)

    (case,) = gate.compare({KEY: head}, lambda _: measure).cases
    return case


def sessions_of(case: Comparison) -> int:
    """Return how many sessions in turns it took, head's first one among them."""
    return sum(case.change.sessions) if case.change else 0


def _baseline(sessions: list[BlessedSession]) -> Baseline:
    return Baseline(
        case=CASE,
        identity_key=IDENTITY.key,
        kind="latency",
        emulated=(),
        artifact="base",
        quirks=(),
        tvm="",
        ffi="",
        max_abs_err=None,
        tolerance=None,
        facts={},
        sessions=sessions,
    )


_KNOWN: dict[str, Any] = {
    "case": CASE,
    "path": "opencl",
    "identity": IDENTITY,
    "identity_key": IDENTITY.key,
    "emulated": (),
    "outcome": Outcome.OK,
}
_TEMPLATE = Record.model_construct(**_KNOWN)


def _record(rig: Rig, artifact: str, step: float, started_at: str) -> Record:
    wall_ms = rig.session(step)
    times = {"wall_ms": wall_ms, "device_ms": _kernels(rig)}
    return _TEMPLATE.model_copy(update={"artifact": artifact, "started_at": started_at, **times})


def _kernels(rig: Rig) -> list[float]:
    """Return what the kernels' clock of a rig made of its last session; nothing if it has none."""
    return list(getattr(rig, "device_ms", ()))


def main() -> None:
    """Print the gate's own table: head 5 % slower, then unchanged, at three noises."""
    from harness.judge.report.verdicts import verdict_table

    shown = []
    for step, seed in ((0.05, 1), (0.0, 2)):
        for noise in (0.01, 0.015, 0.02):
            case = run_gate(partial(phone, bias=noise), step, seed)
            named = f"{noise:.1%} noise, head {step:+.0%}"
            shown.append(replace(case, key=SeriesKey(IDENTITY.key, named)))
    print(verdict_table(shown))


if __name__ == "__main__":
    main()
