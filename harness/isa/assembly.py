"""Mesa's disassembly: instructions, what each costs in issue slots, and the loops that they are in.

An instruction that is repeated, `(rpt3)`, or waits, `(nop2)`, counts once for each slot, as in Mesa's own statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.isa.failures import UnknownOutput

_FLAGS = re.compile(r"(?:\((?:sy|ss|jp|ul|eq|sat|last|eolm|eogm|rpt\d|nop\d)\)\s*)*")
_SLOTS = re.compile(r"\((rpt|nop)(\d)\)")
_OPCODE = re.compile(r"[a-z][\w.]*")
_LABEL = re.compile(r"(l\d+):")
_TARGET = re.compile(r"#(l\d+)\b")
_HIDDEN_REPEATS = {"swz": 1, "gat": 3, "sct": 3}
"""Moves of several registers: they are repeated, and the disassembly does not say so."""
_PRIVATE = ("ldp", "stp")
PREAMBLE = ("shps", "shpe")
"""The first and the last instruction of what runs once for a whole wave of threads, or not at all."""


@dataclass(frozen=True)
class Instruction:
    """One line of the disassembly."""

    text: str
    opcode: str
    slots: int
    """Issue slots, with its waits."""
    repeats: int = 1
    """How often it computes."""
    target: str = ""
    """Label that it jumps to."""

    @property
    def kind(self) -> str:
        """The opcode without the formats of its operands: `mov`, `ldg`, `saml`."""
        return self.opcode.partition(".")[0]


@dataclass(frozen=True)
class Loop:
    """Instructions from its first to the last one, which jumps back; by their places."""

    first: int
    last: int

    def holds(self, other: Loop) -> bool:
        """Whether another loop is inside it."""
        return self != other and self.first <= other.first and other.last <= self.last


@dataclass(frozen=True)
class Assembly:
    """The code of one kernel, up to its end."""

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """Place of the instruction after each label."""

    @cached_property
    def preamble(self) -> range:
        """Places of what runs once for a wave."""
        places = [place for place, one in enumerate(self.instructions) if one.kind in PREAMBLE]
        return range(places[0], places[-1] + 1) if len(places) == len(PREAMBLE) else range(0)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop, an outer one before those in it."""
        found = [
            Loop(self.labels[one.target], place)
            for place, one in enumerate(self.instructions)
            if one.target in self.labels and self.labels[one.target] <= place
        ]
        return tuple(sorted(found, key=lambda loop: (loop.first, -loop.last)))

    @property
    def body(self) -> Iterator[tuple[int, Instruction]]:
        """What every thread runs, with its place."""
        return ((place, one) for place, one in enumerate(self.instructions) if place not in self.preamble)

    @property
    def private_accesses(self) -> int:
        """Instructions that load or store the thread's own memory: arrays and spills."""
        return sum(one.kind in _PRIVATE for _, one in self.body)


def parse_assembly(lines: Sequence[str]) -> Assembly:
    """Read a disassembly. Raises UnknownOutput with a line that is no instruction."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in lines:
        text = line.strip()
        if label := _LABEL.fullmatch(text):
            labels[label[1]] = len(instructions)
            continue
        one = _instruction(text)
        instructions.append(one)
        if one.opcode == "end":
            break
    return Assembly(tuple(instructions), labels)


def _instruction(text: str) -> Instruction:
    flags = _FLAGS.match(text)
    assert flags
    opcode = _OPCODE.match(text, flags.end())
    if opcode is None:
        raise UnknownOutput(f"the compiler printed an instruction that is not known: {text!r}")
    target = _TARGET.search(text, opcode.end())
    waits = {flag: int(count) for flag, count in _SLOTS.findall(flags[0])}
    repeats = 1 + waits.get("rpt", 0) + _HIDDEN_REPEATS.get(opcode[0].partition(".")[0], 0)
    return Instruction(text, opcode[0], repeats + waits.get("nop", 0), repeats, target[1] if target else "")
