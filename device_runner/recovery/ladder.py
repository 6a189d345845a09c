"""The order in which a lost device is brought back: a list of rungs, gentlest first, and an attempt after each.

Nothing here knows what a rung does or what is attempted, so the order can be tested without a device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from device_runner.device import Rung
from device_runner.failures import Failure

T = TypeVar("T")

Attempt = Callable[[], tuple[T, "Failure | None"]]
"""Does the work once: what came of it, and the loss of the device or of what leads to it, if that is what came."""

LIMIT_S = 300.0
"""So long after the first loss neither a rung nor an attempt begins any more."""


@dataclass(frozen=True)
class RecoveryStep:
    """One rung that was climbed."""

    rung: str
    because: str
    """What was lost, in one line."""
    noticed_s: float
    """How long the attempt before had gone on when it was lost: at most so late was it noticed."""
    took_s: float
    recovered: bool
    """Whether the device answered and the attempt that followed kept it."""
    why_not: str = ""
    """Why the rung did not bring it back; empty if the device answered."""


def climb(
    attempt: Attempt[T],
    rungs: Sequence[Rung],
    *,
    tell: Callable[[str], object] = lambda rung: None,
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[T, Failure | None, list[RecoveryStep]]:
    """Attempt, and while the device is lost, climb one rung and attempt again. `tell` hears the name of each rung.

    Returns what the last attempt came to, its loss if it was one, and the rungs climbed. Raises what an attempt or a
    rung raises, other than a rung's `Failure` or OSError.
    """
    steps: list[RecoveryStep] = []
    began = clock()
    result, lost = attempt()
    lost_at = clock()
    end = lost_at + limit_s
    for rung in rungs:
        if lost is None or (started := clock()) >= end:
            break
        because, noticed_s = lost.message, round(lost_at - began, 3)
        tell(rung.name)
        why_not = _act(rung, min(rung.deadline_s, end - started))
        took_s = round(clock() - started, 3)
        if not why_not:
            began = clock()
            result, lost = attempt()
            lost_at = clock()
        steps.append(RecoveryStep(rung.name, because, noticed_s, took_s, lost is None, why_not))
    return result, lost, steps


def _act(rung: Rung, timeout_s: float) -> str:
    try:
        rung.act(timeout_s)
    except (Failure, OSError) as failure:
        return str(failure)
    return ""
