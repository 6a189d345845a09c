"""What a case came to, as a number, so that asv's graphs show when it stopped being right."""

from __future__ import annotations

from harness.judge.history.results import CODES

from .measured import Measured


class Outcome(Measured):
    """Of every case, whatever happened to it."""

    def track_outcome(self, case: str, quirks: str) -> float:
        """Return 0 is right; docs/how-to/history.md lists the others."""
        return float(CODES[self.record.outcome])

    track_outcome.unit = "outcome (0 is right)"  # type: ignore[attr-defined]
