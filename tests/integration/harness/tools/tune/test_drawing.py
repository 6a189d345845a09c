"""Candidates: the schedule of each seed, and its build with copies into images and out of them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from task_functions import CONV, MATMUL, function, target, trace_of

from harness.base.case import Precision
from harness.base.request import CompileRequest
from harness.compile.artifacts.artifact import KERNELS
from harness.compile.compiler.compat import tir_function
from harness.compile.quirks import quirks_for
from harness.compile.schedules.apply import apply_trace, decisions_of
from harness.compile.schedules.database import ThreadLimits
from harness.compile.schedules.spaces import space_of
from harness.compile.schedules.tasks import is_scheduled
from harness.tools.tune.candidate import build_candidate
from harness.tools.tune.drawing import schedule_of

pytestmark = pytest.mark.slow


def test_trials_of_a_convolution_in_texels_do_not_try_the_same_twice() -> None:
    space = space_of(tir_function(CONV), target(), ThreadLimits())
    assert space
    made = [json.dumps(decisions_of(trace_of(schedule_of(space, seed)))) for seed in range(12)]
    assert len(set(made)) == len(made)


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
