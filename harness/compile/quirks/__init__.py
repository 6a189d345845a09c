"""Known defects of TVM that stand between a model and its measurement: a file for each subject, a row for each defect.

docs/explanation/quirks.md explains each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from device_runner.names import suggestion
from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.base.request import QuirkPolicy
from harness.compile.compiler.releases import tvm_version
from harness.compile.paths import family_of
from harness.compile.quirks import (
    clml_table,
    constants,
    fusions,
    importer,
    kernel_source,
    layouts,
    misreadings,
    pipelines,
    schedules,
    texels,
)
from harness.compile.quirks.base import Quirk

__all__ = ["QUIRKS", "Quirk", "policy_of", "quirks_for", "quirks_of", "require_known"]

QUIRKS: tuple[Quirk, ...] = (
    *pipelines.QUIRKS,
    *misreadings.QUIRKS,
    *importer.QUIRKS,
    *constants.QUIRKS,
    *layouts.QUIRKS,
    *kernel_source.QUIRKS,
    *schedules.QUIRKS,
    *fusions.QUIRKS,
    *texels.QUIRKS,
    *clml_table.QUIRKS,
    importer.FUNCTION_IN_HALF,
)
"""All quirks, in the order in which their workarounds are applied."""


def quirks_for(
    path: str, precision: Precision, *, as_shipped: bool, but_for: Collection[str] = (), tvm: str = ""
) -> tuple[Quirk, ...]:
    """Return the quirks to work around for a case with this TVM (default: the installed one). Runs no probe.

    `as_shipped` leaves only those without which nothing could run, and those whose ids are in `but_for`.
    """
    quirks = (quirk for quirk in QUIRKS if quirk.affects(tvm or tvm_version(), family_of(path), precision))
    return tuple(quirk for quirk in quirks if not as_shipped or quirk.essential or quirk.id in but_for)


def quirks_of(ids: Collection[str]) -> tuple[Quirk, ...]:
    """Return the quirks of these ids, in the order in which their workarounds are applied."""
    return tuple(quirk for quirk in QUIRKS if quirk.id in ids)


def policy_of(as_shipped: bool, with_quirks: Collection[str] | None = None) -> QuirkPolicy:
    """Which defects are worked around, as a person asked for it.

    Raises UsageError for quirks that do not exist or that are worked around anyway.
    """
    require_known(with_quirks or ())
    if with_quirks and not as_shipped:
        raise UsageError("--with-quirk goes with --as-shipped", hint="without it all quirks are worked around")
    return QuirkPolicy(as_shipped, tuple(with_quirks or ()))


def require_known(ids: Collection[str], quirks: Iterable[Quirk] = QUIRKS) -> None:
    """Raise UsageError for an id that no quirk has. One that the installed release is free of is no mistake."""
    names = [quirk.id for quirk in quirks]
    for wrong in (name for name in ids if name not in names):
        raise UsageError(
            f"there is no quirk {wrong!r}",
            hint=suggestion(wrong, names, otherwise="`adreno-bench quirks` lists", choices=("them",)),
        )
