"""A test of a language model on a device, from what was built to its record: load, judge, time, judge again."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

from device_runner.device import Loadable, Program, Session
from device_runner.failures import Failure, RigFailure
from device_runner.names import load
from device_runner.session.rpc_session import RpcSession
from device_runner.store import cache_root
from harness.base.outcome import Outcome
from harness.base.plan import Budget, Plan
from harness.base.request import QuirkPolicy
from harness.base.suite import Limits
from harness.base.tool import tools
from harness.compile.artifacts.artifact import Answers, Artifact, Built
from harness.compile.artifacts.planner import host_triple
from harness.compile.artifacts.pool import Builder
from harness.measure.context import Run
from harness.measure.correctness import MOST_ROUNDING
from harness.measure.facts import Facts, FirstRun, Judgement, Latency, Loading, RunSettings, Timing, Vacuity
from harness.measure.probes.base import Probe
from harness.measure.probes.base import Step as ShowStep
from harness.measure.probes.latency import measure
from harness.measure.progress import Progress, RunStep
from harness.measure.recording import Recording
from harness.measure.standard_probes import LatencyProbe
from harness.measure.support import require_support
from harness.measure.work import Preparation, Work, open_work
from harness.measure.workbench import no_device
from harness.tools.llm.build import weights_folder
from harness.tools.llm.cases import LlmTask, LlmTest, MlcTask
from harness.tools.llm.conversation import Conversation, Machine
from harness.tools.llm.folders import MlcFolder, weights_of
from harness.tools.llm.judge import LlmTruth
from harness.tools.llm.mlc import open_conversation
from harness.tools.llm.part import LlmPart
from harness.tools.llm.verify import Invariants, LlmVerdict, timed_tokens, verify

ADVICE = {Outcome.WRONG_RESULT: "`adreno-bench quirks` lists TVM's defects, which libraries of mlc-llm have as well"}
"""What a person does next."""
CHUNK_KEY = "chunk"
"""Key of the longest step, in a suite and among the settings of a record."""
INVARIANT_TOLERANCE = {"float32": 1e-3, "float16": 5e-2}
"""How far apart, relative to their peak, logits may lie that have to be the same: other chunks add in another order.
Faults of positions, pages and merges move them by tenths."""
UNKNOWN_NETWORK = "nobody knows the library's network: its answers are held to each other"
"""Why nobody outside TVM judges a library."""


def load_library(session: RpcSession, loadable: Loadable, folder: Path, timeout_s: float) -> Conversation:
    """Load a library of our network, and its weights from a folder like mlc-llm's. Raises what the session raises."""
    machine, stored = Machine(session, loadable, timeout_s), MlcFolder(folder)
    return Conversation(machine, machine.parameters(stored.files(), [*stored.weights]))


def _load(task: LlmTask | MlcTask, session: RpcSession, loadable: Loadable, timeout_s: float) -> Conversation:
    """Load library and weights. Raises CompileFailure where mlc-llm's are out of step."""
    if isinstance(task, LlmTask):
        folder = weights_folder(weights_of(task.config, task.weights), task.form, cache_root())
        return load_library(session, loadable, folder, timeout_s)
    return open_conversation(Machine(session, loadable, timeout_s), task.folder, task.test.length)


def _judge_of(task: LlmTask | MlcTask, plan: Plan, answers: Answers) -> LlmTruth | Invariants:
    if task.config is None:
        return Invariants(task.folder.settings.vocab_size, INVARIANT_TOLERANCE[task.form.dtype])
    return LlmTruth.read(answers.folder, task.config, None if plan.rounding_factor else plan.relative_tolerance)


