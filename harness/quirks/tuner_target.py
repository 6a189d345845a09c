"""The tuner's database gives a device the records of another."""

from __future__ import annotations

from typing import Any

from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import texture_target
from harness.quirks.tuner_sample import PATHS, designs, into_image


def probe(*applied: Quirk) -> ProbeAnswer:
    """Keep a record for a target of 256 work-items, and ask for one of 16."""
    from tvm.s_tir import meta_schedule

    mod, database = into_image(), meta_schedule.database.MemoryDatabase()
    trace, workload = designs(mod, _target(256))[0].trace, database.commit_workload(mod)
    arguments = meta_schedule.arg_info.ArgInfo.from_prim_func(mod["main"])
    record = meta_schedule.database.TuningRecord(trace, workload, [0.1], _target(256), arguments)
    database.commit_tuning_record(record)
    if database.query_tuning_record(mod, _target(256), "main") is None:
        return ProbeAnswer(Presence.CANNOT_TELL, "the record is not found under its own target either")
    if database.query_tuning_record(mod, _target(16), "main") is None:
        return ProbeAnswer(Presence.ABSENT, "a target of 16 work-items is not given the record of one of 256")
    return ProbeAnswer(Presence.PRESENT, "a target of 16 work-items was given the record of one of 256")


def _target(items: int) -> Any:
    from tvm.target import Target

    return Target({**dict(texture_target().export()), "max_threads_per_block": items})


QUIRK = Quirk(
    id="tuner-target",
    title="MetaSchedule's look-up ignores the target: a schedule is applied to a device that cannot run it",
    upstream="src/s_tir/meta_schedule/database/memory_database.cc and json_database.cc, GetTopK: by workload alone",
    since="0.25",
    paths=PATHS,
    probe=probe,
    workaround="a file of schedules says for which limits it is, and is refused by name on a device with others "
    "(harness/schedules/database.py)",
)
"""No edit: no database of TVM's is used."""
