"""`adreno-bench gate`: is it as good as its baselines?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
    DEFAULT_BASELINES,
    DEFAULT_RECORDS,
    AsJson,
    BaselinesFolder,
    CaseOptions,
    ConfirmOptions,
    DeviceOfRecords,
    RecordsToAddTo,
    grouped,
)

if TYPE_CHECKING:
    from harness.judge.comparison import Result
    from harness.judge.gate import Gate


@grouped
def gate(
    what: CaseOptions,
    confirming: ConfirmOptions,
    device: DeviceOfRecords = None,
    records: RecordsToAddTo = None,
    given: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Judge these records and run nothing.")
    ] = None,
    baselines: BaselinesFolder = DEFAULT_BASELINES,
    as_json: AsJson = False,
) -> None:
    """Run the suite and compare it with its baselines: exit 3 if a case is wrong or broken, 1 if it is slower.

    A latency that looks changed is measured again, in fresh sessions, in turns with the baseline's build, before it is
    called slower; exit 6 if it looks slower and that could not be decided. A baseline of another identity is never
    compared; cases without one are named. Of a case that was calibrated, a change smaller than its noise profile
    supports is refused.
    """
    from harness.cli import verdicts
    from harness.cli.record_filter import read_sides, wanted
    from harness.cli.screen import out, out_json
    from harness.judge.comparison import exit_code
    from harness.judge.gate import Gate

    held_to = Gate.read(
        baselines.absolute(),
        lambda id_: wanted(id_, what.case),
        confirming.rules,
        confirming.most_sessions,
        as_shipped=what.as_shipped,
    )
    if given:
        found = read_sides(given, what.case, device)
        result = held_to.judged(found, lambda _: "a gate without --from measures again")
    else:
        result = _run(what, held_to, device, records)
    if as_json:
        out_json(verdicts.plain_result(result, [], []))
    else:
        texts = verdicts.verdict_table(result.cases), verdicts.summary(result.fitness, [], []), _remark(result, held_to)
        out("\n\n".join(text for text in (*texts, verdicts.undecided(result)) if text))
    raise typer.Exit(exit_code(result))


def _run(what: CaseOptions, held_to: Gate, device: str | None, records: Path | None) -> Result:
    from harness.cli.record_filter import device_of_records
    from harness.cli.screen import Screen
    from harness.judge.remeasure import Remeasure
    from harness.judge.sides import sides_of
    from harness.run.record import RecordFile
    from harness.run.runner import run_suite
    from harness.workbench import open_workbench

    file, request = RecordFile(records or DEFAULT_RECORDS), what.request()
    file.require_writable()
    with Screen() as screen:
        name = device_of_records(request, device, file.path, screen, given=records is not None)
        with open_workbench(request, name, screen) as bench:
            done = list(run_suite(bench.plans, bench.run, bench.builder, file, screen))
            again = Remeasure(bench.plans, held_to.baselines, bench.run, bench.builder, request.cache, file, screen)
            return held_to.judged(sides_of(done), again.measurer)


def _remark(result: Result, held_to: Gate) -> str:
    """What was not compared, and why."""
    from harness.judge.handsets import of_one_model
    from harness.judge.verdict import Verdict

    new = [str(comparison.key) for comparison in result.cases if comparison.verdict is Verdict.NEW]
    lent = {str(c.key): c.base.key.identity for c in result.cases if c.base and c.base.key.identity != c.key.identity}
    here = {comparison.key.identity for comparison in result.cases} | set(lent.values())
    others = sorted({one.identity_key for one in held_to.baselines} - here)
    lines = [f"no baseline: {', '.join(new)} (`adreno-bench bless` makes one)"] if new else []
    lines += [f"held to {other}, which calibration found alike: {case}" for case, other in lent.items()]
    handsets = of_one_model(here, others) if others else ""
    lines += [f"baselines of another identity are never compared: {', '.join(others)}"] if others else []
    lines += [handsets] if handsets else []
    timed = [comparison.key for comparison in result.cases if comparison.base and comparison.base.sessions]
    unknown = [str(key) for key in timed if key not in held_to.profiles and key not in held_to.of_models]
    hint = "`adreno-bench calibrate` learns it, and then fewer sessions decide"
    lines += [f"noise not known: {', '.join(unknown)} ({hint})"] if unknown else []
    emulated = dict.fromkeys(part for c in result.cases if c.base and c.base.sessions for part in c.base.emulated)
    lines += [f"not the real thing: {', '.join(emulated)}; these times say nothing about a phone"] if emulated else []
    return "\n".join(lines if result.cases else ["nothing was measured", *lines])
