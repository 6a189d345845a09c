"""`adreno-bench gate`: is it as good as its baselines?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
    DEFAULT_BASELINES,
    DEFAULT_RECORDS,
    DEFAULT_SUITE,
    AsJson,
    AsShipped,
    BaselinesFolder,
    CaseGlob,
    DeviceName,
    FloorMs,
    RecordsFile,
    Relevant,
    SuiteFile,
    WithQuirks,
)

if TYPE_CHECKING:
    from harness.judge.baseline import Baseline
    from harness.judge.comparison import Comparison, Result
    from harness.judge.confirm import Measure
    from harness.judge.noise_profile import NoiseProfile
    from harness.judge.sides import SeriesKey
    from harness.judge.stats.pair import Rules
    from harness.run.record import Record


def gate(
    suite: SuiteFile = DEFAULT_SUITE,
    case: CaseGlob = None,
    device: DeviceName = "virtual",
    records: RecordsFile = DEFAULT_RECORDS,
    given: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Judge these records; run and measure nothing.")
    ] = None,
    baselines: BaselinesFolder = DEFAULT_BASELINES,
    as_shipped: AsShipped = False,
    with_quirks: WithQuirks = None,
    relevant: Relevant = 3.0,
    floor_ms: FloorMs = 0.05,
    most_sessions: Annotated[
        int, typer.Option("--most-sessions", min=4, help="Fresh sessions that confirming one suspect may cost.")
    ] = 16,
    as_json: AsJson = False,
) -> None:
    """Run the suite and compare it with its baselines: exit 3 if a case is wrong or broken, 1 if it is slower.

    A latency that looks changed is measured again, in fresh sessions, in turns with the baseline's build, before it is
    called slower. A baseline of another identity is never compared; cases without one are named. Of a case that was
    calibrated, a change smaller than its noise profile supports is refused.
    """
    from harness.cli import verdicts
    from harness.cli.record_filter import read_records, wanted
    from harness.cli.screen import out
    from harness.judge import baseline
    from harness.judge.comparison import exit_code
    from harness.judge.stats.pair import Rules
    from harness.judge.supported import profiles_of

    rules = Rules(relevant=relevant / 100, floor_ms=floor_ms)
    known = [one for one in baseline.load(baselines.absolute()) if wanted(one.case, case)]
    profiles = profiles_of(known, baselines.absolute())
    if given:
        result = _judged(read_records(given, case), known, profiles, as_shipped, rules)
    else:
        result = _run(suite, case, device, records, known, profiles, as_shipped, with_quirks, rules, most_sessions)
    if as_json:
        out(verdicts.as_json(result, [], []))
    else:
        remark = _remark(result, known, profiles)
        texts = (verdicts.verdict_table(result.cases), verdicts.summary(result.fitness, [], []), remark)
        out("\n\n".join(text for text in texts if text))
    raise typer.Exit(exit_code(result))


def _run(
    suite: Path,
    case: list[str] | None,
    device: str,
    records: Path,
    known: Sequence[Baseline],
    profiles: Mapping[SeriesKey, NoiseProfile],
    as_shipped: bool,
    with_quirks: list[str] | None,
    rules: Rules,
    most_sessions: int,
) -> Result:
    from harness.cli.screen import Screen
    from harness.judge.confirm import confirmation
    from harness.judge.remeasure import Remeasure
    from harness.judge.supported import require_supported
    from harness.quirks import policy_of
    from harness.run.record import RecordFile
    from harness.run.runner import run_suite
    from harness.workbench import Request, open_workbench

    file = RecordFile(records)
    request = Request.read(suite, case, policy_of(as_shipped, with_quirks))
    with Screen() as screen, open_workbench(request, request.one_device(device, screen), screen) as bench:
        here = {key: one for key, one in profiles.items() if key.identity == bench.device.identity.key}
        require_supported(here, confirmation(rules, most_sessions, len(bench.plans)))
        done = list(run_suite(bench.plans, bench.run, bench.builder, file, screen))
        again = Remeasure(bench.plans, known, bench.run, bench.builder, request.cache, file, screen)
        return _judged(done, known, profiles, as_shipped, rules, again.measurer, most_sessions)


def _judged(
    done: Sequence[Record],
    known: Sequence[Baseline],
    profiles: Mapping[SeriesKey, NoiseProfile],
    as_shipped: bool,
    rules: Rules,
    measurer: Callable[[Comparison], Measure | str] | None = None,
    most_sessions: int = 0,
) -> Result:
    """Compare with the baselines of the identities that these records are of, and with no other."""
    from dataclasses import replace

    from harness.judge import baseline
    from harness.judge.compare import compare_sides
    from harness.judge.confirm import judge
    from harness.judge.sides import sides_of

    sides = sides_of(record for record in done if record.as_shipped is as_shipped).values()
    heads = {key: replace(side, key=key) for side in sides for key in [side.key._replace(as_shipped=False)]}
    bases = baseline.sides(one for one in known if one.identity_key in {key.identity for key in heads})
    noises = {key: one.estimate.noise for key, one in profiles.items()}
    return judge(compare_sides(bases, heads, rules, noises=noises), rules, measurer, most_sessions, noises)


def _remark(result: Result, known: Sequence[Baseline], profiles: Mapping[SeriesKey, NoiseProfile]) -> str:
    """What was not compared, and why."""
    from harness.judge.verdict import Verdict

    new = [str(comparison.key) for comparison in result.cases if comparison.verdict is Verdict.NEW]
    here = {comparison.key.identity for comparison in result.cases}
    others = sorted({one.identity_key for one in known} - here)
    lines = [f"no baseline: {', '.join(new)} (`adreno-bench bless` makes one)"] if new else []
    lines += [f"baselines of another identity are never compared: {', '.join(others)}"] if others else []
    timed = [comparison.key for comparison in result.cases if comparison.base and comparison.base.sessions]
    unknown = [str(key) for key in timed if key not in profiles]
    hint = "`adreno-bench calibrate` learns it, and then fewer sessions decide"
    lines += [f"noise not known: {', '.join(unknown)} ({hint})"] if unknown else []
    emulated = dict.fromkeys(part for c in result.cases if c.base and c.base.sessions for part in c.base.emulated)
    lines += [f"not the real thing: {', '.join(emulated)}; these times say nothing of a phone"] if emulated else []
    return "\n".join(lines if result.cases else ["nothing was measured", *lines])
