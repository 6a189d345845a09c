"""What an open compiler makes of a case for Adreno GPUs, in one of asv's processes. No device is opened.

As with what is measured, the first of a case's benchmarks compiles and leaves the record where the others read it. The
records of a commit lie beside asv's own file, with the ending `.isa`.
"""

from __future__ import annotations

import os
from pathlib import Path

from device_runner.files import write_whole
from device_runner.store import cache_root
from harness.cases.case import Case, Precision
from harness.cases.suite import Suite
from harness.history import environment
from harness.isa.network import networks
from harness.isa.toolchain import Toolchain, find, need
from harness.run.compiled_record import code_record
from harness.run.context import new_id
from harness.run.progress import Silent
from harness.run.record import NO_DEVICE, Record, RecordFile
from harness.workbench import Request, build_only

ENDING = ".isa"
DEFAULT_GPUS = "a630,a740,a750"


def gpus() -> list[str]:
    """The GPUs that are compiled for."""
    return (os.environ.get(environment.ISA_GPUS) or DEFAULT_GPUS).split(",")


def compiler() -> str:
    """The compiler's version, which is part of a series' name; empty where it was not set up."""
    found = find(cache_root())
    return found.identity if found else ""


def case_of(suite: Suite, model: str, path: str, precision: str) -> Case | None:
    """The untuned case; None if the suite has none."""
    case = Case(model, path, Precision(precision))
    return case if case in suite.cases else None


def code_record_of(suite: Suite, case: Case, shared: Path) -> Record:
    """The record of a case, upstream defects worked around.

    Compiles unless `shared`, asv's folder for this commit, has it. Raises NoToolchain.
    """
    file = shared / f"{case.id}{ENDING}.json"
    if file.exists():
        return Record.model_validate_json(file.read_bytes())
    record = _compiled(Request(suite, [case], cache_root()), need(cache_root()))
    write_whole(file, record.line())
    if kept := _records():
        kept.append(record)
    return record


def _compiled(request: Request, toolchain: Toolchain) -> Record:
    (built,) = build_only(request, NO_DEVICE, Silent())
    made = networks(toolchain, {built.case.id: built.artifact} if built.artifact else {}, gpus())
    return code_record(built, made, toolchain.identity, as_shipped=False, run=os.environ.get("ASV_COMMIT") or new_id())


def _records() -> RecordFile | None:
    """The file beside asv's own of this commit and environment; none if asv does not say which these are."""
    folder, commit, name = (os.environ.get(key) for key in (environment.RECORDS, "ASV_COMMIT", "ASV_ENV_NAME"))
    return RecordFile(Path(folder) / f"{commit[:8]}-{name}{ENDING}") if folder and commit and name else None
