"""Options of commands that judge changes: thresholds and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from harness.cli.options import threshold_option
from harness.judge.stats.pair import Rules

Minutes = Annotated[float, typer.Option(min=0, help="Time for sessions in turns, in minutes, over all cases.")]


@dataclass(frozen=True)
class RuleOptions:
    """Relevant changes of a latency."""

    relevant: Annotated[
        float,
        threshold_option(metavar="PERCENT", min=0.1, max=1000, help="Relevant change of the wall time, in percent."),
    ] = 3.0
    relevant_kernels: Annotated[
        float,
        threshold_option(metavar="PERCENT", min=0.1, max=1000, help="Relevant change of the kernel time, in percent."),
    ] = 1.0
    floor_ms: Annotated[
        float, threshold_option(metavar="MS", min=0, help="Relevant change of the wall time, in milliseconds.")
    ] = 0.05

    @property
    def rules(self) -> Rules:
        """The rules for the statistics."""
        return Rules(self.relevant / 100, self.relevant_kernels / 100, self.floor_ms)


@dataclass(frozen=True)
class ConfirmOptions(RuleOptions):
    """Relevant changes, and the maximum number of sessions per case."""

    most_sessions: Annotated[
        int, threshold_option(metavar="NUMBER", min=4, help="Maximum number of sessions per case.")
    ] = 32
