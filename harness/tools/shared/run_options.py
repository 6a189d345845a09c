"""What every revision of a compiler is to build and run, and the words of a command line for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.base.model import Model, anchored, words_given
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.base.suite import Suite, suite_of


@dataclass(frozen=True)
class RunOptions:
    """What is to be built and run, whatever the revision."""

    suite: Path
    device: str
    """The name of one."""
    quirks: QuirkPolicy = WORKED_AROUND
    schedules: Path | None = None
    """File of schedules in place of the one that the suite names."""
    models: tuple[Model, ...] = ()
    """What stands in place of the suite's models."""

    def read_suite(self) -> Suite:
        """Return the suite, with these models in place of its own. Raises UsageError."""
        return suite_of(self.suite, self.models)

    @property
    def schedules_file(self) -> Path | None:
        """The file of schedules that holds. Raises UsageError."""
        return self.schedules or self.read_suite().schedules

    @property
    def words(self) -> list[str]:
        """The command line's words for it."""
        models = words_given([anchored(model, Path.cwd()) for model in self.models])
        shipped = ["--as-shipped"] if self.quirks.as_shipped else []
        quirks = [part for quirk in self.quirks.with_quirks for part in ("--with-quirk", quirk)]
        schedules = ["--schedules", str(self.schedules.absolute())] if self.schedules else []
        return ["--suite", str(self.suite.absolute()), "--device", self.device, *models, *schedules, *shipped, *quirks]
