"""What Python code calls, and what the commands are written on. `adreno_bench` is its name outside.

import adreno_bench as bench

results = bench.run("net.onnx", paths=["texture"])
results["net", "texture"].latency_ms
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from device_runner.device import DeviceEntry, Permission
from device_runner.failures import Failure
from device_runner.interrupt import interruptible
from device_runner.registry import list_devices
from device_runner.store import cache_root
from harness.base.case import Axes, Precision, Tuning
from harness.base.failures import UsageError
from harness.base.tool import load as load_place
from harness.base.tool import tools

if TYPE_CHECKING:
    import pandas

    from device_runner.workers import DeviceSource
    from harness.base.model import OnnxModel
    from harness.base.plan import Plan
    from harness.judge.compare import ComparisonResult
    from harness.judge.path_ranking import PathFlip, PathMean
    from harness.judge.report.comparison import ComparisonExport
    from harness.judge.report.exports import CaseExport
    from harness.judge.sides import Sides
    from harness.judge.stats.pair import Rules
    from harness.measure.context import Origin
    from harness.measure.progress import Progress
    from harness.measure.records.index import RecordIndex
    from harness.measure.records.record import Record, RecordFile
    from harness.measure.workbench import Request

Place: TypeAlias = "str | PathLike[str]"
"""A file, a folder, a glob or a URL."""
Words: TypeAlias = "str | Sequence[str]"
"""One word or several."""
PATIENCE = "what was measured before cannot be measured in turns"


@dataclass(frozen=True, repr=False)
class Results:
    """Results of cases: what `run` measured, or what `load` read.

    `results["net", "texture"]` is the latest result of a case; further words narrow it to a precision and a tuning.
    A notebook shows the matrix of models and paths. pandas, polars and pyarrow take the cases as a table.
    """

    records: tuple[Record, ...]
    """Every session, in the order of its models."""
    settled: tuple[Record, ...] = ()
    """Those of earlier runs, in place of the cases that were not run again."""
    lost: Mapping[str, Failure] = field(default_factory=dict)
    """Devices that could not be opened or were lost."""

    def __len__(self) -> int:
        return len(self._newest)

    def __iter__(self) -> Iterator[CaseExport]:
        from harness.judge.report.exports import export_case

        return map(export_case, self._newest)

    def __getitem__(self, words: Words) -> CaseExport:
        """Return the latest result of a case, by its id or by words of it. Raises KeyError if not exactly one has them.

        Args:
            words: `"net-texture-float32-untuned"`, or `"net", "texture"` and, where that is not enough, the precision
                and the tuning.
        """
        asked = {words} if isinstance(words, str) else set(words)
        fitting = [case for case in self if asked <= {case.case, *case.case.split("-")}]
        if len(fitting) != 1:
            among = ", ".join(case.case for case in fitting or self)
            raise KeyError(f"{len(fitting)} cases have the words {', '.join(sorted(asked))}, among: {among}")
        return fitting[0]

    def table(self) -> str:
        """Return the table that `adreno-bench run` and `adreno-bench show` print."""
        from harness.judge.report.table import results_table

        return results_table(self._newest)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each case. Raises SetupMissing without pandas."""
        from harness.judge.report.exports import data_frame

        return data_frame(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand a row for each case to `pyarrow.table()`, `polars.DataFrame()` and others by Arrow's C stream.

        Raises SetupMissing without pyarrow.
        """
        from harness.judge.report.exports import arrow_table

        return arrow_table(self).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.table() if self.records else "no results"

    def _repr_html_(self) -> str | None:
        """Return the matrix for a notebook; None without jinja2, and then it shows the table."""
        from harness.judge.report.suite_page import matrix_html

        return matrix_html(self._builds)

    @property
    def new(self) -> list[Record]:
        """Those that were measured, not taken from earlier runs."""
        earlier = set(map(id, self.settled))
        return [record for record in self.records if id(record) not in earlier]

    @property
    def sides(self) -> Sides:
        """What they say of each series, for a comparison."""
        from harness.judge.sides import sides_of

        return sides_of(self.records)

    @property
    def _builds(self) -> list[list[Record]]:
        from harness.judge.sides import by_series

        return list(by_series(self.records).values())

    @cached_property
    def _newest(self) -> list[Record]:
        return [build[-1] for build in self._builds]


@dataclass(frozen=True, repr=False)
class Verdicts:
    """Verdicts on cases: what `compare` returns. A notebook shows the table."""

    result: ComparisonResult
    rules: Rules
    remark: str = ""
    """What was compared, or why nothing was."""
    answer: str = ""
    """One sentence, where two models or two sets of options were compared."""

    def __repr__(self) -> str:
        return self.text()

    def text(self, *, markdown: bool = False) -> str:
        """Return what `adreno-bench compare` prints: the table, its reasons, and what is undecided."""
        from harness.judge.report import verdicts as shown

        result, means, flips = self.result, *self._paths
        parts = (
            shown.headline(result.cases) if markdown else "",
            shown.verdict_table(result.cases, markdown=markdown),
            *shown.kernel_tables(result.cases, markdown=markdown),
            shown.summary(result.fitness, means, flips, markdown=markdown),
            self.remark,
            shown.emulated_parts(result),
            shown.needed(result),
            shown.undecided(result, markdown=markdown),
            self.answer,
        )
        return "\n\n".join(filter(None, parts))

    @cached_property
    def export(self) -> ComparisonExport:
        """All of it as frozen values, as `compare --json` prints them; `export.cases` are the cases."""
        from harness.judge.report.comparison import export_comparison

        return export_comparison(self.result, *self._paths)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        from harness.judge.report.verdicts import verdict_html

        return verdict_html(self.result.cases, self.answer)

    @cached_property
    def _paths(self) -> tuple[list[PathMean], list[PathFlip]]:
        from harness.judge.path_ranking import path_flips, path_means

        return path_means(self.result.cases), path_flips(self.result.cases, self.rules)


def run(
    *models: Place | OnnxModel,
    paths: Words = (),
    precisions: Words = (),
    tunings: Words = (),
    cases: Words = (),
    device: Words = "virtual",
    suite: Place = "adreno-bench.toml",
    records: Place = "records.jsonl",
    quick: bool = False,
    progress: bool = True,
) -> Results:
    """Compile, judge and time models, as `adreno-bench run` does.

    Ctrl-C ends it with KeyboardInterrupt; what was measured by then is in `records`.

    Args:
        models: Files, networks of the zoo, or `OnnxModel` for shapes and inputs; without any, those of the suite.
        paths: `clml`, `texture`, `opencl`; by default those of the suite, or all three.
        precisions: `float32`, `float16`, `float16_acc32`.
        tunings: `untuned`, `tuned`.
        cases: Globs of case ids.
        device: `virtual`, `local`, an adb serial, `all`, or labels such as `soc=SM8650`.
        suite: Suite file; with models it may be missing.
        records: File to append to, a line for each case.
        quick: Take three samples per case on an emulated device.
        progress: Say on standard error what goes on.

    Raises:
        Failure: What the command says in one line: a wrong option, a missing file or package, a lost device.
    """
    from device_runner.selection import select
    from harness.measure.records.record import RecordFile

    request = _request(models, paths, precisions, tunings, cases, suite, quick=quick)
    file = RecordFile(Path(records))
    file.require_writable()
    with _progress(progress) as watcher:
        names = select(_words(device), request.cache, watcher.say)
        return run_request(request, names, file, watcher)


def load(place: Place) -> Results:
    """Read the sessions of the latest build of each case: a file, a folder, a glob or a URL of records.

    Raises:
        Failure: There are no records.
    """
    from harness.judge.record_reader import read_builds

    return Results(tuple(record for build in read_builds(fspath(place), lambda _: True) for record in build))


def compare(
    base: Results | Place | OnnxModel,
    head: Results | Place | OnnxModel,
    *,
    paths: Words = (),
    precisions: Words = (),
    tunings: Words = (),
    device: str = "virtual",
    minutes: float = 20.0,
    relevant: float = 3.0,
    progress: bool = True,
) -> Verdicts:
    """Compare two results, or two models.

    Results, records files and folders of baselines are compared as they are. Two models are measured in turns on one
    device until the question is decided or the time is up; `answer` has the sentence.

    Args:
        base: What `head` is compared with: results, a place of records, a folder of baselines, or a model's file.
        head: The same, for what is judged.
        paths: For models, as in `run`; so are `precisions`, `tunings`, `device` and `progress`.
        precisions: See `paths`.
        tunings: See `paths`.
        device: See `paths`; exactly one.
        minutes: Time for sessions in turns.
        relevant: Smallest change of the latency that matters, in percent.
        progress: See `paths`.

    Raises:
        Failure: What the command says in one line.
    """
    from harness.judge.stats.pair import Rules

    rules = Rules(relevant / 100)
    if not (_is_model(base) or _is_model(head)):
        return judge_sides(_sides(base), _sides(head), rules)
    if not (_is_model(base) and _is_model(head)):
        raise UsageError("a model is compared with another model", hint="name two models, or two places of records")
    sides = [_request([side], paths, precisions, tunings, (), "adreno-bench.toml") for side in (base, head)]  # type: ignore[list-item]
    with _progress(progress) as watcher:
        name = sides[0].one_device(device, watcher)
        return compare_requests(sides[0], sides[1], name, rules, watcher, minutes=minutes)


def devices() -> list[DeviceEntry]:
    """Return the virtual phone, the OpenCL device of this host, and every phone."""
    return list_devices(cache_root())


def run_request(
    request: Request,
    names: Sequence[str],
    file: RecordFile,
    progress: Progress,
    *,
    index: RecordIndex | None = None,
    allowed: frozenset[Permission] = frozenset(),
    source: DeviceSource | None = None,
) -> Results:
    """Run a request on devices of these names, or of `source`; cases that `index` has settled are not run again.

    Raises what opening the only device raises.
    """
    from harness.measure.runner import missing_plans, settled_by
    from harness.measure.workbench import open_suite

    settled: list[Record] = []

    def missing(plans: Sequence[Plan], origin: Origin) -> list[Plan]:
        records_of_plans = settled_by(plans, origin, index) if index else []
        settled.extend(records_of_plans)
        return missing_plans(plans, records_of_plans)

    with open_suite(request, names, missing, file, progress, allowed=allowed, source=source) as suite:
        done = list(suite.run())
    models = list(dict.fromkeys(record.model for record in (*settled, *done)))
    records = sorted([*settled, *done], key=lambda record: models.index(record.model))
    return Results(tuple(records), tuple(settled), suite.failures)


def judge_sides(base: Sides, head: Sides, rules: Rules, *, gauged: bool = True) -> Verdicts:
    """Compare two sides as they are; unless `gauged`, unchanged builds are findings, too."""
    from harness.judge.compare import compare_sides
    from harness.judge.confirm import settle

    compared = compare_sides(base, head, rules, gauged=gauged)
    return Verdicts(settle(compared, rules, lambda _: PATIENCE), rules, _nothing_common(base, head))


def compare_requests(
    base: Request, head: Request, device: str, rules: Rules, progress: Progress, **how: Any
) -> Verdicts:
    """Measure two requests in turns on one device, with the tool that does; `how` goes to it."""
    place = next(tool.side_by_side for tool in tools() if tool.side_by_side)
    verdicts: Verdicts = load_place(place)(base, head, device, rules, progress, **how)
    return verdicts


@contextmanager
def _progress(wanted: bool) -> Iterator[Progress]:
    """Yield what hears of progress, while Ctrl-C ends the body alone."""
    from harness.judge.report.screen import Screen
    from harness.measure.progress import SilentProgress

    with interruptible():
        if not wanted:
            yield SilentProgress()
            return
        with Screen() as screen:
            yield screen


def _request(
    models: Sequence[Place | OnnxModel],
    paths: Words,
    precisions: Words,
    tunings: Words,
    cases: Words,
    suite: Place,
    *,
    quick: bool = False,
) -> Request:
    from harness.base.model import OnnxModel, models_given
    from harness.measure.workbench import Request

    chosen = [model if isinstance(model, OnnxModel) else models_given([fspath(model)], (), ())[0] for model in models]
    try:
        axes = Axes(_words(paths), tuple(map(Precision, _words(precisions))), tuple(map(Tuning, _words(tunings))))
    except ValueError as error:
        names = [choice.value for choice in (*Precision, *Tuning) if choice is not Tuning.SCHEDULED]
        raise UsageError(f"there is no precision or tuning of this name: {error}", hint=", ".join(names)) from None
    return Request.read(Path(suite), list(_words(cases)) or None, models=chosen, axes=axes, quick=quick)


def _words(words: Words) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _is_model(side: Results | Place | OnnxModel) -> bool:
    from harness.base.model import SUFFIXES, OnnxModel

    return isinstance(side, OnnxModel) or (not isinstance(side, Results) and fspath(side).endswith(SUFFIXES))


def _sides(side: Results | Place | OnnxModel) -> Sides:
    from harness.judge.record_reader import load_sides

    return side.sides if isinstance(side, Results) else load_sides(fspath(side), lambda _: True)  # type: ignore[arg-type]


def _nothing_common(base: Sides, head: Sides) -> str:
    """Return why nothing could be compared; empty if something could."""
    from harness.judge.sides import of_one_model

    before, now = (sorted({key.identity for key in side}) for side in (base, head))
    if set(before) & set(now):
        return ""
    ran = f"nothing was compared: base ran on {', '.join(before)}, head on {', '.join(now)}"
    return "; ".join(filter(None, (ran, of_one_model(before, now))))
