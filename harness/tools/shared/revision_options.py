"""Options of commands that build and run revisions of the compiler, each in an environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.cli.options import CaseOptions, seldom_option

if TYPE_CHECKING:
    from harness.tools.shared.toolchain import RunOptions

DEFAULT_COMPILER_CONFIG = Path("asv.tvm.conf.json")

CompilerConfig = Annotated[
    Path, seldom_option("--config", metavar="FILE", help="asv configuration of the TVM repository.")
]
CompilerRepo = Annotated[
    Path | None,
    seldom_option(metavar="FOLDER", help="Local clone or bare repository, instead of that of the configuration."),
]


def case_ids(what: CaseOptions) -> list[str]:
    """Return the ids of the cases. Raises UsageError, also for unreadable schedules."""
    from harness.compile.schedules.database import read

    suite = what.read_suite()
    if schedules := what.schedules or suite.schedules:
        read(schedules)
    return [case.id for case in what.cases(suite.model_copy(update={"schedules": schedules}))]


def on_each_revision(what: CaseOptions, device: str) -> RunOptions:
    """Return what every revision of a compiler is to build and run on a device."""
    from harness.tools.shared.toolchain import RunOptions

    return RunOptions(what.suite, device, what.quirks, what.schedules, tuple(what.models))
