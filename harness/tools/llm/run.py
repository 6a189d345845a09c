"""A test of a language model on a device, from what was built to its record: load, judge, time, judge again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, cast

from device_runner.failures import Failure, RigFailure
from device_runner.runtimes.cross_linker import TRIPLES
from device_runner.session.rpc_session import RpcSession
from device_runner.store import cache_root, sha256_of
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Job, Plan
from harness.base.suite import Limits
from harness.base.tool import load, tools
from harness.compile.artifacts.artifact import Answers, Artifact, Built
from harness.compile.artifacts.pool import Builder
from harness.compile.quirks.base import ProbeAnswer, Quirk
from harness.measure.context import Run
from harness.measure.correctness import MOST_ROUNDING
from harness.measure.facts import Facts, Judgement, Latency, Loading, Vacuity
from harness.measure.probes.latency import measure
from harness.measure.progress import Progress, RunStep
from harness.measure.recording import Recording
from harness.measure.support import require_support
from harness.measure.work import Preparation, Work, open_work
from harness.tools.llm.build import PREFIX, library_job, probe_job, read_probe, weights_folder
from harness.tools.llm.cases import LlmTask
from harness.tools.llm.conversation import Conversation, TimedStep
from harness.tools.llm.machine import load_machine
from harness.tools.llm.network import DECODE, PREFILL_AGAIN
from harness.tools.llm.part import LlmPart
from harness.tools.llm.quirks import QUIRKS
from harness.tools.llm.truth import LlmTruth, text
from harness.tools.llm.verify import LlmVerdict, verify

if TYPE_CHECKING:
    from device_runner.device import Array, Device, Program, Session
    from harness.measure.probes.base import Probe, Step

ADVICE = {Outcome.WRONG_RESULT: "`adreno-bench llm quirks` lists defects of TVM that runs work around by default"}
"""What a person does next."""


def run_program(plan: Plan, built: Built, run: Run, progress: Progress) -> Recording:
    """Carry a test to what becomes known of it. Never raises for what the library or the device does wrong."""
    assert plan.program
    task, step, timeout_s = LlmTask.of(plan.program), partial(progress.step, plan.case.id), plan.budget.timeout_s
    with Recording.of(plan, run.origin, ADVICE) as recording:
        facts = recording.facts
        facts.add(_part(task))
        work = open_work(plan, built)
        facts.add(work.artifact)
        require_support(work.artifact, run.device.identity)
        run.recovery.admit(run.rungs)
        truth = LlmTruth.read(work.answers.folder, task.config, plan.relative_tolerance, plan.rounding_factor)
        facts.add(Judgement(work.answers.judge, ""))
        cache = run.tunings.prepare(plan.case, work.artifact, run.device, (), timeout_s)
        probes = (run.probes or _probes)(work, Preparation(cache), run, step)
        with run.device.session({}, timeout_s=timeout_s) as session:
            step(RunStep.LOADING)
            conversation = _load(task, work.artifact, session, facts, timeout_s)
            step(RunStep.FIRST_RUN)
            verdict = verify(task.test, conversation, truth)
            facts.add(session.peak_memory(timeout_s=timeout_s))
            _add_verdict(verdict, truth, facts)
            if verdict.right and probes:
                step(RunStep.SAMPLING)
                _measure(task, conversation, probes, session, facts)
                _judge_again(task, conversation, truth, verdict, facts)
    return recording


def _load(task: LlmTask, artifact: Artifact, session: Session, facts: Facts, timeout_s: float) -> Conversation:
    """Load a library and its weights; return a conversation with it."""
    assert isinstance(session, RpcSession)
    folder = weights_folder(task.tensors, task.config, task.form, cache_root())
    files = {file: sha256_of(file) for file in sorted(folder.iterdir()) if not file.name.startswith(".")}
    machine = load_machine(session, artifact.loadable, timeout_s=timeout_s)
    weights = machine.parameters(files, PREFIX, len(artifact.compiled.inputs), timeout_s=timeout_s)
    facts.add(Loading(machine.init_ms, machine.pushed.sent_bytes))
    facts.add(_update(facts, weights_bytes=sum(file.stat().st_size for file in files)))
    return Conversation(machine, weights, timeout_s)


def _add_verdict(verdict: LlmVerdict, truth: LlmTruth, facts: Facts) -> None:
    accuracy = verdict.accuracy
    assert accuracy
    fields = {"error": accuracy.max_rel_err, "divergence": verdict.divergence, "invariants": verdict.invariants}
    facts.add(_update(facts, **fields))
    facts.add(accuracy)
    if truth.tolerance > MOST_ROUNDING:
        why = f"logits are lost in rounding, which may move them by {truth.tolerance:.2g}"
        facts.add(Vacuity([why]))


def _measure(
    task: LlmTask, conversation: Conversation, probes: Sequence[Probe], session: Session, facts: Facts
) -> None:
    """Hand a step to the probes, on a cache of the test's depth."""
    timed = TimedStep(conversation, DECODE if task.test.decodes else PREFILL_AGAIN)
    conversation.restart()
    conversation.fill(_tokens(task)[: task.test.depth])
    conversation.step(timed.step, _tokens(task)[task.test.depth :])
    for probe in probes:
        for fact in probe(cast("Program", timed), session, facts):
            facts.add(fact)


