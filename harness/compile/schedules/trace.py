"""A schedule as TVM's trace in JSON: which instructions, with which decisions. Checked before TVM reads one.

A trace comes from a file that others may have written. TVM's own reader looks names up in its registry and takes what
follows as it is, so only what is known here reaches it: instructions that arrange loops and memory, and annotations
that none of them turns into code of its own (`pragma_import_c` would be C from the file, compiled into the library).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_KINDS = """
AddUnitLoop Annotate Bind CacheRead CacheWrite ComputeAt ComputeInline DecomposeReduction EnterPostproc Fuse
GetChildBlocks GetConsumers GetLoops GetProducers GetSBlock Merge Parallel RFactor Reorder ReverseComputeAt
ReverseComputeInline SampleCategorical SampleComputeLocation SamplePerfectTile SetScope Split StorageAlign Unannotate
Unroll Vectorize
"""
INSTRUCTIONS = frozenset(_KINDS.split())
"""TVM's instructions (src/s_tir/schedule/primitive) that GPU schedules use."""

ANNOTATIONS = frozenset({"pragma_auto_unroll_max_step", "pragma_unroll_explicit"})
_RULE = ("Unannotate", "schedule_rule")
"""What an operator's author asked of the tuner is taken away when it is done."""
OWN_ANNOTATIONS = "meta_schedule."
"""How those begin that the tuner leaves for itself."""

MOST_INSTRUCTIONS = 4096
MOST_VALUES = 65_536
DEEPEST = 6
LONGEST_TEXT = 256
_TEXT = re.compile(r"[\w\s.\-+*/\"',:()<>=]*")

Trace = list[Any]


class BadTrace(ValueError):
    """A trace that we refuse, and why."""


def check(trace: object) -> Trace:
    """Return the trace, if it is one that TVM may read: `[instructions, decisions]`. Raises BadTrace."""
    if not isinstance(trace, list) or len(trace) != 2 or not all(isinstance(part, list) for part in trace):
        raise BadTrace("it is not a list of instructions and a list of decisions")
    instructions, decisions = trace
    if not 0 < len(instructions) <= MOST_INSTRUCTIONS:
        raise BadTrace(f"it has {len(instructions)} instructions, and {MOST_INSTRUCTIONS} at most are taken")
    _require_plain(trace)
    for instruction in instructions:
        _require_known(instruction)
    for decision in decisions:
        _require_decision(decision, len(instructions))
    return trace


def _require_known(instruction: Any) -> None:
    """Check an instruction: `[kind, inputs, attributes, outputs]`."""
    if not (isinstance(instruction, list) and len(instruction) == 4 and isinstance(instruction[0], str)):
        raise BadTrace("an instruction is not a kind, inputs, attributes and outputs")
    kind, *parts = instruction
    if kind not in INSTRUCTIONS:
        raise BadTrace(f"it has an instruction {kind!r}, which our schedules never use")
    if not all(isinstance(part, list) for part in parts):
        raise BadTrace(f"its {kind} has inputs, attributes or outputs that are no lists")
    if kind in ("Annotate", "Unannotate"):
        for key in parts[1] or [""]:
            if (
                key not in ANNOTATIONS
                and (kind, key) != _RULE
                and not (isinstance(key, str) and key.startswith(OWN_ANNOTATIONS))
            ):
                raise BadTrace(f"it annotates {key!r}, which the tuner never writes")


def _require_decision(decision: Any, instructions: int) -> None:
    """Check a decision: `[number of the instruction, what was decided]`."""
    if not (isinstance(decision, list) and len(decision) == 2 and type(decision[0]) is int):
        raise BadTrace("a decision is not the number of an instruction and what was decided")
    if not 0 <= decision[0] < instructions:
        raise BadTrace(f"a decision is about instruction {decision[0]}, of {instructions}")


def _require_plain(trace: Trace) -> None:
    """Numbers, short texts and lists of these, and not too many. Walks without recursion: depth is untrusted too."""
    waiting: list[tuple[Any, int]] = [(trace, 0)]
    count = 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if count > MOST_VALUES or depth > DEEPEST:
            raise BadTrace("it is larger or deeper than any schedule")
        if isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif isinstance(value, str):
            if len(value) > LONGEST_TEXT or not _TEXT.fullmatch(value):
                raise BadTrace(f"it has a text that no schedule has: {value[:40]!r}")
        elif isinstance(value, (int, float)):
            if not abs(value) < 2**53:
                raise BadTrace("it has a number that no schedule has")
        elif value is not None:
            raise BadTrace(f"it has a {type(value).__name__}, which no schedule has")


def plain(value: Any) -> Any:
    """TVM's trace as JSON takes it: its numbers are objects of its own here and there."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return plain(value.value)
