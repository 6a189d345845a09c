"""Runs TVM's passes one by one, and says which of them failed, and on what."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from harness.compiler.culprit import culprit
from harness.compiler.passes import Passes

LOG = logging.getLogger(__name__)
"""Told the name of each step before it runs, so that a process which dies of one has left its name behind."""


class StepFailed(Exception):
    """A step of TVM raised. `place` says which, by which of its schedules, and on which kernel or operator."""

    def __init__(self, name: str, on: str, error: Exception) -> None:
        super().__init__(str(error))
        self.place = " ".join(part for part in (name, _schedule(error), on and f"on {on}") if part)
        self.error = error


def run_passes(passes: Passes, mod: Any) -> Any:
    """The module after these passes, as TVM's `Sequential` would run them. Raises StepFailed."""
    from tvm import transform

    for one in passes:
        # A sequence of one leaves out what the context disables, as the whole sequence would.
        mod = run_step(str(one.info.name), transform.Sequential([one]), mod)
    return mod


def run_step(name: str, step: Callable[[Any], Any], mod: Any) -> Any:
    """What a step makes of a module. Raises StepFailed, with the name of this step or of one inside it."""
    LOG.info(name)
    try:
        return step(mod)
    except StepFailed:
        raise
    except Exception as error:  # TVM raises errors of every kind
        raise StepFailed(name, culprit(step, mod, error), error) from error


def _schedule(error: Exception) -> str:
    """Which schedule of dlight's the error came through, as `(dlight/adreno/pool.py, schedule_max_pool2d)`, if any."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/dlight/" in frame.filename]
    if not frames:
        return ""
    return f"(dlight/{frames[-1].filename.rpartition('/dlight/')[2]}, {frames[-1].name})"
