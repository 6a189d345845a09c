"""`adreno-bench run`: build, push, judge, measure, and print the results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.device import Permission
from device_runner.names import load
from device_runner.registry import LOCAL
from device_runner.selection import ALL, select
from harness.base.case import Tuning
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome, exit_code, without_findings
from harness.base.plan import SUSTAINED
from harness.base.tables import counted, size
from harness.base.tool import place_of
from harness.cli import options
from harness.cli.hints import last_words, runnable
from harness.judge.report.part_view import view_of
from harness.judge.report.screen import Screen, out, out_whole
from harness.judge.report.table import json_array, run_tables

if TYPE_CHECKING:
    from harness.measure.records.record import Record, RecordFile
    from harness.measure.workbench import RunResults


@options.grouped
def run(
    what: options.CaseOptions,
    exports: options.RecordExports,
    device: options.DeviceNames = None,
    tracker: options.TrackerAddress = None,
    builders: options.Builders = None,
    records: options.RecordsFile = options.DEFAULT_RECORDS,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Skip cases that the records file has settled. Without --device, use the device of these records.",
        ),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Take three samples per case on an emulated device, and 60 labelled inputs. Nothing compares them.",
        ),
    ] = False,
    sustain: Annotated[
        float | None,
        options.seldom_option(
            metavar="SECONDS",
            min=1,
            max=86400,
            help="Run each case for this many seconds without a pause (600 is usual) and show how heat slows it down.",
        ),
    ] = None,
    repeat: Annotated[
        int,
        options.seldom_option(
            metavar="N", min=1, max=1000, help="Number of inferences to judge, each on its own draw of the inputs."
        ),
    ] = 1,
    allow_usb_power: Annotated[
        bool,
        options.device_option(
            "--allow-usb-power", help="Switch the USB port of a lost phone off and on, with uhubctl."
        ),
    ] = False,
    allow_reboot: Annotated[
        bool, options.device_option("--allow-reboot", help="Reboot a lost phone if nothing else brings it back.")
    ] = False,
    live: Annotated[
        bool,
        options.output_option(
            "--live", help="On a terminal, show the matrix as it fills, and each device's heat and clock."
        ),
    ] = False,
    findings_are_fine: options.FindingsAreFine = False,
    as_json: options.AsJson = False,
) -> None:
    """Compile, judge and time every case of the suite, on one device or several.

    A worker process compiles each case. adreno-bench judges its answer first, and times only right answers. Every
    case ends as one line in the records file. Devices of one identity share its cases.
    """
    from harness.measure.records.index import RecordIndex, skipped_lines
    from harness.measure.records.record import RecordFile
    from harness.measure.workbench import devices_behind, run_request

    if sustain and (quick or resume):
        wrong = "--quick" if quick else "--resume"
        raise UsageError(f"--sustain excludes {wrong}", hint=f"leave {wrong} out")
    file = RecordFile(records)
    file.require_writable()
    screen: Screen = load(place_of("live_screen"))() if live else Screen()
    with screen, RecordIndex(records, screen.say) if resume else nullcontext() as index:
        request = what.request(quick=quick, sustain_s=sustain or 0.0, repeat=repeat, builders=builders)
        screen.expect([case.id for case in request.cases])
        source = devices_behind(tracker) if tracker else None
        words = (
            device or (index.devices if index and not tracker else None) or [ALL if tracker else options.DEFAULT_DEVICE]
        )
        names = (source.names if source else select)(words, request.cache, screen.say)
        for line in skipped_lines(index.skipped if index else ()):
            screen.say(line)
        permissions = {Permission.USB_POWER: allow_usb_power, Permission.REBOOT: allow_reboot}
        allowed = frozenset(permission for permission, granted in permissions.items() if granted)
        if allowed and set(names) == {LOCAL}:
            wrong = "--allow-reboot" if allow_reboot else "--allow-usb-power"
            raise UsageError(f"{wrong} has no effect on the device local", hint=f"it is for phones: leave {wrong} out")
        settled = partial(_settled, file, file.path.stat().st_size if file.path.exists() else 0, len(request.cases))
        with last_words(settled, () if resume or sustain else ("--resume",)):
            results = run_request(request, names, file, screen, index=index, allowed=allowed, source=source)
    code = _exit_code(results, findings_are_fine)
    exports.write_records(results.records, code)
    if as_json:
        out_whole(json_array(results.records))
    else:
        drawn = (view_of(SUSTAINED).table if sustain else run_tables)(results.records)
        out(runnable(drawn, records, what.words))
        lost = [f"{name} was lost: {why}" for name, why in results.lost.items()]
        ids = ", ".join(record.case for record in results.settled)
        again = [f"settled before and not run again: {ids}"] if ids else []
        out("\n".join([*_summary(results.new, records), *again, *lost]))
    raise typer.Exit(code)


def _settled(file: RecordFile, before: int, cases: int) -> str:
    """Say how far a run came whose records begin at byte `before`."""
    settled = sum(record.outcome.conclusive for record in file.load(before).records)
    return f"{settled} of {cases} cases are settled; {{command}} continues"


def _summary(done: Sequence[Record], records: Path) -> list[str]:
    """Return what a person should know about the numbers above."""
    from harness.measure.work import schedule_summary

    built = len({record.artifact for record in done if record.reused is False})
    reused = len({record.artifact for record in done if record.reused})
    sent = [record.sent_bytes for record in done if record.sent_bytes]
    pushed = f"{len(sent)} file{'s' * (len(sent) > 1)}, {size(sum(sent))}" if sent else "nothing"
    lines = ["", f"built {built or 'nothing'}, took {reused} from the store; pushed {pushed}; records are in {records}"]
    changed = {record.model: record.model_changes for record in done if record.model_changes}
    lines += [f"{model} was prepared: {'; '.join(changes)}" for model, changes in changed.items()]
    lines += [f"{record.case}: {proof}" for record in done if (proof := _tuned(record))]
    lines += [f"{record.case}: {schedule_summary(record.schedules)}" for record in done if record.schedules]
    lines += [f"{record.case}: {_recovered(record)}" for record in done if record.recovery]
    lines += _workarounds(done)
    if any(SUSTAINED in record.parts for record in done):
        drawn = "`adreno-bench sustained --plot sustained.html` draws it"
        lines.append(f"sustained runs are never compared with others; {drawn}")
    if any(record.quick for record in done):
        lines.append("a quick look: these times are never compared with others; leave --quick out to measure")
    emulated = dict.fromkeys(part for record in done for part in record.emulated)
    if emulated:
        names = ", ".join(emulated)
        lines.append(f"not the real thing on this device: {names}; do not compare its times with a phone's")
    return lines


def _workarounds(done: Sequence[Record]) -> list[str]:
    """Say how many workarounds were active, and how many of them changed something, as far as that is known."""
    active = {quirk for record in done for quirk in record.quirks}
    effective = {quirk for record in done for quirk in record.effective_quirks or ()}
    is_known = any(record.effective_quirks is not None for record in done)
    of_them = f"; {len(effective)} changed what was built" if is_known else ""
    explained = "`adreno-bench quirks` explains them, each record names its own"
    some = counted(len(active), "workaround for upstream defects was", "workarounds for upstream defects were")
    return [f"{some} active{of_them} ({explained})"] if active else []


def _recovered(record: Record) -> str:
    """Return what was done for a device that was lost while this case ran."""
    steps = ", ".join(step.rung for step in record.recovery)
    return f"the device was lost ({record.recovery[0].because}); tried: {steps}"


def _tuned(record: Record) -> str:
    """Return what a tuned run's own evidence says."""
    if not Tuning(record.tuning).cached or not record.proofs:
        return ""
    if "clml_hits" in record.proofs:
        hits, misses = len(record.proofs["clml_hits"]), len(record.proofs["clml_misses"])
        return f"CLML found tuning for {hits} of its {hits + misses} parts"
    counts = record.proofs
    return f"{counts['programs_from_binary']} programs from binaries, {counts['programs_from_source']} from source"


def _exit_code(results: RunResults, findings_are_fine: bool) -> ExitCode:
    """Return the exit code of a run; right answers that prove nothing do not count."""
    proving = (record for record in results.records if not (record.outcome is Outcome.OK and record.vacuous))
    outcomes = [record.outcome for record in proving] + [Outcome.DEVICE_LOST] * len(results.lost)
    if findings_are_fine and outcomes:
        outcomes = without_findings(outcomes) or [Outcome.OK]
    return exit_code(outcomes)
