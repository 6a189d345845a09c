"""How far the answer is from the oracle's, and how often its class is the right one.

Known for a wrong answer too. Lower is better, as asv takes it.
"""

from __future__ import annotations

from harness.measure.facts import Accuracy
from harness.tools.labelled.part import TopOne

from .measured import Measured, known


class Oracle(Measured):
    """Against LLVM on the CPU, over all outputs."""

    def track_max_abs_error(self, case: str, quirks: str) -> float:
        """Largest absolute error."""
        return known(self.record.max_abs_err, self.record)

    track_max_abs_error.unit = "absolute error"  # type: ignore[attr-defined]

    def track_cosine_distance(self, case: str, quirks: str) -> float:
        """One minus the smallest cosine similarity."""
        return 1.0 - self._known().cosine

    track_cosine_distance.unit = "1 - cosine"  # type: ignore[attr-defined]

    def track_top1_mismatch(self, case: str, quirks: str) -> float:
        """Return 1 if the largest element of some output is another than the oracle's."""
        return float(not self._known().top1)

    track_top1_mismatch.unit = "mismatch"  # type: ignore[attr-defined]

    def _known(self) -> Accuracy:
        accuracy = self.record.accuracy
        known(None if accuracy is None else 0.0, self.record)
        assert accuracy
        return accuracy


class Labelled(Measured):
    """On labelled data; only of a network that has some."""

    def setup(self, case: str, quirks: str) -> None:
        """Require that labelled inputs were classified."""
        super().setup(case, quirks)
        known(self.record.max_abs_err, self.record)
        if (top_one := self.record.part(TopOne)) is None:
            raise NotImplementedError("no labelled data, or the answer was wrong already")
        self.top_one = top_one

    def track_top1_error(self, case: str, quirks: str) -> float:
        """Share of labelled inputs whose largest score is not that of their class."""
        return 1.0 - self.top_one.right / self.top_one.inputs

    track_top1_error.unit = "of labelled inputs"  # type: ignore[attr-defined]
