"""One case in one of asv's processes.

asv starts a process for each benchmark of each case. All of them want the same measurement, so the first takes it and
leaves the record in a folder that they share; a case is built, pushed and set up once, and its latency, accuracy and
artifact are those of one run. Settings come from `history run`, as
environment variables.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter

from device_runner.device import Device, Identity
from device_runner.failures import DeviceLost, Failure, Unsupported
from device_runner.files import write_whole
from device_runner.lifetime import die_with_parent
from device_runner.names import load
from device_runner.registry import tell
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.plan import unsupported
from harness.base.request import AS_SHIPPED, QUIRK_STATES, QuirkPolicy
from harness.base.suite import Suite, load_suite
from harness.base.tool import tools
from harness.measure.context import Origin
from harness.measure.probes.base import Probe
from harness.measure.progress import Progress, ProgressTee, SilentProgress
from harness.measure.recording import Recording
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record, RecordFile, parse
from harness.measure.runner import run_suite
from harness.measure.work import Work
from harness.measure.workbench import Request, open_workbench

DEVICE = "ADRENO_BENCH_DEVICE"
"""What to measure on, as after `--device`. The virtual device if it is not set."""

SUITE = "ADRENO_BENCH_SUITE"
"""Absolute path of the suite file."""

RECORDS = "ADRENO_BENCH_RECORDS"
"""Folder in which records are kept beside asv's results. Without it they live as long as asv's run."""

IDENTITY = "ADRENO_BENCH_IDENTITY"
"""The identity that the results are filed under, as JSON. Another one that answers is not measured."""

REUSE = "ADRENO_BENCH_REUSE"
"""Environment variable. If set, a kept record that settles a case replaces a measurement."""

COMMIT, ENVIRONMENT = "ASV_COMMIT", "ASV_ENV_NAME"
"""asv's own environment variables: the commit, and the name of its environment."""

QUIRKS = QUIRK_STATES
"""By the name that `benchmarks/asv_suite` asks for at every commit."""
_IDENTITY = TypeAdapter(Identity)


class CaseWatcher(Protocol):
    """A tool's measurement of each case of a history, in its session and after its samples."""

    def begin(self, device: Device, cache: Path, say: Callable[[str], None]) -> None:
        """Prepare on the device of a history, before its first commit."""

    def probe(self, work: Work) -> Probe:
        """Return the probe of a case."""

    def keep(self, record: Record, origin: Origin, cache: Path, records: Path) -> None:
        """Keep the probe's result for the record's case beside the file of records."""


def case_watchers() -> list[CaseWatcher]:
    """Make a watcher of each kind that tools add."""
    return [load(place)() for tool in tools() for place in tool.watchers]


def suite(default: Path) -> Suite:
    """Return the suite that is measured. Raises UsageError."""
    return load_suite(Path(os.environ.get(SUITE) or default))


def record_of(suite: Suite, case_id: str, quirks: str, shared: Path) -> Record:
    """Return the record of a case. Measures it unless `shared`, asv's folder for this commit, has it."""
    file = shared / f"{case_id}-{quirks}.json"
    if file.exists():
        return parse(file.read_bytes())
    request = Request(suite, [Case.parse(case_id)], cache_root(), QuirkPolicy(quirks == AS_SHIPPED))
    record = _load(request) or _measure(request)
    write_whole(file, record.line())
    return record


def _load(request: Request) -> Record | None:
    """Return the newest kept record of the case at this commit, if measuring again would tell nothing new."""
    file = record_file()
    if not file or not os.environ.get(REUSE):
        return None
    case, as_shipped = request.cases[0].id, request.quirks.as_shipped
    with RecordIndex(file.path) as index:  # a process asks for each case, of a file that has those of all
        of_case = index.every(lambda id_: id_ == case)
    same = [r for r in of_case if r.as_shipped is as_shipped and not r.quick and not r.standalone]
    return same[-1] if same and same[-1].outcome.conclusive else None


def end_with_asv() -> None:
    """Clean up when asv ends this process at its own deadline, and when asv itself is killed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    die_with_parent(signal.SIGTERM)


def _measure(request: Request) -> Record:
    end_with_asv()
    name = os.environ.get(DEVICE) or "virtual"
    watchers = case_watchers()
    try:
        if (identity := _expected()) and (why := unsupported(request.cases[0], identity)):
            raise Unsupported(why)  # the device need not be opened
        with open_workbench(request, name, _progress(request, name)) as bench:
            _require_expected(bench.device)
            run = replace(bench.run, further_probes=lambda work: [watcher.probe(work) for watcher in watchers])
            (record,) = run_suite(bench.plans, run, bench.builder, progress=_progress(request, bench.device.name))
    except Failure as failure:
        watchers, record = [], _without_device(request, name, failure)
    if file := record_file():
        file.append(record)
        for watcher in watchers:
            watcher.keep(record, run.origin, request.cache, file.path)
    return record


def _progress(request: Request, device: str) -> Progress:
    """Tell those who watch the device, as asv swallows what is printed here; `history run` prints it in a silence."""
    return ProgressTee(SilentProgress(), lambda case, step: tell(device, request.cache, case, step))


def _expected() -> Identity | None:
    text = os.environ.get(IDENTITY)
    return _IDENTITY.validate_json(text) if text else None


def _require_expected(device: Device) -> None:
    """Raise DeviceLost if it is not the device any more under which the results are filed."""
    expected, identity = _expected(), device.identity
    if expected and expected.key != identity.key:
        raise DeviceLost(
            f"{device.name} is {identity.key} now and was {expected.key} when this run began",
            hint="run again: the new identity starts a new series",
        )


def identity_to(identity: Identity) -> str:
    """Return an identity as JSON, for `IDENTITY`."""
    return _IDENTITY.dump_json(identity).decode()


def _without_device(request: Request, name: str, failure: Failure) -> Record:
    """Return the record of a case for which no device could be had."""
    identity = _expected() or Identity(kind="unknown", serial=name)
    origin = Origin(name, identity, request.quirks.as_shipped, os.environ.get(COMMIT, ""))
    with Recording(request.cases[0], origin) as recording:
        raise failure
    return recording.record


def record_file(ending: str = ".jsonl") -> RecordFile | None:
    """Return our file beside asv's of this commit and environment; None if asv does not name these."""
    folder, commit, name = (os.environ.get(key) for key in (RECORDS, COMMIT, ENVIRONMENT))
    return RecordFile(Path(folder) / f"{commit[:8]}-{name}{ending}") if folder and commit and name else None
