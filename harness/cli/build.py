"""`adreno-bench build`: compile the suite without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.failures import Failure
from harness.base.failures import CompileFailure, InputRefused
from harness.base.outcome import ExitCode, Outcome, exit_code
from harness.base.plan import Plan
from harness.base.tables import size, table
from harness.cli import options
from harness.cli.hints import last_words
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.judge.report.screen import Screen, out, out_json

if TYPE_CHECKING:
    from harness.measure.workbench import PlannedRequest

HEADERS = ("case", "built", "library", "quirks", "what it is made of")


@options.grouped
@last_words("finished builds are kept; {command} continues")
def build(
    context: typer.Context,
    what: options.CaseOptions,
    device: options.DeviceName = options.DEFAULT_DEVICE,
    alike_devices: Annotated[
        list[str] | None,
        options.seldom_option(
            "--like",
            metavar="FILE|DEVICE",
            help="Build for a device like the last in this file of records, or one that was opened before. Repeatable.",
        ),
    ] = None,
    abi: Annotated[
        str,
        options.seldom_option(
            "--abi",
            help="Build for any Adreno, without a device: arm64-v8a for phones, aarch64 for boards.",
            show_default=False,
        ),
    ] = "",
    builders: options.Builders = None,
    as_json: options.AsJson = False,
) -> None:
    """Compile the cases and show what the compiler made of them.

    Reads the limits of the device, and runs nothing on it. `--device none` takes the limits of every Adreno, and the
    processor of this host; `--abi` takes another processor.
    """
    from harness.cli.record_filter import identity_like
    from harness.measure.workbench import no_device, open_to_build

    if alike_devices:
        options.refuse_options(context, ("device", "abi"), "with --like, which names the devices")
    if abi:
        options.refuse_options(context, ("device",), "with --abi, which builds for no device")
    request = what.request(builders=builders)
    identities = [no_device(abi)] if abi else [identity_like(name, request.cache) for name in alike_devices or ()]
    with Screen() as screen, open_to_build(request, device, screen, identities) as bench:
        shared = request.suite.store  # then build the answers for the hosts that measure, too
        jobs = [job for plan in bench.plans for job in (plan.compile, *(plan.jobs if shared else ()))]
        built = bench.builder.build(jobs)
        built |= _refused(bench, built)
    outcomes = [_outcome(built[plan.compile.key]) for plan in bench.plans]
    if as_json:
        out_json(_plain(bench, built))
    else:
        out(_table(bench, built))
    raise typer.Exit(exit_code(outcomes) if outcomes else ExitCode.NOTHING_MEASURED)


def _refused(bench: PlannedRequest, built: Mapping[str, Artifact | Answers | Failure]) -> dict[str, Failure]:
    """Return why inputs of what did not compile cannot be computed by anybody, by its key: they come first."""
    failed = [plan for plan in bench.plans if isinstance(built.get(plan.compile.key), CompileFailure)]
    answers = bench.builder.build(plan.oracle for plan in failed)
    return {p.compile.key: a for p in failed if isinstance(a := answers[p.oracle.key], InputRefused)}


def _outcome(result: Artifact | Answers | Failure) -> Outcome:
    return Outcome(result.outcome) if isinstance(result, Failure) else Outcome.OK


def _table(bench: PlannedRequest, built: Mapping[str, Artifact | Answers | Failure]) -> str:
    from harness.measure.support import lacks

    rows, lacking = [], []
    named = bench.identity if bench.identity.gpu else replace(bench.identity, gpu="an Adreno")
    for plan in bench.plans:
        result, quirks = built[plan.compile.key], len(plan.quirks)
        if isinstance(result, Artifact):
            facts = ", ".join(
                f"{value} {name.replace('_', ' ')}" for name, value in result.compiled.facts.items() if value
            )
            state = "from the store" if result.reused else f"{result.compiled.compile_s:.1f} s"
            rows.append((plan.case.id, state, size(result.size_bytes), quirks, facts))
            lacking += [f"{plan.case.id} is unsupported: {why}" for why, _ in lacks(result, named)]
        elif isinstance(result, Failure):
            rows.append((plan.case.id, result.outcome, "-", quirks, str(result)))
    drawn = table(rows, HEADERS, prose=HEADERS[-1:], right=("library", "quirks"), spare=("library", "quirks"))
    note = "quirks are worked around: `adreno-bench quirks` explains them; --json names those of each case and its file"
    return "\n".join([drawn, "", *lacking, note])


def _plain(bench: PlannedRequest, built: Mapping[str, Artifact | Answers | Failure]) -> dict[str, object]:
    """Return the value of --json. `library` is the SHA-256 of `file`: equal if the compiler made the same bytes."""

    def of(plan: Plan) -> dict[str, object]:
        result = built[plan.compile.key]
        return {
            "case": plan.case.id,
            "artifact": plan.compile.key,
            "library": result.loadable.sha256 if isinstance(result, Artifact) else "",
            "file": str(result.loadable.library) if isinstance(result, Artifact) else "",
            "outcome": _outcome(result).value,
            "message": result.message if isinstance(result, Failure) else "",
            "facts": result.compiled.facts if isinstance(result, Artifact) else {},
            "quirks": plan.quirks,
            "effective_quirks": result.compiled.effective_quirks if isinstance(result, Artifact) else None,
        }

    identity = bench.identity
    return {"identity": identity.key, "emulated": identity.emulated, "cases": [of(plan) for plan in bench.plans]}
