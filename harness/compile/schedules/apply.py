"""Gives the tasks of a network the schedules of a file, and says for each whether it took one.

A trace has the instructions of one release of TVM, and a task's structural hash is another one in the next. What a
schedule decides is neither: how each loop is split, and which of some numbers is taken. So of a record of another
release only its decisions are used, for the function of the same operator on the same shapes in the same memory, and
the release at hand arranges its loops by the same rules of its own (`harness.compile.schedules.spaces`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.compile.compiler.compat import s_tir
from harness.compile.compiler.passes import before_first
from harness.compile.compiler.tir import SCHEDULE
from harness.compile.paths.base import Edits
from harness.compile.schedules.database import MOST_THREADS, Schedule
from harness.compile.schedules.spaces import Decision, space_of
from harness.compile.schedules.tasks import (
    module_of,
    put_back,
    shapes_of,
    task_of,
    unscheduled_functions,
)
from harness.compile.schedules.trace import Trace


@dataclass(frozen=True)
class RecordedSchedules:
    """A file that this release of TVM wrote: each task takes its own trace."""

    records: Mapping[str, Schedule]
    """Records by task."""

    def schedule(self, name: str, function: Any) -> Any:
        """Return the function that the network calls so, with its schedule; None if there is none for it.

        Raises what TVM raises for a schedule that does not fit.
        """
        record = self.records.get(task_of(function))
        return apply_trace(function, record.trace) if record else None


@dataclass(frozen=True)
class ScheduleApplier:
    """Schedules of the tasks of one build, and the result of each. A path takes it as it takes workarounds."""

    source: RecordedSchedules | PortableSchedules
    """Origin of the build's schedules."""
    ported_from: str = ""
    """The release of TVM that the schedules were found with, where it is not this one."""
    took: list[str] = field(default_factory=list)
    """Functions that took a record."""
    without: list[str] = field(default_factory=list)
    """Functions that there is no record for: TVM's own schedule, as ever."""
    refused: dict[str, str] = field(default_factory=dict)
    """Functions whose record could not be applied, and why: TVM's own schedule, too."""
    id: str = "schedules"

    @property
    def edits(self) -> Edits:
        """Edits in the form of a workaround."""
        return Edits(relax=before_first(SCHEDULE, "ApplySchedules", self._apply))

    @property
    def report(self) -> dict[str, Any]:
        """The report as JSON values, for the manifest."""
        ported = {"ported_from": self.ported_from} if self.ported_from else {}
        return {"took": self.took, "without": self.without, "refused": self.refused, **ported}

    def _apply(self, mod: Any) -> Any:
        changed = mod.clone()
        for name, function in unscheduled_functions(mod).items():
            try:
                schedule = self.source.schedule(name, function)
            except Exception as error:  # TVM raises errors of every kind; a record that does not fit is no failure
                self.refused[name] = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
                continue
            if schedule is None:
                self.without.append(name)
                continue
            changed.update_func(mod.get_global_var(name), schedule)
            self.took.append(name)
        return changed


def apply_trace(function: Any, trace: Trace) -> Any:
    """Return the function with the schedule of a checked trace, and the mark that keeps other schedules away from it.

    Raises what TVM raises for a trace that does not fit.
    """
    schedule = s_tir.Schedule(module_of(function))
    s_tir.schedule.Trace.apply_json_to_schedule(trace, schedule)
    return put_back(schedule.mod["main"], function)


DRAWING = "Sample"
"""How the instructions begin that draw something."""
_FINISH = "EnterPostproc"
"""Comes before what TVM adds to each schedule in the end, which decides nothing."""
_NUMBER = re.compile(r"(?<=[A-Za-z])\d+$")

Place = tuple[str, tuple[str, ...]]


def place_of(name: str, shapes: Sequence[str]) -> Place:
    """Return what a function does on what: its name without the numbers that tell it from its like, and its parameters.

    `fused_conv2d3_add2_relu2` is `fused_conv2d_add_relu`, like every other convolution with bias and ReLU.
    """
    return "_".join(_NUMBER.sub("", part) for part in name.split("_")), tuple(shapes)


def decisions_of(trace: Trace) -> list[Decision]:
    """Return what a schedule's trace decides, in its order."""
    instructions, decided = trace
    end = next((at for at, instruction in enumerate(instructions) if instruction[0] == _FINISH), len(instructions))
    ordered = sorted(decided, key=lambda decision: int(decision[0]))
    return [decision for at, decision in ordered if at < end and instructions[at][0][:6] == DRAWING]


class PortableSchedules:
    """The schedules of a file of another release."""

    def __init__(self, records: Iterable[Schedule], target: Any) -> None:
        self._records: dict[Place, Schedule] = {place_of(record.name, record.shapes): record for record in records}
        self._target = target

    def schedule(self, name: str, function: Any) -> Any:
        """Return the function that the network calls so, with what its record decided; None if there is no record.

        Raises LookupError if it fits no schedule of this release's.
        """
        record = self._records.get(place_of(name, shapes_of(function)))
        if record is None:
            return None
        space = space_of(function, self._target, MOST_THREADS)
        schedule = space.with_decisions(decisions_of(record.trace)) if space else None
        if schedule is None:
            raise LookupError("what was decided under another release fits none of this one's schedules")
        return put_back(schedule.mod["main"], function)