def _judge_again(task: LlmTask, conversation: Conversation, truth: LlmTruth, verdict: LlmVerdict, facts: Facts) -> None:
    """Judge the step once more after all that were timed: a driver may fail later."""
    step = DECODE if task.test.decodes else PREFILL_AGAIN
    conversation.forget(conversation.length - task.test.depth)
    logits = conversation.step(step, _tokens(task)[task.test.depth :])[0]
    verdict.add(truth.judge(logits, task.test.depth + task.test.tokens - 1), "after the steps that were timed")
    if not verdict.right:
        facts.add(verdict.accuracy)


def _tokens(task: LlmTask) -> Array:
    return text(task.config, task.test.depth + task.test.tokens)


def _probes(work: Work, prepared: Preparation, run: Run, step: Step) -> Sequence[Probe]:
    """Return what is measured of a step; of a sustained run what tools measure."""
    if not run.timed:
        return []
    if work.plan.budget.sustain_s:
        makers = [load(place) for tool in tools() for place in tool.probes]
        return [probe for make in makers if (probe := make(work, prepared, run, step))]
    return [StepProbe(work.plan, run.device)]


@dataclass(frozen=True)
class StepProbe:
    """Both clocks of a step, its kernels, and tokens a second."""

    plan: Plan
    device: Device
    step = RunStep.SAMPLING.value
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Sample the step within the thermal limits."""
        part, budget = facts.get(LlmPart), self.plan.budget
        assert part
        launches = None
        with contextlib.suppress(RigFailure):  # without the probe
            launches = len(program.launches(2, timeout_s=budget.timeout_s)[-1])
        timing, steadiness = self.device.steadily(lambda: measure(program, budget), self.plan.thermal_limits)
        yield Latency(timing, None, steadiness)
        typical_ms = median(timing.wall_ms)
        alone = part.test.startswith("pp") and not part.depth
        rates = {"tokens_per_s": 1e3 * part.tokens / typical_ms, "first_token_ms": typical_ms if alone else None}
        yield _update(facts, launches=launches, **rates)


def _part(task: LlmTask) -> LlmPart:
    return LlmPart(
        model=task.model,
        format=task.form.name,
        pipeline=task.pipeline,
        test=task.test.name,
        parameters=task.config.parameters,
        tokens=task.test.tokens,
        depth=task.test.depth,
    )


def _update(facts: Facts, **fields: object) -> LlmPart:
    part = facts.get(LlmPart)
    assert part
    return part.model_copy(update=fields)


def build_libraries(
    tasks: Sequence[LlmTask], abi: str, cache: Path, progress: Progress
) -> list[Artifact | Answers | Failure]:
    """Build libraries for a processor, or this host, without a device. Raises UsageError."""
    if abi != "host" and abi not in TRIPLES:
        raise UsageError(f"there is no ABI {abi!r}", hint=f"known: host, {', '.join(TRIPLES)}")
    return _build([library_job(task, host_triple=TRIPLES.get(abi)) for task in tasks], cache, progress)


def probe_quirks(cache: Path, progress: Progress) -> list[tuple[Quirk, ProbeAnswer]]:
    """Ask the installed TVM for each known defect, each in a worker: TVM may crash."""
    built = _build([probe_job(quirk.id) for quirk in QUIRKS], cache, progress)
    return [(quirk, read_probe(result)) for quirk, result in zip(QUIRKS, built, strict=True)]


def _build(jobs: Sequence[Job], cache: Path, progress: Progress) -> list[Artifact | Answers | Failure]:
    def watch(job: Job, state: str, seconds: float) -> None:
        progress.build(job.title, state, seconds)

    with Builder(cache, Limits(), watch=watch) as builder:
        built = builder.build(jobs)
    return [built[job.key] for job in jobs]
