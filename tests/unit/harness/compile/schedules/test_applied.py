"""Schedules given to functions of a network: a trace gives the same function again, and what does not fit is told."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.base.case import Precision
from harness.base.request import CompileRequest
from harness.compile.artifacts.artifact import KERNELS
from harness.compile.compiler.compat import tir_function
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.quirks import quirks_for
from harness.compile.schedules.apply import (
    PortableSchedules,
    RecordedSchedules,
    ScheduleApplier,
    apply_trace,
    decisions_of,
)
from harness.compile.schedules.database import Schedule, ThreadLimits
from harness.compile.schedules.spaces import space_of
from harness.compile.schedules.tasks import is_scheduled, shapes_of, task_of
from harness.compile.schedules.trace import check, plain
from harness.tools.tune.candidate import build_candidate
from harness.tools.tune.drawing import schedule_of

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


def some_schedule(one: Any) -> Any:
    """Of a function."""
    space = space_of(one, target(), ThreadLimits())
    assert space
    return next(made for made in (schedule_of(space, seed) for seed in range(9)) if made is not None)


def test_trials_of_a_convolution_in_texels_do_not_try_the_same_twice() -> None:
    space = space_of(tir_function(CONV), target(), ThreadLimits())
    assert space
    made = [json.dumps(decisions_of(trace_of(schedule_of(space, seed)))) for seed in range(12)]
    assert len(set(made)) == len(made)


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
    made = [schedule_of(space, 3) for _ in range(2)]
    assert trace_of(made[0]) == trace_of(made[1])
    again = apply_trace(one, trace_of(made[0]))
    assert is_scheduled(again)
    assert "blockIdx.x" in again.script()
    assert one.script() == before


CONV = """
@T.prim_func(private=True, s_tir=True)
def conv(x: T.Buffer((T.int64(1), T.int64(2), T.int64(10), T.int64(10), T.int64(4)), "float32"),
         w: T.Buffer((T.int64(4), T.int64(8), T.int64(3), T.int64(3), T.int64(1), T.int64(4)), "float32"),
         y: T.Buffer((T.int64(1), T.int64(4), T.int64(8), T.int64(8), T.int64(4)), "float32")):
    for n, o, h, v, b, c, i, j in T.grid(T.int64(1), T.int64(4), T.int64(8), T.int64(8), T.int64(4), T.int64(8),
                                         T.int64(3), T.int64(3)):
        with T.sblock("conv2d_NCHWc_OIHWo"):
            vn, vo, vh, vv, vb, vc, vi, vj = T.axis.remap("SSSSSRRR", [n, o, h, v, b, c, i, j])
            with T.init():
                y[vn, vo, vh, vv, vb] = T.float32(0)
            y[vn, vo, vh, vv, vb] = y[vn, vo, vh, vv, vb] + x[vn, vc // T.int64(4), vh + vi, vv + vj,
                vc % T.int64(4)] * w[vo, vc, vi, vj, T.int64(0), vb]
"""
MATMUL = """
@T.prim_func(private=True, s_tir=True)
def matmul(x: T.Buffer((T.int64(64), T.int64(48)), "float32"), w: T.Buffer((T.int64(48), T.int64(96)), "float32"),
           y: T.Buffer((T.int64(64), T.int64(96)), "float32")):
    for i, j, k in T.grid(T.int64(64), T.int64(96), T.int64(48)):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]
"""


@pytest.mark.parametrize("source", [CONV, MATMUL], ids=["texels", "rules"])
def test_what_a_trace_decides_gives_the_same_schedule_again_by_the_releases_own_rules(source: str) -> None:
    one = tir_function(source)
    space = space_of(one, target(), ThreadLimits())
    assert space
    made = some_schedule(one)
    again = space.with_decisions(decisions_of(trace_of(made)))
    assert task_of(again.mod["main"]) == task_of(made.mod["main"])
    assert space.with_decisions([1, 2, 3]) is None


@pytest.mark.parametrize("source", [CONV, MATMUL], ids=["texels", "rules"])
def test_candidates_stay_within_the_limits_of_a_device(source: str) -> None:
    space = space_of(tir_function(source), target(), ThreadLimits(items=16))
    assert space
    made = [one for one in (schedule_of(space, seed) for seed in range(6)) if one is not None]
    assert made
    for one in made:
        bound = re.findall(r"(\d+)\)?, thread=\"threadIdx\.(\w)", one.mod["main"].script())
        most = {axis: max(int(extent) for extent, other in bound if other == axis) for _, axis in bound}
        assert 1 <= math.prod(most.values()) <= 16


def test_a_candidate_of_equal_shapes_is_copied_into_an_image_and_out_of_one(tmp_path: Path) -> None:
    import tvm

    image = 'T.Buffer((T.int64(1), T.int64(4), T.int64(8), T.int64(8), T.int64(4)), "float32"'
    text = CONV.replace(f"y: {image}", f'y: {image}, scope="global.texture"')
    text = text.replace("T.int64(2), T.int64(10), T.int64(10)", "T.int64(4), T.int64(8), T.int64(8)")
    text = text.replace(f"x: {image}", f'x: {image}, scope="global.texture"').replace(
        ", T.int64(8),\n", ", T.int64(16),\n"
    )
    text = text.replace(
        "T.int64(8), T.int64(3), T.int64(3), T.int64(1)", "T.int64(16), T.int64(1), T.int64(1), T.int64(1)"
    )
    text = text.replace("T.int64(3), T.int64(3)):", "T.int64(1), T.int64(1)):")
    functions = tmp_path / "functions.json"
    functions.write_text(tvm.ir.save_json(tvm.IRModule({"conv": tir_function(text)})))
    quirks = [quirk.id for quirk in quirks_for("texture", Precision.FLOAT32, as_shipped=False)]
    request = CompileRequest("", "texture", "float32", quirks, None, 16384, 16384, 2048)
    job = {"request": asdict(request), "functions": str(functions), "name": "conv", "seed": 0}
    build_candidate({**job, "limits": asdict(ThreadLimits())}, tmp_path)
    source = (tmp_path / KERNELS).read_text()
    copies = {match[1]: match[0] for match in re.findall(r"void (copy\w*)\(.*__(read|write)_only image", source)}
    assert sorted(copies) == ["read", "write"]
    assert len(set(copies.values())) == 2


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
