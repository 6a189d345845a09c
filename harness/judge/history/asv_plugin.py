"""A plugin of asv, named in its configuration: `asv run` files under the device's identity, `asv show` gives reasons.

asv prints what a benchmark said beside its numbers, but keeps none of it in its files (asv/results.py, 0.6.6). Our
records in the file of the same name have the line, so they are put back where asv looks when it reads its own file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.base.terminal import tell
from harness.judge.history.results import newest_records, state_of_quirks
from harness.measure.records.record import RecordFile


class Reasons(dict[str, str]):
    """The same text for every benchmark: that of a case is measured once, whatever asv reads of it.

    It is read when it is asked for. asv publishes without asking, and there are as many files as commits.
    """

    def __init__(self, results_file: Path) -> None:
        super().__init__()
        self._file = results_file

    def __missing__(self, _: str) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    @functools.cached_property
    def _text(self) -> str:
        return reasons_of(self._file)


def reasons_of(results_file: Path) -> str:
    """Return a line for each case that has no numbers in a results file of asv; empty if all have."""
    records = newest_records(RecordFile(results_file.with_suffix(".jsonl")).load().records)
    return "\n".join(
        f"{record.case} {state_of_quirks(as_shipped=record.as_shipped)}: {record.outcome.value}: {record.message}"
        for record in records
        if record.message
    )


def setup() -> None:
    """Register the plugin; asv calls this when it has read its configuration."""
    from asv.results import Results

    from harness.judge.history import plain_run

    load = Results.load.__func__

    def load_with_reasons(cls: Any, path: str, machine_name: str | None = None) -> Any:
        results = load(cls, path, machine_name)
        results._stderr = Reasons(Path(path))
        return results

    Results.load = classmethod(load_with_reasons)
    plain_run.install()
    add_remarks()


REMARKS = {
    "Publish": "asv's own front page is in place of ours; `adreno-bench history publish` writes both",
    "Compare": "each side is one session: on a busy or emulated host such ratios are noise, even where no code changed"
    ". `adreno-bench compare BASE HEAD --latency` measures in turns until it is sure",
}
"""What is said after a command of asv's that a person typed."""


def add_remarks() -> None:
    """Let asv say after these commands what its own output leaves open."""
    for name, remark in REMARKS.items():
        command = getattr(import_module(f"asv.commands.{name.lower()}"), name)
        command.run = classmethod(_followed_by(remark, command.run.__func__))


def _followed_by(remark: str, run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def run_and_tell(cls: Any, /, *arguments: Any, **options: Any) -> Any:
        code = run(cls, *arguments, **options)
        tell(remark)
        return code

    return run_and_tell
