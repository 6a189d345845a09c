"""The launches of a program's kernels, as the probe on the device sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.device import Launch, Program, Session
    from harness.probes.facts import Facts


@dataclass(frozen=True)
class Launches:
    """The kernels of each inference that was watched, in the order in which they were launched."""

    inferences: Sequence[Sequence[Launch]]


@dataclass(frozen=True)
class LaunchProbe:
    """Watches some inferences. Raises RigFailure where launches cannot be watched."""

    repeat: int
    timeout_s: float
    step = ""
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[Launches]:
        """Watch the inferences."""
        yield Launches(program.launches(self.repeat, timeout_s=self.timeout_s))
