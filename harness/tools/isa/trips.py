"""How often each loop of a kernel runs, from the intermediate code (NIR) that Mesa prints before the machine code.

The loops of the machine code are those of this code, after unrolling. A loop is understood if one comparison of a
counter with a constant ends it, and the counter begins at a constant and grows by a constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MOST_TRIPS = 1 << 22
"""A counter that takes longer is not followed."""

_DEFINITION = re.compile(r"(?:con|div)\s+\S+\s+%(\d+) = (@?[\w.]+)\s*(.*)")
_OPERAND = re.compile(r"(?:b(\d+): )?%(\d+)(?:\.\w+)?(?: \((-?[\w.x]+)\))?")
_LOOP = re.compile(r"(?:con |div )?loop \{")
_ELSE = re.compile(r"\} else \{")

_SIGN = 1 << 31
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "ige": lambda a, b: _as_signed(a) >= _as_signed(b),
    "ilt": lambda a, b: _as_signed(a) < _as_signed(b),
    "uge": lambda a, b: a >= b,
    "ult": lambda a, b: a < b,
    "ieq": lambda a, b: a == b,
    "ine": lambda a, b: a != b,
}


@dataclass
class NirLoop:
    """One loop: how deep it is, and what ends it."""

    depth: int
    exits: list[tuple[str, bool]] = field(default_factory=list)
    """Conditions that end it when they are true, or false."""
    odd: bool = False
    """Whether something in it is not understood."""


@dataclass(frozen=True)
class Operand:
    """What an instruction reads: another's result, from a block before if it is a phi, and its value if constant."""

    block: str
    name: str
    value: int | None


@dataclass(frozen=True)
class Definition:
    """One instruction of the intermediate code."""

    operation: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Trips:
    """A loop of the intermediate code, in the order of the text."""

    depth: int
    """0 for one that is in no other."""
    count: int | None
    """How often its body runs each time that it is entered; None if that is not understood."""


def trips(lines: Sequence[str]) -> list[Trips]:
    """Return every loop, an outer one before those in it."""
    loops, definitions = _read(lines)
    return [Trips(loop.depth, _count(loop, definitions)) for loop in loops]


def scratch(lines: Sequence[str]) -> tuple[int, int]:
    """Bytes of a thread's arrays in memory, and instructions that access them: what is there before any spill."""
    size = next((int(line.split()[-1]) for line in lines if line.startswith("scratch: ")), 0)
    return size, sum("@load_scratch" in line or "@store_scratch" in line for line in lines)


def _read(lines: Sequence[str]) -> tuple[list[NirLoop], dict[str, Definition]]:
    loops: list[NirLoop] = []
    definitions: dict[str, Definition] = {}
    stack: list[NirLoop | tuple[str, bool] | None] = []
    for line in lines:
        text = line.partition("//")[0].strip()
        if _LOOP.fullmatch(text):
            loop = NirLoop(sum(isinstance(level, NirLoop) for level in stack))
            loops.append(loop)
            stack.append(loop)
        elif _ELSE.fullmatch(text):
            condition = stack.pop() if stack else None
            stack.append((condition[0], False) if isinstance(condition, tuple) else None)
        elif text.startswith("if ") and text.endswith("{"):
            stack.append((text.split()[1].strip("%"), True))
        elif text.endswith("{"):
            stack.append(None)
            _mark_odd(stack, "continue" in text)
        elif text == "}":
            if stack:
                stack.pop()
        elif text == "break":
            _note_exit(stack)
        elif text == "continue":
            _mark_odd(stack, True)
        elif match := _DEFINITION.fullmatch(text):
            definitions[match[1]] = Definition(match[2].partition(".")[0], tuple(_operands(match[3])))
    return loops, definitions


def _innermost(stack: Sequence[object]) -> NirLoop | None:
    return next((level for level in reversed(stack) if isinstance(level, NirLoop)), None)


def _mark_odd(stack: Sequence[object], odd: bool) -> None:
    if odd and (loop := _innermost(stack)):
        loop.odd = True


def _note_exit(stack: Sequence[object]) -> None:
    """Note the loop's exit: a `break` right inside an `if` right inside the loop. Others are not understood."""
    loop = _innermost(stack)
    if loop is None:
        return
    if len(stack) > 1 and stack[-2] is loop and isinstance(stack[-1], tuple):
        loop.exits.append(stack[-1])
    else:
        loop.odd = True


def _operands(text: str) -> Iterator[Operand]:
    for block, name, value in _OPERAND.findall(text):
        yield Operand(block, name, int(value, 16) if re.fullmatch(r"0x[0-9a-f]+", value) else None)


def _count(loop: NirLoop, definitions: Mapping[str, Definition]) -> int | None:
    if loop.odd or len(loop.exits) != 1:
        return None
    name, ends_if = loop.exits[0]
    condition = definitions.get(name)
    if condition is None or condition.operation not in _COMPARE or len(condition.operands) != 2:
        return None
    left, right = condition.operands
    if left.value is not None:
        return _follow(right.name, definitions, lambda v: _COMPARE[condition.operation](left.value or 0, v) is ends_if)
    if right.value is not None:
        return _follow(left.name, definitions, lambda v: _COMPARE[condition.operation](v, right.value or 0) is ends_if)
    return None


def _follow(name: str, definitions: Mapping[str, Definition], ends: Callable[[int], bool]) -> int | None:
    """Count with the counter `name` until the loop ends. One that is compared before it grows is asked once more."""
    grown = definitions.get(name)
    counter = name
    if grown and grown.operation == "iadd":
        counter = next((operand.name for operand in grown.operands if operand.value is None), "")
    begin, step = _phi(counter, definitions)
    if begin is None or not step:
        return None
    first = int(counter != name)  # compared after it has grown
    return next((count for count in range(first, MOST_TRIPS + first) if ends((begin + count * step) % (1 << 32))), None)


def _phi(name: str, definitions: Mapping[str, Definition]) -> tuple[int | None, int | None]:
    """Start and step of a counter."""
    phi = definitions.get(name)
    if phi is None or phi.operation != "phi" or len(phi.operands) != 2:
        return None, None
    begins = [operand.value for operand in phi.operands if operand.value is not None]
    grows = [definitions.get(operand.name) for operand in phi.operands if operand.value is None]
    if len(begins) != 1 or len(grows) != 1 or grows[0] is None or grows[0].operation != "iadd":
        return None, None
    operands = grows[0].operands
    steps = [operand.value for operand in operands if operand.value is not None]
    counts = len(steps) == 1 and name in (operand.name for operand in operands)
    return (begins[0], steps[0]) if counts else (None, None)


def _as_signed(value: int) -> int:
    return value - (1 << 32) if value >= _SIGN else value
