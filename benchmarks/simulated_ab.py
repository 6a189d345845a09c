"""`compare a.onnx b.onnx` as it ships, in a simulated clock: nothing of its rule is copied, and nothing runs.

python -m benchmarks.simulated_ab

prints the answers to eight repeats of two networks that differ by 5 %, and to eight of one network under two names.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from benchmarks.detection_rigs import RigMaker, phone
from device_runner.device import Identity
from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.measure.records.record import Record
from harness.tools.ab.side_by_side import CasePair, Pairing, judge_in_turns
from harness.tools.shared.comparison_view import ComparisonView

REPEATS, STEP, NOISE = 8, 0.05, 0.01
"""Repeats, the difference of the two networks, and the noise between sessions: that of a phone at rest."""
PAIR = {Arm.BASE: Case("a", "texture"), Arm.HEAD: Case("b", "texture")}
PAIRING = Pairing((PAIR,), ("model",), ("a", "b"))
IDENTITY = Identity("phone", "simulated")


def answer(make: RigMaker, step: float, seed: int) -> ComparisonView:
    """Return the verdict on a network `b` whose inferences take longer than those of `a` by `step`, a fraction."""
    rig = make(np.random.default_rng([seed, 51]))

    def measure(pair: CasePair, arm: Arm) -> Record:
        case = pair[arm]
        facts = {"case": case.id, "path": case.path, "wall_ms": rig.session(step if arm is Arm.HEAD else 0.0)}
        return _TEMPLATE.model_copy(update={**facts, "artifact": case.model})

    verdicts, _ = judge_in_turns(PAIRING, measure, Rules())
    return verdicts


_KNOWN: dict[str, Any] = {
    "identity": IDENTITY,
    "identity_key": IDENTITY.key,
    "emulated": (),
    "outcome": Outcome.OK,
    "started_at": "2026-01-01",
    "tvm": "",
    "ffi": "",
}
_TEMPLATE = Record.model_construct(**_KNOWN)


def main() -> None:
    """Print every answer, and how many of each kind there are."""
    for what, step in ((f"b takes {STEP:.0%} longer", STEP), ("the same network twice", 0.0)):
        answers = [answer(partial(phone, bias=NOISE), step, seed) for seed in range(REPEATS)]
        counts = Counter(case.verdict.value for verdicts in answers for case in verdicts.result.cases)
        print(f"{what}: {', '.join(f'{count} of {REPEATS} {verdict}' for verdict, count in counts.items())}")
        for verdicts in answers:
            (case,) = verdicts.result.cases
            print(f"  {verdicts.answer} ({case.in_turns} sessions)")


if __name__ == "__main__":
    main()
