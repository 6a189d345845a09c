"""What records keep of labelled data."""

from __future__ import annotations

from dataclasses import dataclass

from harness.measure.facts import Objection

CONFIDENCE = 0.99
"""Of the interval in which the number of right classes may lie (`harness.tools.labelled.probes`)."""


@dataclass(frozen=True)
class TopOne(Objection):
    """Number of labelled inputs for which the right class has the largest score."""

    inputs: int
    right: int
    oracle_right: int
    alike: int
    """How many the oracle gives the same class, right or not."""
    least: int
    """The fewest that may be right."""
    top_five: int | None = None
    """For how many the right class is among the five largest scores; None with fewer classes, or if nobody counted."""
    oracle_top_five: int | None = None
    """The same of the oracle."""

    @property
    def complaint(self) -> str:
        """One line for a person; empty unless fewer are right than chance explains."""
        if self.right >= self.least:
            return ""
        return (
            f"top-1 dropped: {self.right} of {self.inputs} labelled inputs are right, and {self.oracle_right} by the "
            f"oracle (fewer than {self.least} are no accident, by the {CONFIDENCE:.0%} binomial interval)"
        )


@dataclass(frozen=True)
class Score(Objection):
    """What a person's function makes of the outputs for labelled inputs."""

    name: str
    value: float
    oracle: float
    inputs: int
    least: float
    """The smallest that is right."""

    @property
    def complaint(self) -> str:
        """One line for a person; empty unless it is less than rounding explains."""
        if not self.value < self.least:
            return ""
        least = f"less than {self.least:.4g} is wrong"
        return f"{self.name} dropped: {self.value:.4g}, and {self.oracle:.4g} by the oracle ({least})"
