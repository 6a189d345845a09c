"""One device over a whole run: brought back when it can be, and not waited for again and again when it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from device_runner.device import Rung
from device_runner.failures import DeviceLost, Failure
from device_runner.recovery.ladder import Attempt, RecoveryStep, T, climb


@dataclass(frozen=True)
class Quarantine:
    """Since when a device is given up, and why."""

    since: str
    """ISO 8601, UTC."""
    why: str
    """One line."""


class Recovery:
    """What is remembered of one device from case to case.

    After a climb in vain the device is in quarantine. Whoever comes next looks once, which takes a second or two: if it
    does not answer, that is all; if it does, the quarantine is over, but this attempt gets no ladder, so that a device
    that comes and goes costs one attempt for each case.
    """

    def __init__(self) -> None:
        self.quarantine: Quarantine | None = None

    def retry(
        self, attempt: Attempt[T], rungs: Sequence[Rung], tell: Callable[[str], object] = lambda rung: None
    ) -> tuple[T, list[RecoveryStep]]:
        """Attempt, and climb while the device is lost: what the last attempt came to, and the rungs climbed.

        Before it touches the device, an attempt has to ask `admit`. `tell` hears the name of each rung.
        """
        result, lost, steps = climb(attempt, () if self.quarantine else rungs, tell=tell)
        if lost and not self.quarantine:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self.quarantine = Quarantine(now, lost.message)
        return result, steps

    def admit(self, rungs: Sequence[Rung]) -> None:
        """Return if the device may be used. Raises `DeviceLost` if it is in quarantine and a look finds it still gone.

        The first of `rungs` is the one that only looks.
        """
        if not self.quarantine:
            return
        look = rungs[0]
        try:
            look.act(look.deadline_s)
        except Failure as failure:
            message = f"the device is lost since {self.quarantine.since}: {self.quarantine.why}"
            raise DeviceLost(message, hint=failure.hint, evidence=failure.message) from failure
        self.quarantine = None
