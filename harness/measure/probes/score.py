"""What a person's own function makes of a path's outputs for labelled inputs, held to what it makes of the oracle's.

A path may lose a hundredth of the oracle's score, as a detector may in MLPerf Inference: its table of benchmarks asks
for 99 % of the mAP in float32 (mlcommons/inference_policies, inference_rules.adoc, version 0.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.failures import ModelError
from harness.compile.models.score import outputs_of, score_of
from harness.measure.facts import Score

if TYPE_CHECKING:
    from device_runner.device import Array, Program

LOSS = 0.01
"""Share of the oracle's score that a path may lose."""


def score(
    program: Program,
    scored: list[Array],
    batch: int,
    place: str,
    oracle: tuple[str, float],
    timeout_s: float,
) -> Score:
    """Score a program's outputs for labelled data (`artifacts.artifact.SCORED`), `batch` inputs at once.

    Raises ModelError for what the function does wrong, and what the program raises.
    """
    inputs, labels = scored
    outputs = outputs_of(lambda rows: program.run([rows], timeout_s=timeout_s)[0], inputs, batch)
    name, value = score_of(place, outputs, labels)
    expected, number = oracle
    if name != expected:
        raise ModelError(f"{place} returned {name!r}, and {expected!r} for the oracle", hint="return one name")
    return Score(name, value, number, len(inputs), number - LOSS * abs(number))
