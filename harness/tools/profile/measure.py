"""Measures a profile: like a run of the case, but its kernels are watched instead of sampled."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from device_runner.device import Launch, Program, Session
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Budget, Plan
from harness.compile.artifacts.artifact import Artifact, Built
from harness.compile.compiler.releases import tvm_version
from harness.compile.compiler.tir import OperatorWork
from harness.measure.context import Origin, Run
from harness.measure.decide import decide
from harness.measure.facts import Batches, Facts
from harness.measure.loop import run_case
from harness.measure.probes.batches import enqueue
from harness.measure.progress import Progress, RunStep
from harness.measure.workbench import Workbench
from harness.tools.shared.full_disk import writing
from harness.tools.shared.kernels.profile import NS_DIGITS, Launches, Peaks, Profile, ms_of, operators_of, span_ms

WALL_SAMPLES = 20


@dataclass(frozen=True)
class WatchedProfile:
    """A profile, and the launches that it is made of."""

    profile: Profile
    inferences: Sequence[Sequence[Launch]]


@dataclass(frozen=True)
class WallTime:
    """The median of some samples of wall time."""

    ms: float


@dataclass(frozen=True)
class ProfileProbe:
    """Watches the kernels of some inferences, beside the wall time of others and of batches."""

    repeat: int
    budget: Budget
    step = RunStep.SAMPLING.value
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Warm up, then sample and watch."""
        timeout_s = self.budget.timeout_s
        program.device_ms(self.repeat, timeout_s=timeout_s)
        yield (wall := WallTime(median(program.wall_ms(WALL_SAMPLES, timeout_s=timeout_s))))
        yield Launches(program.launches(self.repeat, timeout_s=timeout_s))
        if batches := enqueue(program, self.budget, wall.ms):
            yield batches


def watch(bench: Workbench, repeat: int, peaks: Peaks, progress: Progress) -> list[WatchedProfile]:
    """Return a profile of each case of the workbench. Raises the first failure; UsageError of a case that is wrong."""
    built = bench.builder.build(job for plan in bench.plans for job in plan.jobs)
    progress.begin(len(bench.plans))
    return [watch_case(plan, built, bench.run, repeat, peaks, progress) for plan in bench.plans]


def watch_case(plan: Plan, built: Built, run: Run, repeat: int, peaks: Peaks, progress: Progress) -> WatchedProfile:
    """Put a case through the loop with the probe of a profile in place of a run's. Raises what `watch` raises."""

    def probes(*_: object) -> Sequence[ProfileProbe]:
        return [ProfileProbe(repeat, plan.budget)]

    run = replace(run, timed=False, probes=probes)
    recording = run_case(plan, built, run, progress)
    progress.done(recording.record)
    facts = recording.facts
    if facts.failure:
        raise facts.failure
    if (decision := decide(facts)).outcome is not Outcome.OK:
        hint = decision.hint or f"`adreno-bench run --case {plan.case.id}`, then `adreno-bench diverge {plan.case.id}`"
        raise UsageError(f"{plan.case.id} is not profiled, because it is {decision.outcome.value}", hint=hint)
    inferences, wall_ms = facts[Launches].inferences, facts[WallTime].ms
    profile = profile_of(plan, facts[Artifact], run.origin, inferences, wall_ms, peaks, facts.get(Batches))
    return WatchedProfile(profile, inferences)


def profile_of(
    plan: Plan,
    artifact: Artifact,
    origin: Origin,
    inferences: Sequence[Sequence[Launch]],
    wall_ms: float,
    peaks: Peaks,
    enqueued: Batches | None = None,
) -> Profile:
    """Return the profile of a case whose inferences were watched. Raises UsageError if they launch nothing."""
    if not any(inferences):
        raise UsageError(f"{plan.case.id} launches no kernels", hint="CLML runs all of it: profile another path")
    work = [OperatorWork(**fields) for fields in artifact.compiled.work or ()]
    operators = operators_of(inferences, work, artifact.source)
    identity = origin.identity
    return Profile(
        case=plan.case.id,
        precision=plan.case.precision,
        identity_key=identity.key,
        gpu=identity.gpu or identity.serial,
        tvm=tvm_version(),
        artifact=artifact.key,
        as_shipped=origin.as_shipped,
        operators=operators,
        kernels_ms=round(median(sum(map(ms_of, inference)) for inference in inferences), NS_DIGITS),
        span_ms=median(map(span_ms, inferences)),
        wall_ms=wall_ms,
        peaks=peaks,
        batch=enqueued.batch if enqueued else None,
        batched_ms=tuple(enqueued.batched_ms) if enqueued else (),
        synced_ms=tuple(enqueued.synced_ms) if enqueued else (),
    )


def trace_of(inferences: Sequence[Sequence[Launch]]) -> str:
    """Return the launches as a trace that Perfetto and Chrome open (the "Trace Event Format"; times in µs)."""
    begin = min(launch.queued_ns for inference in inferences for launch in inference)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": list(_events(inferences, begin))})


def _events(inferences: Sequence[Sequence[Launch]], begin: int) -> Iterator[dict[str, object]]:
    for number, inference in enumerate(inferences):
        for launch in inference:
            arguments = {
                "inference": number,
                "threads": launch.threads,
                "group": launch.group,
                "queued for us": (launch.start_ns - launch.queued_ns) / 1e3,
            }
            times = {"ts": (launch.start_ns - begin) / 1e3, "dur": (launch.end_ns - launch.start_ns) / 1e3}
            yield {"name": launch.kernel, "ph": "X", "pid": 0, "tid": "kernels", **times, "args": arguments}


def append_profile(file: Path, profile: Profile) -> None:
    """Append a profile to a file, as a line of JSON that is packed by itself: a single write, and `zcat` reads it.

    Raises DiskFull, OSError.
    """
    packed = gzip.compress(profile.model_dump_json(by_alias=True).encode() + b"\n", mtime=0)
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(target, packed)
        finally:
            os.close(target)
