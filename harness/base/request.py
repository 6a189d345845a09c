"""What is asked of the compiler: which defects are worked around, and all that decides what is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.device import ADRENO_LOCAL_BYTES

if TYPE_CHECKING:
    from harness.base.model import OnnxModel
    from harness.base.suite import Suite


@dataclass(frozen=True)
class QuirkPolicy:
    """Which upstream defects are worked around: all of them, or only those without which nothing compiles."""

    as_shipped: bool = False
    with_quirks: tuple[str, ...] = ()
    """Ids of quirks that are worked around all the same, although the rest is as shipped."""


WORKED_AROUND = QuirkPolicy()
"""All of them."""


WITH_WORKAROUNDS, AS_SHIPPED = "workarounds", "as-shipped"
QUIRK_STATES = (WITH_WORKAROUNDS, AS_SHIPPED)
"""The two states that a history measures a release in: at its best, and as its users meet it."""


@dataclass(frozen=True)
class CompileRequest:
    """All that decides what is compiled, as plain JSON values."""

    model_file: str
    """Self-contained, with static shapes."""
    path: str
    precision: str
    quirks: Sequence[str]
    """Ids of the quirks that are worked around; the plan decides which (`harness.compile.artifacts.planner`)."""
    host_triple: str | None
    """LLVM triple of the device's CPU; this machine's if it is None."""
    image2d_max_width: int
    image2d_max_height: int
    image_max_array_layers: int
    local_memory_bytes: int = ADRENO_LOCAL_BYTES
    """Of a work-group: no kernel may take more."""
    linker: str = ""
    """Which one links for that CPU; empty for this machine's own."""
    schedules: str = ""
    """File of tuned schedules that its tasks may take; empty for TVM's own."""
    schedules_sha256: str = ""


@dataclass(frozen=True)
class RunOptions:
    """What is to be built and run, whatever the revision."""

    suite: Path
    device: str
    """The name of one."""
    quirks: QuirkPolicy = WORKED_AROUND
    schedules: Path | None = None
    """File of schedules in place of the one that the suite names."""
    models: tuple[str | OnnxModel, ...] = ()
    """What stands in place of the suite's models."""

    def read_suite(self) -> Suite:
        """Return the suite, with these models in place of its own. Raises UsageError."""
        from harness.base.suite import suite_of

        return suite_of(self.suite, self.models)

    @property
    def schedules_file(self) -> Path | None:
        """The file of schedules that holds. Raises UsageError."""
        return self.schedules or self.read_suite().schedules

    @property
    def words(self) -> list[str]:
        """The command line's words for it."""
        from harness.base.model import anchored, words_given

        models = words_given([anchored(model, Path.cwd()) for model in self.models])
        shipped = ["--as-shipped"] if self.quirks.as_shipped else []
        quirks = [part for quirk in self.quirks.with_quirks for part in ("--with-quirk", quirk)]
        schedules = ["--schedules", str(self.schedules.absolute())] if self.schedules else []
        return ["--suite", str(self.suite.absolute()), "--device", self.device, *models, *schedules, *shipped, *quirks]
