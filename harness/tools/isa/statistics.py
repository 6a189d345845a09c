"""The numbers of one kernel on one GPU, from what Mesa prints of its code. Whatever is not known there is an error.

In the disassembly an instruction that is repeated, `(rpt3)`, or waits, `(nop2)`, counts once for each slot, as in
Mesa's own statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from harness.tools.isa.failures import UnknownOutput
from harness.tools.isa.runner import BuiltKernel
from harness.tools.isa.trips import scratch, trips

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
_NIR, _NATIVE = "NIR (", "Native code for "
_WRAPPED = re.compile(r"impl __wrapped_(\w+) \{")
_PROGRAM = re.compile(r"; CL prog \d+/\d+: (.*)")
_PREAMBLE = re.compile(r"; (\d+ preamble-instr, \d+ early-preamble)")
_ITEM = re.compile(r"(\d+) (\S+)")
_NAMES = {
    *("instr", "nops", "non-nops", "mov", "cov", "dwords", "last-baryf", "last-helper", "half", "full", "constlen"),
    *(f"cat{number}" for number in range(8)),
    *("sstall", "(ss)", "systall", "(sy)", "loops", "max_waves", "double_threadsize"),
}
_OPTIONAL = {"preamble-instr": 0, "early-preamble": 0}
_HEADER = re.compile(
    r"; (num_ubos|num_driver_params|offsets|ubo_state|  num_enabled|  range\[\d+\]|    block|    offset|    size):.*"
    r"|;   \w+ +c\d+\.[xyzw] \(\d+ vec4\)|; CL: (inputs|outputs):.*|@(in|out|const)\(.*|"
)
_FLOAT = re.compile(r"(add|mul|max|min|mad|rcp|rsq|sqrt|exp2|log2|sin|cos)\b")
_ALWAYS_FLOAT = ("rcp", "rsq", "sqrt", "exp2", "log2", "sin", "cos")
_WIDTH = re.compile(r"\.[usf](8|16|32|64)|\([usf](8|16|32)\)")


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
        """Return whether another loop is inside it."""
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
        places = [place for place, instruction in enumerate(self.instructions) if instruction.kind in PREAMBLE]
        return range(places[0], places[-1] + 1) if len(places) == len(PREAMBLE) else range(0)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop, an outer one before those in it."""
        loops = [
            Loop(self.labels[instruction.target], place)
            for place, instruction in enumerate(self.instructions)
            if instruction.target in self.labels and self.labels[instruction.target] <= place
        ]
        return tuple(sorted(loops, key=lambda loop: (loop.first, -loop.last)))

    @property
    def body(self) -> Iterator[tuple[int, Instruction]]:
        """What every thread runs, with its place."""
        places = enumerate(self.instructions)
        return ((place, instruction) for place, instruction in places if place not in self.preamble)

    @property
    def private_accesses(self) -> int:
        """Instructions that load or store the thread's own memory: arrays and spills."""
        return sum(instruction.kind in _PRIVATE for _, instruction in self.body)


def parse_assembly(lines: Sequence[str]) -> Assembly:
    """Read a disassembly. Raises UnknownOutput with a line that is no instruction."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in lines:
        text = line.strip()
        if label := _LABEL.fullmatch(text):
            labels[label[1]] = len(instructions)
            continue
        instruction = _instruction(text)
        instructions.append(instruction)
        if instruction.opcode == "end":
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


@dataclass(frozen=True)
class Statistics:
    """One kernel on one GPU: counts of its code as it stands, and of one thread's run where every loop is understood.

    A count of the code has each loop body once, however often it runs; with `_run` it is weighted by trips, and None
    if the trips of a loop are not known. Branches are taken to be entered.
    """

    instructions: int
    """Issue slots, waits included, without the preamble."""
    instructions_run: int | None
    nops: int
    moves: int
    registers: int
    """Vectors of four 32-bit registers; from a6xx on halves are counted in them, too."""
    waves: int
    """How many waves of threads fit onto a core at once, as far as registers decide it."""
    ss_waits: int
    sy_waits: int
    loops: int
    texture_loads: int
    memory_accesses: int
    """Loads and stores of every kind but textures: buffers, image stores, local and private memory, constants."""
    array_bytes: int
    """Memory of one thread for arrays that the source has, and that the compiler could not keep in registers."""
    private_bytes: int
    """Memory of one thread as it is reserved, for arrays and spills."""
    spills: int
    """Instructions that access a thread's own memory, beyond those that arrays are accessed with."""
    local_bytes: int
    constants: int
    """Vectors of four constants."""
    code_bytes: int
    preamble: int
    """Instructions that a wave of threads runs once, if at all."""
    flops_run: int | None
    """Floating-point operations of one thread; a multiplication with addition is two."""
    bytes_run: int | None
    """What one thread reads from buffers and textures and writes to buffers and images; caches are not considered."""


def read_code(lines: Sequence[str], built: BuiltKernel) -> tuple[Statistics, tuple[str, ...]]:
    """Return the numbers and the disassembly of one kernel from what Mesa printed of it.

    Of several variants the last one counts, which is the one to be launched. Raises UnknownOutput.
    """
    variants = [(nir, native) for nir, native in _variants(lines) if built.name in _kernel_names(nir)]
    if not variants:
        raise UnknownOutput(f"the compiler printed no code of the kernel {built.name}")
    nir, native = variants[-1]
    counts, text = _native(native)
    assembly = parse_assembly(text)
    _check(counts, assembly, built.name)
    return _statistics(counts, assembly, nir, built), tuple(text)


