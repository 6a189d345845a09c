"""Schedules for tests: one trace, the phone they were tuned on, and a record of one task."""

from __future__ import annotations

from typing import Any

from device_runner.device import Identity
from harness.compile.schedules.database import Schedule, ScheduleOrigin, TaskLimits

TRACE: list[Any] = [
    [
        ["GetSBlock", [], ["conv", "main"], ["b0"]],
        ["GetLoops", ["b0"], [], ["l1", "l2"]],
        ["SamplePerfectTile", ["l1"], [2, 64], ["v3", "v4"]],
        ["Split", ["l1", "v3", "v4"], [True, False], ["l5", "l6"]],
        ["Bind", ["l5"], ["blockIdx.x"], []],
        ["Annotate", ["b0", 512], ["meta_schedule.unroll_explicit"], []],
    ],
    [[2, [4, 16]]],
]
PHONE = Identity("phone", "1", gpu="Adreno 750")
ORIGIN = ScheduleOrigin(tvm="0.27.0", limits=TaskLimits.of(PHONE), device="phone-1", gpu="Adreno 750")


def a_schedule(task: str = "0123456789abcdef", path: str = "opencl", ms: float = 1.0) -> Schedule:
    told = {"name": "fused_conv2d", "shapes": ["float32[1,4]"], "untuned_ms": 9.0, "max_rel_err": 1e-6, "trials": 3}
    return Schedule.model_validate({"path": path, "task": task, "ms": ms, **told, "trace": TRACE})
