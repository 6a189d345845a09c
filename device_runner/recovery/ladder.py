"""Bringing a lost device back: a list of rungs, gentlest first, an attempt after each, and a quarantine when all fail.

Nothing here knows what a rung does or what is attempted, so the order can be tested without a device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from device_runner.device import Rung
from device_runner.failures import DeviceLost, Failure

T = TypeVar("T")

Attempt = Callable[[], tuple[T, "Failure | None"]]
"""Does the work once; returns its result, and the loss of the device or of what leads to it, if there was one."""

LIMIT_S = 300.0
"""Seconds after the first loss until no new rung or attempt begins."""


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

    Returns the result of the last attempt, its loss if it was one, and the rungs climbed. Raises what an attempt or a
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


@dataclass(frozen=True)
class Quarantine:
    """Start and reason of giving a device up."""

    since: str
    """ISO 8601, UTC."""
    why: str
    """One line."""


class Recovery:
    """What is remembered of one device from case to case.

    After a climb in vain the device is in quarantine. The next run looks once, which takes a second or two: if it
    does not answer, that is all; if it does, the quarantine is over, but this attempt gets no ladder, so that a device
    that comes and goes costs one attempt for each case.
    """

    def __init__(self) -> None:
        self.quarantine: Quarantine | None = None

    def retry(
        self, attempt: Attempt[T], rungs: Sequence[Rung], tell: Callable[[str], object] = lambda rung: None
    ) -> tuple[T, list[RecoveryStep]]:
        """Attempt, and climb while the device is lost; return the last attempt's result, and the rungs climbed.

        Before it touches the device, an attempt has to ask `admit`. `tell` hears the name of each rung.
        """
        result, lost, steps = climb(attempt, () if self.quarantine else rungs, tell=tell)
        if lost and not self.quarantine:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self.quarantine = Quarantine(now, lost.message)
        return result, steps

    def admit(self, rungs: Sequence[Rung]) -> None:
        """Check that the device may be used. Raises `DeviceLost` if it is in quarantine and still does not answer.

        The first of `rungs` is the one that only looks.
        """
        if not self.quarantine:
            return
        look = rungs[0]
        try:
            look.act(look.deadline_s)
        except Failure as failure:
            message = f"the device has been lost since {self.quarantine.since}: {self.quarantine.why}"
            raise DeviceLost(message, hint=failure.hint, evidence=failure.message) from failure
        self.quarantine = None
