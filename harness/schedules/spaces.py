"""Where candidates come from: for each task a space of schedules, and from a seed always the same one of it.

What a task writes decides. Into buffers, TVM's own rules for GPUs are right. Into images they are wrong: they store
single numbers where an image takes whole texels (`harness.quirks.schedules`), and TVM's tuner, which never looks
at an answer, keeps such kernels for their speed. So convolutions in NCHW4c have a space of ours, and what else is
written into images keeps TVM's default schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from harness.compiler.compat import writes_texture
from harness.schedules.drawing import Decision, ThreadLimits
from harness.schedules.rules import Rules
from harness.schedules.texel_conv import TexelConv, is_texel_conv

ATTEMPTS, APART = 4, 1_000_003
"""Schedules that are drawn for a seed until one is within the device's limits, and how far their own seeds are apart:
neighbours belong to the next trials, which would otherwise try the same again."""


class Space(Protocol):
    """All schedules that a task may take."""

    def sample(self, seed: int) -> Any:
        """TVM's `Schedule` that belongs to a seed, or None if no device could run it. Raises what TVM raises."""

    def decided(self, decisions: Sequence[Decision]) -> Any:
        """TVM's `Schedule` with these decisions, in the order of its making; None if they are not of this space."""


def space_of(function: Any, target: Any, limits: ThreadLimits) -> Space | None:
    """The space of a task; None for one that keeps TVM's default schedule."""
    if is_texel_conv(function):
        return TexelConv(function, target, limits)
    return None if writes_texture(function) else Rules(function, target, limits)


def schedule_of(space: Space, seed: int) -> Any:
    """The schedule of a trial; None if no device could run those of its seed. Raises what TVM raises."""
    draws = (space.sample(seed + attempt * APART) for attempt in range(ATTEMPTS))
    return next((schedule for schedule in draws if schedule is not None), None)
