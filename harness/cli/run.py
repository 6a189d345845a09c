"""`adreno-bench run`: build, push, judge, measure, and say what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.case import Tuning
from harness.cli.options import (
    DEFAULT_RECORDS,
    DEFAULT_SUITE,
    AsJson,
    AsShipped,
    CaseGlob,
    DeviceName,
    RecordsFile,
    SuiteFile,
)
from harness.cli.table import json_array, results_table, size
from harness.outcome import ExitCode, Outcome, Owner, exit_code

if TYPE_CHECKING:
    from harness.record import Record


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)


def run(
    suite: SuiteFile = DEFAULT_SUITE,
    case: CaseGlob = None,
    device: DeviceName = "virtual",
    records: RecordsFile = DEFAULT_RECORDS,
    as_shipped: AsShipped = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip cases that the records file has settled for this build and device.")
    ] = False,
    findings_are_fine: Annotated[
        bool,
        typer.Option("--findings-are-fine", help="Exit 0 if the rig worked, whatever it found about the compiler."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the suite on a device and end with a table.

    Each case is compiled in a worker process, pushed by content hash, judged against LLVM on the CPU, and only if it is
    right, timed. Every case ends as one line in the records file, whatever happens to it.
    """
    from harness.build import Builder
    from harness.cli.screen import Screen, out
    from harness.cli.work import prepared
    from harness.record import RecordFile
    from harness.runner import Run, missing, run_suite
    from harness.tuning import TuningStore

    file = RecordFile(records)
    with (
        Screen() as screen,
        prepared(suite, case, device, as_shipped=as_shipped, say=screen.say, pushing=screen.pushing) as work,
        Builder(work.cache, work.suite.limits, watch=lambda job, *rest: screen.build(job.title, *rest)) as builder,
    ):
        this_run = Run(work.device, TuningStore(work.cache), as_shipped)
        kept = file.load() if resume else None
        for skipped in kept.skipped if kept else ():
            screen.say(f"skipped {skipped}")
        plans = missing(work.plans, this_run, kept.records) if kept else work.plans
        done = list(run_suite(plans, this_run, builder, file, screen))
        left_out = len(work.plans) - len(plans)
        if left_out:
            screen.say(f"{left_out} cases were settled before and not run again")
    if as_json:
        out(json_array(done))
    else:
        out(results_table(done))
        out("\n".join(_summary(done, records)))
    raise typer.Exit(_verdict(done, left_out, findings_are_fine))


def _summary(done: Sequence[Record], records: Path) -> list[str]:
    """What a person should know about the numbers above."""
    built = len({record.artifact for record in done if record.reused is False})
    reused = len({record.artifact for record in done if record.reused})
    sent = [record.sent_bytes for record in done if record.sent_bytes]
    lines = [
        "",
        f"built {built or 'nothing'}, took {reused} from the store; "
        f"pushed {f'{len(sent)} files, {size(sum(sent))}' if sent else 'nothing'}; records are in {records}",
    ]
    lines += [f"{record.case}: {told}" for record in done if (told := _tuned(record))]
    quirks = sorted({quirk for record in done for quirk in record.quirks})
    if quirks:
        explained = "`adreno-bench quirks` explains them, each record names its own"
        lines.append(f"{len(quirks)} upstream defects were worked round ({explained})")
    emulated = dict.fromkeys(part for record in done for part in record.emulated)
    if emulated:
        names = ", ".join(emulated)
        lines.append(f"not the real thing on this device: {names}; do not compare its times with a phone's")
    return lines


def _tuned(record: Record) -> str:
    """What a tuned run's own evidence says."""
    if record.tuning != Tuning.TUNED.value or not record.proofs:
        return ""
    if "clml_hits" in record.proofs:
        hits, misses = len(record.proofs["clml_hits"]), len(record.proofs["clml_misses"])
        return f"CLML found tuning for {hits} of its {hits + misses} parts"
    counts = record.proofs
    return f"{counts['programs_from_binary']} programs from binaries, {counts['programs_from_source']} from source"


def _verdict(done: Sequence[Record], left_out: int, findings_are_fine: bool) -> ExitCode:
    outcomes = [record.outcome for record in done]
    if findings_are_fine:
        findings = (Owner.COMPILER, Owner.PATH)
        outcomes = [outcome for outcome in outcomes if outcome.owner not in findings] or [Outcome.OK]
    return exit_code(outcomes or [Outcome.OK] * bool(left_out))
