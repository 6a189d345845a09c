"""What an operator case came to on a path, and where that is kept so that nothing is run twice."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from device_runner.store import Store, key_of
from harness.run.outcome import Outcome

KIND = "operator_results"
RESULT = "result.json"
LOCK_WAIT_S = 60.0


class Verdict(str, Enum):
    """The word in the table; the best first."""

    RIGHT = "right"
    NOT_OFFLOADED = "not offloaded"
    """Right, but by the code of path `opencl`: nothing of it is in an image, or was given to CLML."""
    UNSUPPORTED = "unsupported"
    """It builds, and this device cannot run it."""
    WRONG = "wrong"
    NOT_BUILT = "does not build"
    CRASH = "crashes"
    """The compiler or the process on the device died, or did not end."""
    NOT_RUN = "not run"
    """The device or the rig failed: nothing is known."""


VERDICTS = {
    Outcome.OK: Verdict.RIGHT,
    Outcome.WRONG_RESULT: Verdict.WRONG,
    Outcome.COMPILE_ERROR: Verdict.NOT_BUILT,
    Outcome.KERNEL_BUILD_ERROR: Verdict.NOT_BUILT,
    Outcome.RUNTIME_ERROR: Verdict.CRASH,
    Outcome.COMPILER_CRASH: Verdict.CRASH,
    Outcome.COMPILE_TIMEOUT: Verdict.CRASH,
    Outcome.DEVICE_CRASH: Verdict.CRASH,
    Outcome.HANG: Verdict.CRASH,
    Outcome.UNSUPPORTED: Verdict.UNSUPPORTED,
}


@dataclass(frozen=True)
class Result:
    """The outcome of one operator case on one path."""

    outcome: Outcome
    message: str = ""
    """One line; empty if it is right."""
    max_rel_err: float | None = None
    """Largest error over the peak of the expected output, where it ran."""

    def verdict(self, *, own: bool) -> Verdict:
        """The word for it; `own` is whether the path did anything of its own."""
        if self.outcome is Outcome.OK and not own:
            return Verdict.NOT_OFFLOADED
        return VERDICTS.get(self.outcome, Verdict.NOT_RUN)


class Results:
    """Results under what they depend on.

    Those that blame a device or a rig are not kept, nor is a deadline that passed, which may be a busy machine's fault.
    """

    def __init__(self, cache: Path) -> None:
        self._store = Store(cache, KIND)

    def find(self, facts: dict[str, Any]) -> Result | None:
        """The result that is kept for these facts."""
        folder = self._store.find(key_of(facts))
        try:
            said = json.loads((folder / RESULT).read_text(encoding="utf-8")) if folder else None
            return Result(**{**said, "outcome": Outcome(said["outcome"])}) if said else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, facts: dict[str, Any], result: Result, title: str) -> Result:
        """Keep a result, and hand it on."""
        if result.outcome.conclusive and result.outcome is not Outcome.HANG:
            with self._store.making(key_of(facts), LOCK_WAIT_S) as scratch:
                (scratch / RESULT).write_text(json.dumps(dataclasses.asdict(result)), encoding="utf-8")
                (scratch / "title").write_text(f"{title}\n", encoding="utf-8")
        return result
