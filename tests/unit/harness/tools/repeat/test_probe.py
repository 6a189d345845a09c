"""More inferences, each judged on a draw of the inputs of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from fake_device import ANSWER, FakeDevice, FakeProgram, a_plan, things

from harness.base.outcome import Outcome
from harness.base.plan import Job
from harness.compile.artifacts.artifact import OUTPUTS, save_arrays
from harness.measure.context import Run
from harness.measure.correctness import Truth, compare_answers
from harness.measure.facts import Facts
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.tools.repeat.probe import RepeatProbe


def run(tmp_path: Path, device: FakeDevice, last: np.ndarray = ANSWER) -> Record:
    """Run a case on three draws of its inputs, the last of which has this right answer."""
    keys = ["second", "third"]
    answers = {key: things(tmp_path / key)["o-tiny"] for key in keys}
    save_arrays(tmp_path / "third" / OUTPUTS, [last])
    plan = replace(a_plan(), repeats=tuple(Job("oracle", key, key, {}) for key in keys))
    whole = Run(device, TuningStore(Path("/nowhere")))
    return run_case(plan, {**things(tmp_path / "first"), **answers}, whole, SilentProgress()).record


def test_the_record_counts_the_draws_and_keeps_the_worst(tmp_path: Path) -> None:
    record = run(tmp_path, FakeDevice(), ANSWER + np.float32(1e-3))
    assert record.outcome is Outcome.OK
    assert record.accuracy
    assert record.accuracy.draws == 3
    assert record.accuracy.max_abs_err == pytest.approx(1e-3, rel=1e-3)


def test_an_answer_that_is_wrong_on_a_later_draw_is_a_wrong_result_without_a_latency(tmp_path: Path) -> None:
    record = run(tmp_path, FakeDevice(), ANSWER + 1)
    assert record.outcome is Outcome.WRONG_RESULT
    assert "on draw 3 of 3 of its inputs" in record.message
    assert not record.wall_ms
    assert record.accuracy
    assert record.accuracy.draws == 3


def test_a_program_is_left_on_the_inputs_of_the_case() -> None:
    """What is timed last of a slow program is judged by the case's own answer: right ones were called wrong."""
    own, other = np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32)
    facts, program = Facts(), FakeProgram(FakeDevice())
    facts.add(compare_answers([ANSWER], [ANSWER], 1e-5))
    probe = RepeatProbe(a_plan(), lambda: iter([Truth([other], [ANSWER], 1e-5)]), [own])
    assert [accuracy.right for accuracy in probe(program, cast(Any, None), facts)] == [True]
    assert program.inputs[0] is own
