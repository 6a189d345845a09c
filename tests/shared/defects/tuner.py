"""Probes of TVM's tuner, MetaSchedule."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from defects.pipelines import accesses_images
from defects.presence import presence
from defects.sample import Probe, conv, texture_target
from harness.compile.compiler.compat import INTRINSICS, tir_function, without_intrinsics
from harness.compile.paths.base import Workaround
from harness.tools.tune.candidate import virtual_device
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

_COPY = """
@T.prim_func(private=True, s_tir=True)
def main(x: T.Buffer((T.int64(1), T.int64(8), T.int64(8), T.int64(8), T.int64(4)), "float32"),
         y: T.Buffer((T.int64(1), T.int64(8), T.int64(8), T.int64(8), T.int64(4)), "float32", scope="global.texture")):
    for n, c, h, w, b in T.grid(T.int64(1), T.int64(8), T.int64(8), T.int64(8), T.int64(4)):
        with T.{block}("copy"):
            vn, vc, vh, vw, vb = T.axis.remap("SSSSS", [n, c, h, w, b])
            y[vn, vc, vh, vw, vb] = x[vn, vc, vh, vw, vb] + T.float32(1)
"""


def _into_image() -> Any:
    """Return a module of one function that writes an image, without a schedule."""
    import tvm
    from tvm.script import tirx as script

    block = "sblock" if hasattr(script, "sblock") else "block"
    return tvm.IRModule({"main": tir_function(_COPY.replace("{block}", block)).with_attr("global_symbol", "main")})


def _designs(mod: Any, target: Any) -> Any:
    """Return what the tuner's own rules make of a function."""
    with without_intrinsics():
        from tvm.s_tir import meta_schedule

        context = meta_schedule.TuneContext(mod, target=target, space_generator="post-order-apply", num_threads=1)
    return context.generate_design_space()


def _stores(*_applied: Workaround) -> ProbeAnswer:
    """Look whether any of the rules' designs for a function that writes an image stores a vector."""
    designs = _designs(_into_image(), texture_target())
    vector = any("T.vectorized" in design.mod.script() for design in designs)
    defect = f"none of {len(designs)} designs stores a vector into the image"
    return presence(not vector, defect, "the lanes of a texel are stored as one vector")


def _default_build(*_applied: Workaround) -> ProbeAnswer:
    """Build a function that writes an image as the tuner's builder does, and look at its source."""
    with without_intrinsics():
        from tvm.s_tir.meta_schedule.builder import local_builder

        target = texture_target()
        built = local_builder.default_build(_designs(_into_image(), target)[0].mod, target, None)
    return accesses_images(SimpleNamespace(mod=built))


def _global_infos(*_applied: Workaround) -> ProbeAnswer:
    """Apply an empty database to a module with a virtual device, and look whether that is still there."""
    from tvm import relax
    from tvm.s_tir import meta_schedule

    mod, target = conv(), texture_target()
    mod.update_global_info("vdevice", [virtual_device(target, "global.texture")])
    with target, meta_schedule.database.MemoryDatabase():
        result = relax.transform.MetaScheduleApplyDatabase()(mod)
    gone = "the module had one virtual device before, and has no global infos after"
    return presence("vdevice" not in dict(result.global_infos), gone, "the module keeps its virtual devices")


def _imports(*_applied: Workaround) -> ProbeAnswer:
    """Look whether a `TuneContext` imports tensor instructions, while Python refuses to."""
    from tvm.s_tir import meta_schedule

    loaded, asked = sys.modules.pop(INTRINSICS, None), False
    sys.modules[INTRINSICS] = None  # type: ignore[assignment]
    try:
        meta_schedule.TuneContext(_into_image(), target=texture_target(), num_threads=1)
    except ModuleNotFoundError as error:
        asked = error.name == INTRINSICS
    finally:
        sys.modules.pop(INTRINSICS)
        sys.modules.update({INTRINSICS: loaded} if loaded else {})
    defect = f"TuneContext imports {INTRINSICS}, for a target that has none of them"
    return presence(asked, defect, f"TuneContext does not import {INTRINSICS}")


def _records_of_another_target(*_applied: Workaround) -> ProbeAnswer:
    """Keep a record for a target of 256 work-items, and ask for one of 16."""
    from tvm.s_tir import meta_schedule
    from tvm.target import Target

    def target(items: int) -> Any:
        return Target({**dict(texture_target().export()), "max_threads_per_block": items})

    mod, database = _into_image(), meta_schedule.database.MemoryDatabase()
    trace, workload = _designs(mod, target(256))[0].trace, database.commit_workload(mod)
    arguments = meta_schedule.arg_info.ArgInfo.from_prim_func(mod["main"])
    record = meta_schedule.database.TuningRecord(trace, workload, [0.1], target(256), arguments)
    database.commit_tuning_record(record)
    if database.query_tuning_record(mod, target(256), "main") is None:
        return ProbeAnswer(Presence.CANNOT_TELL, "the record is not found under its own target either")
    if database.query_tuning_record(mod, target(16), "main") is None:
        return presence(False, "a target of 16 work-items is not given the record of one of 256")
    return presence(True, "a target of 16 work-items was given the record of one of 256")


PROBES: dict[str, Probe] = {
    "tuner-texel-stores": _stores,
    "tuner-builder-pipeline": _default_build,
    "tuner-global-infos": _global_infos,
    "tuner-intrinsics": _imports,
    "tuner-target": _records_of_another_target,
}
