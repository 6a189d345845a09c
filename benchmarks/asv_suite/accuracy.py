"""How far the answer is from the oracle's. Known for a wrong answer too. Lower is better, as asv takes it."""

from __future__ import annotations

from harness.run.correctness import Accuracy

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
        """1 if the largest element of some output is another than the oracle's."""
        return float(not self._known().top1)

    track_top1_mismatch.unit = "mismatch"  # type: ignore[attr-defined]

    def _known(self) -> Accuracy:
        accuracy = self.record.accuracy
        known(None if accuracy is None else 0.0, self.record)
        assert accuracy
        return accuracy
