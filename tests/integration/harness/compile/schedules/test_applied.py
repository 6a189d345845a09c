"""Schedules given to functions of a network: a trace gives the same function again, and what does not fit is told."""

from __future__ import annotations

from typing import Any

import pytest
from task_functions import CONV, MATMUL, function, target, trace_of

from harness.compile.compiler.compat import tir_function
from harness.compile.schedules.apply import (
    PortableSchedules,
    RecordedSchedules,
    ScheduleApplier,
    decisions_of,
)
from harness.compile.schedules.database import Schedule, ThreadLimits
from harness.compile.schedules.spaces import space_of
from harness.compile.schedules.tasks import is_scheduled, shapes_of, task_of
from harness.tools.tune.drawing import schedule_of

pytestmark = pytest.mark.slow


def some_schedule(one: Any) -> Any:
    """Of a function."""
    space = space_of(one, target(), ThreadLimits())
    assert space
    return next(made for made in (schedule_of(space, seed) for seed in range(9)) if made is not None)


def a_record(task: str, trace: Any) -> Schedule:
    told = {"path": "opencl", "name": "add", "ms": 1.0, "untuned_ms": 2.0, "max_rel_err": 0.0, "trials": 1}
    return Schedule.model_validate({**told, "task": task, "trace": trace})


def test_a_task_is_known_by_what_it_does_and_not_by_its_names() -> None:
    assert task_of(function("a")) == task_of(function("b")) != task_of(function(number=2))
    assert task_of(function().with_attr("global_symbol", "add")) == task_of(function())
    assert shapes_of(function(scope="global.texture")) == ["float32[64]", "float32[64] texture"]


@pytest.mark.parametrize("source", [CONV, MATMUL], ids=["texels", "rules"])
def test_what_a_trace_decides_gives_the_same_schedule_again_by_the_releases_own_rules(source: str) -> None:
    one = tir_function(source)
    space = space_of(one, target(), ThreadLimits())
    assert space
    made = some_schedule(one)
    again = space.with_decisions(decisions_of(trace_of(made)))
    assert task_of(again.mod["main"]) == task_of(made.mod["main"])
    assert space.with_decisions([1, 2, 3]) is None


def test_a_function_takes_what_was_decided_for_its_like_under_another_release() -> None:
    one = tir_function(MATMUL)
    record = a_record("0" * 16, trace_of(some_schedule(one)))
    record = record.model_copy(update={"name": "fused_matmul3_relu2", "shapes": tuple(shapes_of(one))})
    portable = PortableSchedules([record], target())
    assert portable.schedule("fused_matmul_add", one) is None
    assert is_scheduled(portable.schedule("fused_matmul12_relu", one))
    misfit = record.model_copy(update={"trace": trace_of(some_schedule(function()))})
    with pytest.raises(LookupError, match="fits none"):
        PortableSchedules([misfit], target()).schedule("fused_matmul_relu", one)


def test_what_writes_an_image_has_no_candidates_of_rules_that_store_single_numbers() -> None:
    assert space_of(function(scope="global.texture"), target(), ThreadLimits()) is None


def test_each_task_takes_its_own_record_and_one_that_does_not_fit_is_told() -> None:
    import tvm

    one, other, third = function(), function(number=2), function(number=3)
    space = space_of(one, target(), ThreadLimits())
    assert space
    trace = trace_of(schedule_of(space, 0))
    broken = [[["GetSBlock", [], ["no such block", "main"], ["b0"]]], []]
    records = {task_of(one): a_record(task_of(one), trace), task_of(other): a_record(task_of(other), broken)}
    applied = ScheduleApplier(RecordedSchedules(records))
    mod = tvm.IRModule({"add": one, "other": other, "third": third})
    (act,) = applied.edits.relax([_Anchor()])[:1]  # type: ignore[misc]
    made = act(mod)
    assert (applied.took, applied.without, list(applied.refused)) == (["add"], ["third"], ["other"])
    assert [is_scheduled(made[name]) for name in ("add", "other", "third")] == [True, False, False]


class _Anchor:
    """Stands for TVM's pass that gives schedules."""

    class info:
        name = "ApplyDefaultSchedule"