def _variants(lines: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    variants: list[tuple[list[str], list[str]]] = []
    part: list[str] | None = None
    for line in lines:
        if line.startswith(_NIR):
            variants.append(([], []))
            part = variants[-1][0]
        elif line.startswith(_NATIVE) and variants:
            part = variants[-1][1]
        elif part is not None:
            part.append(line)
        elif line.strip():
            raise UnknownOutput(f"the compiler printed a line that is not known: {line!r}")
    return variants


def _kernel_names(nir: Sequence[str]) -> set[str]:
    return {match[1] for line in nir if (match := _WRAPPED.fullmatch(line.strip()))}


def _native(lines: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """Return the statistics that Mesa prints, by its names, and the lines of the disassembly."""
    counts: dict[str, int] = dict(_OPTIONAL)
    text: list[str] = []
    for line in lines:
        match = _PROGRAM.fullmatch(line) or _PREAMBLE.fullmatch(line)
        if match:
            counts |= _items(match[1], line)
        elif line.startswith(("; ", "@", ";\t")) or not line.strip():
            if not _HEADER.fullmatch(line.strip()):
                raise UnknownOutput(f"the compiler printed a line that is not known: {line!r}")
        else:
            text.append(line)
    if missing := _NAMES - counts.keys():
        raise UnknownOutput(f"the compiler did not say how many {min(missing)} there are")
    return counts, text


def _items(text: str, line: str) -> dict[str, int]:
    counts = {}
    for item in text.split(", "):
        match = _ITEM.fullmatch(item)
        if match is None or match[2] not in _NAMES | _OPTIONAL.keys():
            raise UnknownOutput(f"the compiler printed a statistic that is not known, {item!r}, in {line!r}")
        counts[match[2]] = int(match[1])
    return counts


def _check(counts: dict[str, int], assembly: Assembly, name: str) -> None:
    """Check our counts against Mesa's; if they differ, our reading of the disassembly is wrong."""
    slots = sum(instruction.slots for _, instruction in assembly.body)
    if slots != counts["instr"]:
        raise UnknownOutput(f"the code of {name} has {slots} instructions as read here, and {counts['instr']} by Mesa")
    if len(assembly.loops) != counts["loops"]:
        loops = len(assembly.loops)
        raise UnknownOutput(f"the code of {name} has {loops} loops as read here, {counts['loops']} by Mesa")


def _statistics(counts: dict[str, int], assembly: Assembly, nir: Sequence[str], built: BuiltKernel) -> Statistics:
    array_bytes, array_accesses = scratch(nir)
    weights = _weights(assembly, nir)
    run = None if weights is None else [(weights[place], instruction) for place, instruction in assembly.body]
    return Statistics(
        instructions=counts["instr"],
        instructions_run=None if run is None else sum(times * instruction.slots for times, instruction in run),
        nops=counts["nops"],
        moves=counts["mov"] + counts["cov"],
        registers=counts["full"],
        waves=counts["max_waves"],
        ss_waits=counts["(ss)"],
        sy_waits=counts["(sy)"],
        loops=counts["loops"],
        texture_loads=counts["cat5"],
        memory_accesses=counts["cat6"],
        array_bytes=array_bytes,
        private_bytes=built.private_bytes,
        spills=max(0, assembly.private_accesses - array_accesses),
        local_bytes=built.local_bytes,
        constants=counts["constlen"],
        code_bytes=4 * counts["dwords"],
        preamble=counts["preamble-instr"],
        flops_run=None if run is None else sum(times * _flops(instruction) for times, instruction in run),
        bytes_run=None if run is None else sum(times * _bytes(instruction) for times, instruction in run),
    )


def _weights(assembly: Assembly, nir: Sequence[str]) -> list[int] | None:
    """Return how often one thread runs each instruction; None if a loop's trips are not known."""
    loops, understood = assembly.loops, trips(nir)
    if len(loops) != len(understood):
        return None  # the back end unrolled or merged one
    depths = [sum(outer.holds(loop) for outer in loops) for loop in loops]
    if depths != [loop.depth for loop in understood]:
        return None
    counts = [loop.count for loop in understood if loop.count is not None]
    if len(counts) != len(loops):
        return None
    of_loop = list(zip(loops, counts, strict=True))
    return [
        prod(count for loop, count in of_loop if loop.first <= place <= loop.last)
        for place in range(len(assembly.instructions))
    ]


def _flops(instruction: Instruction) -> int:
    if not _FLOAT.match(instruction.opcode) or not (instruction.kind in _ALWAYS_FLOAT or ".f" in instruction.opcode):
        return 0
    return instruction.repeats * (2 if instruction.kind == "mad" else 1)


def _bytes(instruction: Instruction) -> int:
    """Bytes that one thread moves with this instruction to or from buffers and images."""
    width = _WIDTH.search(instruction.text)
    size = int(width[1] or width[2]) // 8 if width else 4
    if instruction.kind in ("ldg", "stg"):
        return size * int(re.findall(r", (\d+)$", instruction.text)[0])
    if instruction.kind in ("stib", "ldib"):
        return size * int((re.findall(r"\.(\d)\.imm", instruction.opcode) or ["1"])[0])
    if instruction.kind.startswith(("sam", "isam")):
        return size * len((re.findall(r"\(([xyzw]+)\)", instruction.text) or ["x"])[0])
    return 0
