"""What a run and the process that works on one of its devices say to each other, over a pipe between the two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from device_runner.device import Identity, Permission
from device_runner.failures import Failure
from harness.build.artifact import Built
from harness.cases.plan import Plan
from harness.run.record import Record


@dataclass(frozen=True)
class Orders:
    """What holds for the whole run."""

    cache: Path
    run: str
    """Its id, in all its records."""
    as_shipped: bool = False
    allowed: frozenset[Permission] = frozenset()
    """What may be done to a lost device beyond connecting it anew."""
    tracker: tuple[str, int] | None = None
    """Where devices of other hosts are asked for; None for those of this host."""


@dataclass(frozen=True)
class RunCase:
    """To a worker: carry this case to its record. The end of the pipe means that there are no more."""

    plan: Plan
    built: Built


@dataclass(frozen=True)
class Said:
    """From a worker: a line for a person."""

    text: str


@dataclass(frozen=True)
class Opened:
    """From a worker: it holds its device, which is called `name` in records."""

    identity: Identity
    name: str


@dataclass(frozen=True)
class Stepped:
    """From a worker: its case has come to a step."""

    step: str


@dataclass(frozen=True)
class CaseDone:
    """From a worker: a case has its record. `lost` says why the device was given up meanwhile; empty if it was not."""

    record: Record
    lost: str = ""


@dataclass(frozen=True)
class Away:
    """From a worker that has nothing to do: its device does not answer any more."""

    why: str


@dataclass(frozen=True)
class Back:
    """From a worker whose device was given up: it answers again."""


@dataclass(frozen=True)
class Gone:
    """From a worker, its last word: it has no device."""

    failure: Failure


Message = Said | Opened | Stepped | CaseDone | Away | Back | Gone
