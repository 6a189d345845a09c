"""What a history wants of a record. The rest of a line is not looked at: it is most of it, and there are a million."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from harness.run.outcome import Outcome
from harness.run.record import Loaded, RecordFile, line_parser


class Kept(TypedDict):
    """Fields of a record (`harness.run.record`), as a dictionary because that is made the soonest."""

    schema: NotRequired[Literal[1]]
    case: str
    path: str
    emulated: tuple[str, ...]
    outcome: Outcome
    message: NotRequired[str]
    artifact: NotRequired[str]
    quirks: NotRequired[tuple[str, ...]]
    as_shipped: NotRequired[bool]
    quick: NotRequired[bool]
    wall_ms: NotRequired[list[float]]
    max_abs_err: NotRequired[float | None]
    tolerance: NotRequired[float | None]
    vacuous: NotRequired[list[str]]
    facts: NotRequired[dict[str, int]]
    tvm: str
    ffi: str
    harness: str


_parse = line_parser(Kept)


def load_kept(file: Path) -> Loaded[Kept]:
    """What is kept in a file of records; nothing if there is none. Raises RigFailure, UsageError."""
    return RecordFile(file).load_as(_parse)


def comparable_ms(kept: Kept) -> list[float]:
    """As of a record: samples of a quick look are compared with no others."""
    return [] if kept.get("quick") else kept.get("wall_ms", [])
