"""`adreno-bench build`: compile the suite without running it."""

from __future__ import annotations

import typer

from device_runner.failures import Failure
from harness.cli.options import DEFAULT_SUITE, AsShipped, CaseGlob, DeviceName, SuiteFile, WithQuirks
from harness.outcome import ExitCode, Outcome, exit_code


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(build)


def build(
    suite: SuiteFile = DEFAULT_SUITE,
    case: CaseGlob = None,
    device: DeviceName = "virtual",
    as_shipped: AsShipped = False,
    with_quirks: WithQuirks = None,
) -> None:
    """Compile the cases for a device and show what the compiler made of them.

    The device is asked for its image limits, because they decide which tensors may be textures; nothing is run on it.
    """
    from harness.build import Artifact, Builder
    from harness.cli.screen import Screen, out
    from harness.cli.table import plain_table, size
    from harness.cli.work import prepared

    with (
        Screen() as screen,
        prepared(suite, case, device, as_shipped=as_shipped, but_for=with_quirks, say=screen.say) as work,
        Builder(work.cache, work.suite.limits, watch=lambda job, *rest: screen.build(job.title, *rest)) as builder,
    ):
        built = builder.build(plan.compile for plan in work.plans)
    rows, outcomes = [], []
    for plan in work.plans:
        result = built[plan.compile.key]
        if isinstance(result, Artifact):
            facts = ", ".join(f"{value} {name}" for name, value in result.compiled.facts.items())
            state = "from the store" if result.reused else f"{result.compiled.compile_s:.1f} s"
            rows.append((plan.case.id, state, size(result.size_bytes), ", ".join(plan.quirks) or "-", facts))
            outcomes.append(Outcome.OK)
        elif isinstance(result, Failure):
            rows.append((plan.case.id, result.outcome, "-", ", ".join(plan.quirks) or "-", str(result)))
            outcomes.append(Outcome(result.outcome))
    out(plain_table(rows, ("case", "built", "library", "quirks worked round", "what it is made of")))
    raise typer.Exit(exit_code(outcomes) if rows else ExitCode.NOTHING_MEASURED)
