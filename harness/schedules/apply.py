"""Gives the tasks of a network the schedules of a file, and says of each what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.compiler.compat import copied
from harness.compiler.passes import Passes
from harness.paths.base import Edits
from harness.schedules.database import Schedule
from harness.schedules.tasks import MARKS, Before, task_of, unscheduled
from harness.schedules.trace import Trace


class Source(Protocol):
    """Where the schedules of a build come from."""

    def made(self, name: str, function: Any) -> Any:
        """The function that the network calls so, with its schedule; None if there is none for it.

        Raises what TVM raises for a schedule that does not fit.
        """


@dataclass(frozen=True)
class Recorded:
    """A file that this release of TVM wrote: each task takes its own trace."""

    records: Mapping[str, Schedule]
    """By task."""

    def made(self, name: str, function: Any) -> Any:
        """As `Source` says."""
        record = self.records.get(task_of(function))
        return scheduled(function, record.trace) if record else None


@dataclass(frozen=True)
class Applied:
    """What became of the tasks of one build. A path takes it as it takes workarounds."""

    source: Source
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
        """As a workaround has them."""
        return Edits(relax=self._edit)

    @property
    def told(self) -> dict[str, Any]:
        """As plain values, for the manifest."""
        ported = {"ported_from": self.ported_from} if self.ported_from else {}
        return {"took": self.took, "without": self.without, "refused": self.refused, **ported}

    def _edit(self, passes: Passes) -> Passes:
        edit = Before("ApplySchedules", self._apply).edits.relax
        assert edit
        return edit(passes)

    def _apply(self, mod: Any) -> Any:
        changed = mod.clone()
        for name, function in unscheduled(mod).items():
            try:
                made = self.source.made(name, function)
            except Exception as error:  # TVM raises errors of every kind; a record that does not fit is no failure
                self.refused[name] = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
                continue
            if made is None:
                self.without.append(name)
                continue
            changed.update_func(mod.get_global_var(name), made)
            self.took.append(name)
        return changed


def scheduled(function: Any, trace: Trace) -> Any:
    """The function with the schedule of a checked trace, and the mark that keeps other schedules away from it.

    Raises what TVM raises for a trace that does not fit.
    """
    from tvm import s_tir

    schedule = s_tir.Schedule(alone(function))
    s_tir.schedule.Trace.apply_json_to_schedule(trace, schedule)
    return marked(schedule.mod["main"], function)


def alone(function: Any) -> Any:
    """A module of a copy of this function, called `main`, as traces call it.

    TVM's schedules edit what they are given in place, a function that others hold as well.
    """
    import tvm

    return tvm.IRModule({"main": copied(function).with_attr("global_symbol", "main")})


def marked(made: Any, function: Any) -> Any:
    """A function that was scheduled in a module of its own, as it stands in the network again."""
    if not (function.attrs and "global_symbol" in function.attrs):
        made = made.without_attr("global_symbol")
    for mark in MARKS:
        made = made.with_attr(mark, True)
    return made
