"""Schedules in the form that crosses releases of TVM: what was decided, and not how TVM's trace of it reads.

A trace has the instructions of one release, and a task's structural hash is another one in the next. What a schedule
decides is neither: how each loop is split, and which of some numbers is taken. So of a record only these are used, for
the function of the same operator on the same shapes in the same memory, and the release at hand arranges its loops by
the same rules of its own (`harness.schedules.spaces`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness.schedules.apply import marked
from harness.schedules.database import Schedule
from harness.schedules.drawing import MOST, Decision
from harness.schedules.spaces import space_of
from harness.schedules.tasks import shapes_of
from harness.schedules.trace import Trace

DRAWING = "Sample"
"""How the instructions begin that draw something."""
_FINISH = "EnterPostproc"
"""Comes before what TVM adds to each schedule in the end, which decides nothing."""
_NUMBER = re.compile(r"(?<=[A-Za-z])\d+$")

Place = tuple[str, tuple[str, ...]]


def place_of(name: str, shapes: Sequence[str]) -> Place:
    """What a function does on what: its name without the numbers that tell it from its like, and its parameters.

    `fused_conv2d3_add2_relu2` is `fused_conv2d_add_relu`, like every other convolution with bias and ReLU.
    """
    return "_".join(_NUMBER.sub("", part) for part in name.split("_")), tuple(shapes)


def decisions_of(trace: Trace) -> list[Decision]:
    """What a schedule's trace decides, in its order."""
    instructions, decided = trace
    end = next((at for at, one in enumerate(instructions) if one[0] == _FINISH), len(instructions))
    return [decision for at, decision in sorted(decided, key=_place) if at < end and instructions[at][0][:6] == DRAWING]


def _place(decision: Sequence[Any]) -> int:
    return int(decision[0])


class Portable:
    """The schedules of a file of another release."""

    def __init__(self, records: Iterable[Schedule], target: Any) -> None:
        self._records: dict[Place, Schedule] = {place_of(one.name, one.shapes): one for one in records}
        self._target = target

    def made(self, name: str, function: Any) -> Any:
        """The function that the network calls so, with what its record decided; None if there is no record.

        Raises LookupError if it fits no schedule of this release's.
        """
        record = self._records.get(place_of(name, shapes_of(function)))
        if record is None:
            return None
        space = space_of(function, self._target, MOST)
        schedule = space.decided(decisions_of(record.trace)) if space else None
        if schedule is None:
            raise LookupError("what was decided under another release fits none of this one's schedules")
        return marked(schedule.mod["main"], function)
