"""What is asked of the compiler: which defects are worked around, and all that decides what is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
    linker: str = ""
    """Which one links for that CPU; empty for this machine's own."""
    schedules: str = ""
    """File of tuned schedules that its tasks may take; empty for TVM's own."""
    schedules_sha256: str = ""
