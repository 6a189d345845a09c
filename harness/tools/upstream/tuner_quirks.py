"""Defects of TVM's tuner, MetaSchedule. No path builds with it, so no quirk here has an edit.

`adreno-bench tune` alone meets them: each is gone round by not using that part.
"""

from __future__ import annotations

from functools import partial

from harness.compile.quirks.base import Quirk

_row = partial(Quirk, paths=("tune",))
"""Stands in place of a path: no case is built with a workaround for these."""
QUIRKS: tuple[Quirk, ...] = (
    _row(
        "tuner-texel-stores",
        "MetaSchedule's rules store single numbers into images: each such candidate is wrong, and kept if it is fast",
        upstream="src/s_tir/meta_schedule/schedule_rule/schedule_rule.cc, DefaultCUDA, which OpenCL targets get as "
        "well",
        workaround="convolutions in NCHW4c have a schedule of ours (schedules/spaces.py), and what else "
        "writes an image has no candidates; each candidate is judged against LLVM before it is timed",
    ),
    _row(
        "tuner-builder-pipeline",
        "MetaSchedule's builder leaves out the texture passes, so that each candidate with an image fails to build",
        upstream="python/tvm/s_tir/meta_schedule/builder/local_builder.py, default_build",
        workaround="candidates are built by the path that builds the network, passes and workarounds included "
        "(harness/tools/tune/candidate.py)",
    ),
    _row(
        "tuner-global-infos",
        "MetaScheduleApplyDatabase drops a module's global infos, so that no texture network builds after it",
        upstream="src/relax/transform/meta_schedule.cc, MetaScheduleApplyDatabase: a new IRModule of the functions "
        "alone",
        workaround="schedules are applied function by function to a copy of the module (schedules/apply.py)",
    ),
    _row(
        "tuner-intrinsics",
        "MetaSchedule imports other processors' tensor instructions: 20 s in each process, and its builders time out",
        upstream="python/tvm/s_tir/meta_schedule/tune_context.py, TuneContext.__init__; local_builder.py, "
        "default_build",
        workaround="an empty module stands in their place while a TuneContext is made (compiler/compat.py)",
    ),
    _row(
        "tuner-target",
        "MetaSchedule's look-up ignores the target: a schedule is applied to a device that cannot run it",
        upstream="src/s_tir/meta_schedule/database/memory_database.cc and json_database.cc, GetTopK: by workload alone",
        workaround="a file of schedules says for which limits it is, and is refused by name on a device with others "
        "(harness/compile/schedules/database.py)",
    ),
)
