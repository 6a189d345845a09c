"""What comes before the first answer. A tuned case starts with what its tuning kept."""

from __future__ import annotations

from .measured import Measured, known


class Startup(Measured):
    """Of a case that is right."""

    def setup(self, case: str, quirks: str) -> None:
        """Require a right answer."""
        super().setup(case, quirks)
        self.require_right()
        if self.record.path in self.record.emulated:
            raise NotImplementedError("emulated: its time means nothing")

    def track_init(self, case: str, quirks: str) -> float:
        """Load and initialise the library."""
        return known(self.record.init_ms, self.record) / 1e3

    track_init.unit = "seconds"  # type: ignore[attr-defined]

    def track_first_run(self, case: str, quirks: str) -> float:
        """Return the first inference, with the device's compilation of the kernels."""
        return known(self.record.first_run_ms, self.record) / 1e3

    track_first_run.unit = "seconds"  # type: ignore[attr-defined]
