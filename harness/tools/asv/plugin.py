"""A plugin of asv, named in its configuration: `asv run` files under the device's identity, `asv show` gives reasons.

asv prints what a benchmark said beside its numbers, but keeps none of it in its files (asv/results.py, 0.6.6). Our
records in the file of the same name have the line, so they are put back where asv looks when it reads its own file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.base.tables import counted
from harness.base.terminal import tell
from harness.judge.history.results import newest_records, state_of_quirks
from harness.judge.history.runs import FRONT_PAGE
from harness.judge.stats.session import location_ms
from harness.measure.records.record import RecordFile

HASH_DIGITS = 8
"""Of a commit, in the names of asv's files."""


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

    from harness.tools.asv import plain_run

    load = Results.load.__func__

    def load_with_reasons(cls: Any, path: str, machine_name: str | None = None) -> Any:
        results = load(cls, path, machine_name)
        results._stderr = Reasons(Path(path))
        return results

    Results.load = classmethod(load_with_reasons)
    plain_run.install()
    add_remarks()


IN_TURNS = "`adreno-bench compare BASE HEAD --latency` measures in turns until it is sure"
ONE_SESSION = "each side is one session: on a busy or emulated host such ratios are noise, even where no code changed"


def noise_remark(conf: Any, hash_1: str, hash_2: str, **_: Any) -> str:
    """Return how far ratios of `asv compare` are noise: by the cases with the same library on both sides, if any."""
    ratios = unchanged_ratios(Path(conf.results_dir), *(_commit_of(conf, name) for name in (hash_1, hash_2)))
    if not ratios:
        return f"{ONE_SESSION}. {IN_TURNS}"
    cases = counted(len(ratios), "case has the same library", "cases have the same library")
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else f"{ratios[0]:.2f}"
    return f"{cases} at both commits, and latency ratios of {spread}: this host's noise is at least that. {IN_TURNS}"


def unchanged_ratios(results: Path, *commits: str) -> list[float]:
    """Return the latency ratios of cases whose library is the same at two commits, on one device."""
    base, head = (_latencies(results, commit) for commit in commits)
    return [head[key] / base[key] for key in base if key in head]


REMARKS: Mapping[str, Callable[..., str]] = {"Publish": lambda *_, **__: FRONT_PAGE, "Compare": noise_remark}
"""What is said after a command of asv's that a person typed, made of its arguments."""


def add_remarks() -> None:
    """Let asv say after these commands what its own output leaves open."""
    for name, remark in REMARKS.items():
        command = getattr(import_module(f"asv.commands.{name.lower()}"), name)
        command.run = classmethod(_followed_by(remark, command.run.__func__))


def _latencies(results: Path, commit: str) -> dict[tuple[str, ...], float]:
    """Return a latency for each library that was timed at a commit, with its case and device."""
    files = results.glob(f"*/{commit[:HASH_DIGITS]}-*.jsonl")
    records = [record for file in files for record in newest_records(RecordFile(file).load().records)]
    timed = (record for record in records if record.artifact and record.comparable_ms)
    return {(r.case, str(r.as_shipped), r.identity_key, r.artifact): location_ms(r.comparable_ms) for r in timed}


def _commit_of(conf: Any, name: str) -> str:
    from asv.repo import NoSuchNameError, get_repo

    try:
        return str(get_repo(conf).get_hash_from_name(name))
    except NoSuchNameError:  # asv takes the beginning of a hash as well
        return name


def _followed_by(remark: Callable[..., str], run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def run_and_tell(cls: Any, /, *arguments: Any, **options: Any) -> Any:
        code = run(cls, *arguments, **options)
        tell(remark(*arguments, **options))
        return code

    return run_and_tell
