"""What all suites share: a case, as shipped or worked around, and the record that tells of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from harness.judge.history.asv_process import QUIRKS, end_with_asv, record_of, suite
from harness.measure.records.record import Record

end_with_asv()  # asv's fork server, which is what imports us, would outlive it
SUITE = suite(Path(__file__).parents[2] / "adreno-bench.toml")


class Measured:
    """asv passes each case's id and its state of quirks to every method."""

    params = ([case.id for case in SUITE.cases], list(QUIRKS))
    param_names = ("case", "quirks")
    timeout = SUITE.longest_case_s
    version = "1"
    """Of what the numbers mean; asv would otherwise drop the history at every edit of the source."""

    def setup_cache(self) -> None:
        """Nothing. That it stands here makes asv run all suites of a commit in one folder."""

    def setup(self, case: str, quirks: str) -> None:
        """Get the case's record: measured by the first benchmark that asks."""
        self.record = record_of(SUITE, case, quirks, Path.cwd())

    def require_right(self) -> None:
        """End as `failed` unless the case is right."""
        if self.record.message:
            fail(f"{self.record.outcome.value}: {self.record.message}")


def known(value: float | None, record: Record) -> float:
    """Return a number of the record. Ends as `failed` with the case's one line if it is not there."""
    if value is None:
        fail(f"{record.outcome.value}: {record.message or 'the record has no such number'}")
    return value


def fail(line: str) -> NoReturn:
    """End this benchmark as `failed`. asv shows what was printed, and of an exception it would be a traceback."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    os._exit(1)
