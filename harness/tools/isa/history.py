"""The machine code of each case at each commit, by an open compiler for Adreno GPUs. No device is opened.

As with what is measured, the first of a case's benchmarks compiles, in one of asv's processes, and leaves the record
where the others read it. The records of a commit lie beside asv's own file, with the ending `.isa`. Counts are exact,
so any difference between two commits is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from device_runner.files import write_whole
from device_runner.store import cache_root
from harness.base.case import Case, Precision
from harness.base.suite import Suite
from harness.base.tables import counted
from harness.judge.history import asv_process
from harness.judge.history.section import HistorySection, HistoryView, Note
from harness.judge.report.words import HASH_LENGTH
from harness.judge.verdict import Verdict
from harness.measure.context import new_id
from harness.measure.progress import SilentProgress
from harness.measure.records.record import NO_DEVICE, Record, RecordFile, parse
from harness.measure.workbench import Request
from harness.tools.isa.code import MachineCode, codes_in
from harness.tools.isa.gate import CodeVerdict, judge_code
from harness.tools.isa.network import codes_of, networks
from harness.tools.isa.record import build_only, code_record
from harness.tools.isa.toolchain import MesaToolchain, find, need

ENDING = ".isa"
DEFAULT_GPUS = "a630,a740,a750"
GPUS_VARIABLE = "ADRENO_BENCH_ISA_GPUS"
"""Environment: Adreno GPUs that kernels are compiled for, between commas, if not these."""
RECENT_COMMITS = 12
"""Number of commits for which a change is reported beside the newest state, as for a latency."""
_MOVED = (Verdict.HEAVIER, Verdict.LIGHTER, Verdict.BROKEN, Verdict.FIXED)


Points = Sequence[tuple[str, Sequence[MachineCode]]]
"""Commits with what was compiled at each."""


def section(view: HistoryView) -> HistorySection:
    """Return the notes of a history on machine code."""
    newest = list(_newest(view.results, view.history.commits))
    compilers = ", ".join(sorted({code.compiler for _, _, code, _ in newest}))
    closing = f"Machine code of {len(newest)} cases and GPUs by {compilers}: counts, no times." if newest else ""
    return HistorySection("machine_code", tuple(_note(*series) for series in newest), closing)


def _newest(results: Path, commits: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, MachineCode, Points]]:
    """Yield machines and cases, with the newest code for each GPU and all before it.

    Only numbers of the compiler's version of the newest commit count: another version is another series.
    """
    for machine, revisions in commits.items():
        history: dict[str, list[tuple[str, Sequence[MachineCode]]]] = {}
        for commit in revisions:
            for file in sorted((results / machine).glob(f"{commit[:8]}-*{ENDING}")):
                last = {record.case: codes for record in RecordFile(file).load().records if (codes := codes_in(record))}
                for case, codes in last.items():
                    history.setdefault(case, []).append((commit, codes))
        for case, points in history.items():
            yield from ((machine, case, code, points) for code in points[-1][1])


def _note(machine: str, case: str, code: MachineCode, points: Points) -> Note:
    """Describe the machine code of a case for one GPU: `a740: 111,430 M instructions, 8 waves`."""
    moved, before, after = _last_change(case, code, points)
    instructions, waves = code.per_inference("instructions_run"), code.fewest_waves
    parts = ["? instructions" if instructions is None else f"{instructions / 1e6:,.0f} M instructions"]
    parts += [] if waves is None else [f"{waves} waves"]
    parts += [f"{counted(len(code.refused), 'kernel')} refused"] if code.refused else []
    ends = {"since": before, "at": after}
    return Note(
        machine,
        case,
        f"{code.gpu}: {', '.join(parts)}",
        f"{code.compiler}: weighted instructions of an inference, no time",
        f"{case} for {code.gpu}",
        moved.verdict if moved else None,
        f"{moved.why}; between {before[:HASH_LENGTH]} and {after[:HASH_LENGTH]}" if moved else "",
        {
            "machine": machine,
            "case": case,
            "gpu": code.gpu,
            "compiler": code.compiler,
            "commit": points[-1][0],
            "instructions_run_per_inference": instructions,
            "fewest_waves": waves,
            "moved": {"verdict": moved.verdict.value, "why": moved.why, **ends} if moved else None,
        },
    )


def _last_change(case: str, code: MachineCode, points: Points) -> tuple[CodeVerdict | None, str, str]:
    """Return the last change, if there was one lately, with the measured commits before and after it."""
    here = [(at, code_at) for at, codes in points for code_at in codes if code_at.series == code.series]
    pairs = list(pairwise(here))[-RECENT_COMMITS:]
    for (before, old), (after, new) in reversed(pairs):
        verdict = judge_code(case, [old], new)
        if verdict.verdict in _MOVED:
            return verdict, before, after
    return None, "", ""


def gpus() -> list[str]:
    """Return the GPUs that are compiled for."""
    return (os.environ.get(GPUS_VARIABLE) or DEFAULT_GPUS).split(",")


def compiler() -> str:
    """Return the compiler's version, which is part of a series' name; empty where it was not set up."""
    toolchain = find(cache_root())
    return toolchain.identity if toolchain else ""


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
        return parse(file.read_bytes())
    record = _compile(Request(suite, [case], cache_root()), need(cache_root()))
    write_whole(file, record.line())
    if records := asv_process.record_file(ENDING):
        records.append(record)
    return record


def _compile(request: Request, toolchain: MesaToolchain) -> Record:
    (built,) = build_only(request, NO_DEVICE, SilentProgress())
    compiled = networks(toolchain, {built.case.id: built.artifact} if built.artifact else {}, gpus())
    codes, run = codes_of(compiled), os.environ.get(asv_process.COMMIT) or new_id()
    return code_record(built, *codes, toolchain.identity, as_shipped=False, run=run)
