"""What a probe is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from device_runner.device import Program, Session
from harness.measure.facts import Facts

Step = Callable[[str], None]
"""Shows what is being done."""


def no_step(_: str) -> None:
    """Show nothing."""


class Probe(Protocol):
    """Measures one thing of a program that has run and was right."""

    @property
    def step(self) -> str:
        """Step shown meanwhile; empty if it takes no time."""

    @property
    def timed(self) -> bool:
        """Whether it takes times, which mean nothing where the path's library is emulated."""

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Yield facts as they become known, so that a failure leaves those before it. `facts` has the earlier ones.

        Raises what the program and the session raise. `harness.measure.decide` says whether a fact speaks against the
        case.
        """