def run_program(plan: Plan, built: Built, run: Run, progress: Progress) -> Recording:
    """Carry a test to what becomes known of it. Never raises for what the library or the device does wrong."""
    step, timeout_s = partial(progress.step, plan.case.id), plan.budget.timeout_s
    assert plan.program
    task = (LlmTask if plan.program.kind == LlmTask.kind else MlcTask).of(plan.program)
    with Recording.of(plan, run.origin, ADVICE) as recording:
        facts = recording.facts
        facts.add(task.part.model_copy(update={"options": shlex.split(plan.program.word)}))
        work = open_work(plan, built)
        facts.add(work.artifact)
        require_support(work.artifact, run.device.identity)
        run.recovery.admit(run.rungs)
        truth = _judge_of(task, plan, work.answers)
        facts.add(Judgement(work.answers.judge, "" if isinstance(truth, LlmTruth) else UNKNOWN_NETWORK))
        cache = run.tunings.prepare(plan.case, work.artifact, run.device, (), timeout_s)
        probes = [*(run.probes or _probes)(work, Preparation(cache), run, step), *run.further_probes(work)]
        with run.device.session({}, timeout_s=timeout_s) as session:
            assert isinstance(session, RpcSession)
            step(RunStep.LOADING)
            conversation = _load(task, session, work.artifact.loadable, timeout_s)
            machine = conversation.machine
            facts.add(Loading(machine.init_ms, machine.pushed.sent_bytes))
            step(RunStep.FIRST_RUN)
            _choose_chunk(conversation, task.chunk or plan.settings.get(CHUNK_KEY), task.test, facts)
            verdict = verify(task.test, conversation, truth)
            facts.add(session.peak_memory(timeout_s=timeout_s))
            _add_verdict(verdict, truth, facts)
            if verdict.right and probes:
                step(RunStep.SAMPLING)
                tokens = timed_tokens(task.test, conversation, truth)
                timed = conversation.timed_answer(task.test.timed_step, tokens)
                for fact in (fact for probe in probes for fact in probe(cast("Program", timed), session, facts)):
                    facts.add(fact)
                timed.end()
                conversation.forget(conversation.length - task.test.depth)
                logits = conversation.answer(task.test.last_step, tokens)
                # once more: a driver may fail later
                verdict.add(truth.judge(logits, conversation.length - 1), "after the steps that were timed")
                if not verdict.right:
                    facts.add(verdict.accuracy)
    return recording


def _choose_chunk(conversation: Conversation, pinned: int | None, test: LlmTest, facts: Facts) -> None:
    first, largest = conversation.choose_chunk(pinned)
    facts.add(FirstRun(first.first_ms))
    fields = {"chunk": conversation.chunk, "pinned": bool(pinned), "weights_bytes": conversation.machine.weights_bytes}
    facts.add(_update(facts, **fields, trial_tokens=largest.tokens, trial_ms=largest.ms))
    if not test.decodes:
        facts.add(RunSettings({CHUNK_KEY: min(conversation.chunk, test.prompt)}))


def _add_verdict(verdict: LlmVerdict, truth: LlmTruth | Invariants, facts: Facts) -> None:
    assert verdict.accuracy
    facts.add(_update(facts, invariants=verdict.invariants))
    facts.add(verdict.accuracy)
    if isinstance(truth, LlmTruth):
        errors = {"error": verdict.accuracy.max_rel_err, "rounding": verdict.multiple}
        facts.add(_update(facts, **errors, divergence=verdict.divergence))
        if truth.rounding > MOST_ROUNDING:
            why = f"logits are lost in rounding, which may move them by {truth.rounding:.2g}"
            facts.add(Vacuity([why]))


def _probes(work: Work, prepared: Preparation, run: Run, step: ShowStep) -> Sequence[Probe]:
    """Return what is measured of a step; of a sustained run what tools measure."""
    if not run.timed:
        return []
    if work.plan.budget.sustain_s:
        makers = [load(place) for tool in tools() for place in tool.probes]
        return [probe for make in makers if (probe := make(work, prepared, run, step))]
    return [StepProbe(work, prepared, run)]


def _time(program: Program, budget: Budget, _look: object, **_first: float) -> Timing:
    """Time a step, whose answer is judged before and after and not meanwhile."""
    return measure(program, budget)


@dataclass(frozen=True)
class StepProbe(LatencyProbe):
    """Both clocks of a step, its kernels, and tokens a second."""

    measure: Callable[..., Timing] = _time

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[object]:
        """Sample the step within the thermal limits."""
        part, launches = facts[LlmPart], None
        with contextlib.suppress(RigFailure):  # without the probe
            launches = len(program.launches(2, timeout_s=self.work.plan.budget.timeout_s)[-1])
        yield from super().__call__(program, session, facts)
        typical_ms = median(facts[Latency].timing.wall_ms)
        alone = part.test.startswith("pp") and not part.depth
        rates = {"tokens_per_s": 1e3 * part.tokens / typical_ms, "first_token_ms": typical_ms if alone else None}
        yield _update(facts, launches=launches, **rates)


def _update(facts: Facts, **fields: object) -> LlmPart:
    return facts[LlmPart].model_copy(update=fields)


def build_libraries(
    tasks: Sequence[LlmTask], abi: str, cache: Path, progress: Progress
) -> list[Artifact | Answers | Failure]:
    """Build libraries for a processor, or this host, without a device. Raises UsageError."""
    triple = host_triple(no_device("" if abi == "host" else abi))
    jobs = [LlmTask.build(task.program(), None, QuirkPolicy(), triple) for task in tasks]
    with Builder(cache, Limits(), watch=progress.build) as builder:
        built = builder.build(jobs)
    return [built[job.key] for job in jobs]
