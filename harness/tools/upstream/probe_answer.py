"""What a probe says: whether the installed TVM has a known defect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Presence(str, Enum):
    """What a probe found on the installed TVM."""

    PRESENT = "present"
    ABSENT = "absent"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class ProbeAnswer:
    """A probe's answer, with one line of what it saw."""

    state: Presence
    seen: str
