"""The machine code of each case at each commit, by an open compiler for Adreno GPUs. No device is opened.

As with what is measured, the first of a case's benchmarks compiles, in one of asv's processes, and leaves the record
where the others read it. The records of a commit lie beside asv's own file, with the ending `.isa`. Counts are exact,
so any difference between two commits is one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from device_runner.files import write_whole
from device_runner.store import cache_root
from harness.base.case import Case, Precision
from harness.base.suite import Suite
from harness.judge.history import asv_process
from harness.judge.verdict import Verdict
from harness.measure.context import new_id
from harness.measure.progress import SilentProgress
from harness.measure.records.record import NO_DEVICE, Record, RecordFile
from harness.measure.workbench import Request, build_only
from harness.tools.isa.code import MachineCode
from harness.tools.isa.gate import CodeVerdict, judge_code
from harness.tools.isa.network import codes_of, networks
from harness.tools.isa.record import code_record
from harness.tools.isa.toolchain import MesaToolchain, find, need

ENDING = ".isa"
DEFAULT_GPUS = "a630,a740,a750"
RECENT_COMMITS = 12
"""Number of commits for which a change is reported beside the newest state, as for a latency."""
_MOVED = (Verdict.HEAVIER, Verdict.LIGHTER, Verdict.BROKEN, Verdict.FIXED)


@dataclass(frozen=True)
class CodeState:
    """One case for one GPU, by one version of the compiler, at the newest commit that has it."""

    case: str
    code: MachineCode
    commit: str
    moved: CodeVerdict | None = None
    """The last change, if there was one lately."""
    before: str = ""
    """The measured commit before that change."""
    after: str = ""


Codes = Mapping[tuple[str, str], Sequence[CodeState]]
"""Machine code by machine and case."""
Points = Sequence[tuple[str, Sequence[MachineCode]]]
"""Commits with what was compiled at each."""


def load_codes(results: Path, commits: Mapping[str, Sequence[str]]) -> Codes:
    """Return the newest state of each case for each GPU; `commits` are those of each machine, in order.

    Only numbers of the compiler's version of the newest commit are told: another version is another series.
    """
    found: dict[tuple[str, str], list[CodeState]] = {}
    for machine, known in commits.items():
        history: dict[str, list[tuple[str, Sequence[MachineCode]]]] = {}
        for commit in known:
            for file in sorted((results / machine).glob(f"{commit[:8]}-*{ENDING}")):
                last = {record.case: record.isa for record in RecordFile(file).load().records if record.isa}
                for case, codes in last.items():
                    history.setdefault(case, []).append((commit, codes))
        found |= {
            (machine, case): [_state(case, code, points) for code in points[-1][1]] for case, points in history.items()
        }
    return found


def _state(case: str, code: MachineCode, points: Points) -> CodeState:
    commit = points[-1][0]
    here = [(at, one) for at, codes in points for one in codes if one.series == code.series]
    pairs = list(pairwise(here))[-RECENT_COMMITS:]
    for (before, old), (after, new) in reversed(pairs):
        verdict = judge_code(case, [old], new)
        if verdict.verdict in _MOVED:
            return CodeState(case, code, commit, verdict, before, after)
    return CodeState(case, code, commit)


def gpus() -> list[str]:
    """Return the GPUs that are compiled for."""
    return (os.environ.get(asv_process.ISA_GPUS) or DEFAULT_GPUS).split(",")


def compiler() -> str:
    """Return the compiler's version, which is part of a series' name; empty where it was not set up."""
    found = find(cache_root())
    return found.identity if found else ""


def case_of(suite: Suite, model: str, path: str, precision: str) -> Case | None:
    """Return the untuned case; None if the suite has none."""
    case = Case(model, path, Precision(precision))
    return case if case in suite.cases else None


def code_record_of(suite: Suite, case: Case, shared: Path) -> Record:
    """Return the record of a case, upstream defects worked around.

    Compiles unless `shared`, asv's folder for this commit, has it. Raises NoToolchain.
    """
    file = shared / f"{case.id}{ENDING}.json"
    if file.exists():
        return Record.model_validate_json(file.read_bytes())
    record = _compile(Request(suite, [case], cache_root()), need(cache_root()))
    write_whole(file, record.line())
    if kept := asv_process.record_file(ENDING):
        kept.append(record)
    return record


def _compile(request: Request, toolchain: MesaToolchain) -> Record:
    (built,) = build_only(request, NO_DEVICE, SilentProgress())
    made = networks(toolchain, {built.case.id: built.artifact} if built.artifact else {}, gpus())
    codes, run = codes_of(made, toolchain.identity), os.environ.get(asv_process.COMMIT) or new_id()
    return code_record(built, *codes, toolchain.identity, as_shipped=False, run=run)
