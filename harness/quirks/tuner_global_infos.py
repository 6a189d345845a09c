"""Applying a database of schedules drops the virtual devices of the module."""

from __future__ import annotations

from harness.compiler.compat import virtual_device
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import conv, texture_target
from harness.quirks.tuner_sample import PATHS


def probe(*applied: Quirk) -> ProbeAnswer:
    """Apply an empty database to a module with a virtual device, and look whether that is still there."""
    from tvm import relax
    from tvm.s_tir import meta_schedule

    mod, target = conv(), texture_target()
    mod.update_global_info("vdevice", [virtual_device(target, "global.texture")])
    with target, meta_schedule.database.MemoryDatabase():
        made = relax.transform.MetaScheduleApplyDatabase()(mod)
    if "vdevice" in dict(made.global_infos):
        return ProbeAnswer(Presence.ABSENT, "the module keeps its virtual devices")
    return ProbeAnswer(Presence.PRESENT, "the module had one virtual device before, and has no global infos after")


QUIRK = Quirk(
    id="tuner-global-infos",
    title="MetaScheduleApplyDatabase drops a module's global infos, so that no texture network builds after it",
    upstream="src/relax/transform/meta_schedule.cc, MetaScheduleApplyDatabase: a new IRModule of the functions alone",
    since="0.25",
    paths=PATHS,
    probe=probe,
    workaround="schedules are applied function by function to a copy of the module (harness/schedules/apply.py)",
)
"""No edit: the pass is not used."""
