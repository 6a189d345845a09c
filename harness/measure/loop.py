"""The loop: from a library to all that becomes known of it. Whatever is measured comes through here.

    load -> first run -> judge -> each probe in turn -> judge again

`run`, `profile`, `ops`, `tune`, `reduce`, `diverge`, asv's benchmarks, the pytest plugin and `ingest` differ in
the work that they bring, in the session (live, or replayed from what a bundle brought back) and in the probes.
Correctness is judged before speed: a wrong answer gets no latency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from device_runner.device import Loadable, Program, Session
from device_runner.names import load
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.base.program import program_kind
from harness.compile.artifacts.artifact import Built
from harness.measure.again import judge_again
from harness.measure.context import Run
from harness.measure.correctness import Truth
from harness.measure.decide import decide
from harness.measure.facts import Answer, Environment, Facts, FirstRun, HalfRange, Judgement, Loading, Proof
from harness.measure.preparation import prepare
from harness.measure.probes.base import Probe, Step, no_step
from harness.measure.progress import Progress, RunStep
from harness.measure.recording import Recording
from harness.measure.standard_probes import standard_probes
from harness.measure.support import require_support
from harness.measure.tuning import CacheUse
from harness.measure.witness import first_misread, hear_witness
from harness.measure.work import half_range, open_work, schedules_of


def measure(
    library: Loadable,
    truth: Truth,
    session: Session,
    probes: Iterable[Probe],
    facts: Facts,
    *,
    timeout_s: float,
    cache: CacheUse | None = None,
    weigh: bool = False,
    step: Step = no_step,
) -> Program:
    """Load a library, run it once, judge its answer, and run each probe as long as the answer counts as right.

    A timed program is judged again at the end.

    Args:
        library: The compiled program.
        truth: Its inputs and the right answer.
        session: The session in which it runs.
        probes: Measurements of a right program, in this order.
        facts: Gets each fact at once, so that a failure leaves the earlier ones.
        timeout_s: Deadline of each call to the device.
        cache: Gives the program its tuning cache before its first run.
        weigh: Whether to read the peak memory of the process, in which only this program may have run.
        step: Shows the present step.

    Returns: the program, which lasts as long as its session.
    Raises: what the session, the program and the probes raise.
    """
    step(RunStep.LOADING)
    program = session.load(library, timeout_s=timeout_s)
    facts.add(Loading(program.init_ms, program.pushed.sent_bytes))
    if cache:
        cache.use(program)
    step(RunStep.FIRST_RUN)
    outputs, ms = program.run(truth.inputs, timeout_s=timeout_s)
    facts.add(FirstRun(ms))
    if weigh:
        facts.add(session.peak_memory(timeout_s=timeout_s))
    facts.add(Answer(outputs))
    facts.add(truth.judge(outputs))
    timed = False
    for probe in probes:
        if decide(facts).outcome is not Outcome.OK:
            break
        if probe.timed and _emulated(facts):
            continue
        if probe.step:
            step(probe.step)
        for fact in probe(program, session, facts):
            facts.add(fact)
        timed = timed or probe.timed
    if timed and decide(facts).outcome is Outcome.OK:
        judge_again(program, truth, facts, timeout_s)
    return program


def run_case(plan: Plan, built: Built, run: Run, progress: Progress) -> Recording:
    """Run one case and record its facts. Never raises for faults of the case or the device."""
    if plan.program:
        own: Callable[[Plan, Built, Run, Progress], Recording] = load(program_kind(plan.program.kind).run)
        return own(plan, built, run, progress)
    step = partial(progress.step, plan.case.id)
    with Recording.of(plan, run.origin) as recording:
        facts = recording.facts
        work = open_work(plan, built)
        facts.add(work.artifact)
        require_support(work.artifact, run.device.identity)
        if plan.default_schedules and facts.add(schedules_of(work, run.made_by.get("tvm", ""))).complaint:
            return recording
        run.recovery.admit(run.rungs)
        prepared = prepare(work, run, step)
        facts.add(Environment(prepared.cache.toggles))
        facts.add(HalfRange(half_range(plan, built)))
        facts.add(Judgement(work.answers.judge, work.answers.unchecked, work.answers.branches))
        probes = [*(run.probes or standard_probes)(work, prepared, run, step), *run.further_probes(work)]
        timeout_s = plan.budget.timeout_s
        with run.device.session(prepared.cache.toggles, timeout_s=timeout_s) as session:
            library = work.artifact.loadable
            measure(
                library,
                work.truth,
                session,
                probes,
                facts,
                timeout_s=timeout_s,
                cache=prepared.cache,
                weigh=True,
                step=step,
            )
        if report := hear_witness(work, facts, run.builder):  # no device waits while LLVM is asked
            if report.blames_importer and run.builder and run.names_operators:
                report = replace(report, first=first_misread(work, run.builder))
            facts.add(report)
    return recording


def _emulated(facts: Facts) -> bool:
    """Return whether the path's library was a model of itself."""
    proof = facts.get(Proof)
    return proof is not None and proof.emulated
