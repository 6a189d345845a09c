"""What a search judges its candidates by."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fake_device import ANSWER, a_plan
from fake_tuning import DEAR

from harness.base.plan import Job, Plan
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import INPUTS, LEEWAY, OUTPUTS, Answers, save_arrays
from harness.compile.artifacts.pool import Builder
from harness.compile.oracle.leeway import Measured, save_leeway
from harness.compile.schedules.database import ThreadLimits
from harness.measure.correctness import Truth, compare_answers
from harness.tools.tune import workshop
from harness.tools.tune.workshop import Workshop

PLAN = replace(a_plan(), relative_tolerance=1e-5, rounding_factor=8.0)
PLAN = replace(PLAN, compile=replace(PLAN.compile, payload={"request": {"path": "p", "quirks": [], "host_triple": ""}}))


class Answered:
    """A builder that has LLVM's answer for every task, which rounding moves by a thousandth."""

    def __init__(self, root: Path, *_: Any, **__: Any) -> None:
        self._folder = root

    def __enter__(self) -> Answered:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, job: Job) -> Future[Answers]:
        assert job.kind == "task-answer"
        for name in (INPUTS, OUTPUTS):
            save_arrays(self._folder / name, [ANSWER])
        save_leeway(self._folder / LEEWAY, [Measured(rounding={"float32": 1e-3})])
        found = Future[Answers]()
        found.set_result(Answers(self._folder, reused=False))
        return found


@pytest.mark.parametrize(("error", "right"), [(0.015, True), (0.03, False)])
def test_a_candidate_may_be_off_by_what_rounding_does_to_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: float, right: bool
) -> None:
    monkeypatch.setattr(workshop, "Builder", Answered)
    with Workshop(PLAN, cast(Builder, Answered(tmp_path)), Limits(), ThreadLimits()) as shop:
        truth = shop.truth(DEAR)
    assert isinstance(truth, Truth)
    found = compare_answers([ANSWER + error], truth.expected, truth.relative_tolerance, truth.rounding)
    assert found.right is right, "8e-3 of a peak of 3 and of a root mean square of 2.16"


def test_what_was_tried_under_another_tolerance_is_tried_again(tmp_path: Path) -> None:
    def key(plan: Plan) -> str:
        return Workshop(plan, cast(Builder, Answered(tmp_path)), Limits(), ThreadLimits()).trials_key([])

    assert key(PLAN) == key(PLAN)
    assert len({key(PLAN), key(replace(PLAN, relative_tolerance=1e-4)), key(replace(PLAN, rounding_factor=0.0))}) == 3
