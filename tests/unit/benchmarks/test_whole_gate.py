"""The whole path of a gate on a device that is simulated: what it states it finds, and it does not cry wolf."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from benchmarks.detection_rigs import phone
from benchmarks.simulated_gate import run_gate
from harness.judge.verdict import Verdict

TRIALS = 300
STATED = {0.01: 0.05, 0.015: 0.05, 0.02: 0.06}
"""By the noise between sessions, the change that docs/data/power.md says a gate of 32 sessions finds."""


@pytest.mark.long
@pytest.mark.parametrize("noise", STATED)
def test_a_gate_finds_what_it_states_and_seldom_cries_wolf(noise: float) -> None:
    rig = partial(phone, bias=noise)
    stepped, still = (
        Counter(run_gate(rig, step, round(1e6 * noise) + trial).verdict for trial in range(TRIALS))
        for step in (STATED[noise], 0.0)
    )
    assert stepped[Verdict.SLOWER] >= 278, "95 %; fewer would be chance once in 40"
    assert stepped[Verdict.SAME] <= 3, "a change of more than is relevant by far"
    assert still[Verdict.SLOWER] + still[Verdict.FASTER] <= 7, "1 % for both; eight would be chance once in 80"
    assert still[Verdict.SAME] >= 255
