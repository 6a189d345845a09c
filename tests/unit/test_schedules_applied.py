"""Schedules given to functions of a network: a trace gives the same function again, and what does not fit is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.compiler.compat import tir_function
from harness.paths import PATHS
from harness.paths.base import ImageLimits
from harness.schedules.apply import Applied, scheduled
from harness.schedules.database import Schedule
from harness.schedules.drawing import ThreadLimits
from harness.schedules.spaces import space_of
from harness.schedules.tasks import is_scheduled, shapes_of, task_of
from harness.schedules.trace import check, plain

pytestmark = pytest.mark.slow

SOURCE = """
@T.prim_func(private=True, s_tir=True)
def add({name}: T.Buffer((T.int64(64),), "float32"), made: T.Buffer((T.int64(64),), "float32"{scope})):
    for i in range(T.int64(64)):
        with T.sblock("add"):
            at = T.axis.spatial(T.int64(64), i)
            made[at] = {name}[at] + T.float32({number})
"""


def function(name: str = "a", number: int = 1, scope: str = "") -> Any:
    place = f', scope="{scope}"' if scope else ""
    return tir_function(SOURCE.format(name=name, number=number, scope=place))


def target() -> Any:
    return PATHS["opencl"].target(ImageLimits(), None)


def trace_of(made: Any) -> Any:
    return check(json.loads(json.dumps(plain(made.trace.as_json()))))


def a_record(task: str, trace: Any) -> Schedule:
    told = {"path": "opencl", "name": "add", "ms": 1.0, "untuned_ms": 2.0, "max_rel_err": 0.0, "trials": 1}
    return Schedule.model_validate({**told, "task": task, "trace": trace})


def test_a_task_is_known_by_what_it_does_and_not_by_its_names() -> None:
    assert task_of(function("a")) == task_of(function("b")) != task_of(function(number=2))
    assert task_of(function().with_attr("global_symbol", "add")) == task_of(function())
    assert shapes_of(function(scope="global.texture")) == ["float32[64]", "float32[64] texture"]


def test_a_seed_always_gives_the_same_schedule_and_leaves_the_function_as_it_was() -> None:
    one = function()
    before = one.script()
    space = space_of(one, target(), ThreadLimits())
    assert space
    made = [space.sample(3) for _ in range(2)]
    assert trace_of(made[0]) == trace_of(made[1])
    again = scheduled(one, trace_of(made[0]))
    assert is_scheduled(again)
    assert "blockIdx.x" in again.script()
    assert one.script() == before


def test_what_writes_an_image_has_no_candidates_of_rules_that_store_single_numbers() -> None:
    assert space_of(function(scope="global.texture"), target(), ThreadLimits()) is None


def test_each_task_takes_its_own_record_and_one_that_does_not_fit_is_told() -> None:
    import tvm

    one, other, third = function(), function(number=2), function(number=3)
    space = space_of(one, target(), ThreadLimits())
    assert space
    trace = trace_of(space.sample(0))
    broken = [[["GetSBlock", [], ["no such block", "main"], ["b0"]]], []]
    records = {task_of(one): a_record(task_of(one), trace), task_of(other): a_record(task_of(other), broken)}
    applied = Applied(records)
    mod = tvm.IRModule({"add": one, "other": other, "third": third})
    (act,) = applied.edits.relax([_Anchor()])[:1]  # type: ignore[misc]
    made = act(mod)
    assert (applied.took, applied.without, list(applied.refused)) == (["add"], ["third"], ["other"])
    assert [is_scheduled(made[name]) for name in ("add", "other", "third")] == [True, False, False]


class _Anchor:
    """Stands for TVM's pass that gives schedules."""

    class info:
        name = "ApplyDefaultSchedule"
