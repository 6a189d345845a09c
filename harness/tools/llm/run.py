"""Language models on a device: build, load, judge, time, one record for each test of each library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from device_runner import registry
from device_runner.device import Device, ThermalLimits
from device_runner.failures import Failure, RigFailure, Unsupported
from device_runner.runtimes.cross_linker import TRIPLES
from device_runner.session.rpc_session import RpcSession
from device_runner.store import sha256_of
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Budget, Job, no_half
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.planner import host_triple
from harness.compile.artifacts.pool import Builder
from harness.compile.compiler.releases import require_working_pair, versions
from harness.compile.quirks.base import ProbeAnswer, Quirk
from harness.measure.context import Origin, new_id
from harness.measure.correctness import MOST_ROUNDING
from harness.measure.facts import Judgement, Latency, Loading, Vacuity
from harness.measure.probes.latency import measure
from harness.measure.progress import Progress, RunStep
from harness.measure.recording import Recording
from harness.measure.support import require_support
from harness.tools.llm.build import PREFIX, LlmBuild, probe_job, read_probe, weights_folder
from harness.tools.llm.cases import LlmTest, Variant
from harness.tools.llm.conversation import Conversation, TimedStep
from harness.tools.llm.judge import NAME
from harness.tools.llm.machine import load_machine
from harness.tools.llm.network import DECODE, PREFILL_AGAIN
from harness.tools.llm.part import LlmPart
from harness.tools.llm.quirks import QUIRKS
from harness.tools.llm.verify import LlmTruth, LlmVerdict, text, verify

if TYPE_CHECKING:
    from device_runner.device import Session
    from harness.measure.records.record import Record, RecordFile

UNSUPPORTED_PATHS = {
    "texture": "TVM's paged cache of keys and values, and its schedules for products, have no form for images",
    "clml": "TVM's offload to OpenCL ML for language models needs version 5 of its SDK, and takes nothing without it",
}
"""Why a path cannot run a language model."""
ADVICE = {Outcome.WRONG_RESULT: "`adreno-bench llm quirks` lists defects of TVM that `llm run` works around by default"}
"""What a person does next."""


@dataclass(frozen=True)
class LlmRequest:
    """What is to be run."""

    variants: Sequence[Variant]
    tests: Sequence[LlmTest]
    cache: Path
    quirks: tuple[str, ...]
    """Ids of the defects that are worked around."""
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)


def run_request(request: LlmRequest, device_name: str, progress: Progress, file: RecordFile) -> Iterator[Record]:
    """Build everything, then run test by test, keeping each record before it is yielded.

    Raises what opening a device raises, and UsageError for a quick look at a device that is not emulated.
    """
    require_working_pair(versions())
    step = partial(progress.step, f"opening {device_name}")
    opened = registry.open_device(device_name, request.cache, say=progress.say, progress=progress.pushing, step=step)
    with _builder(request.cache, progress, request.limits) as builder, opened as device:
        identity = registry.identify(device, step)
        if request.budget.quick and "gpu" not in identity.emulated:
            raise UsageError(f"{identity.gpu or identity.serial} is not emulated", hint="leave --quick out")
        origin, triple = Origin(device.name, identity, not request.quirks, new_id()), host_triple(identity)
        benches = [LlmBench(request, variant, device, origin, triple) for variant in request.variants]
        built = builder.build(bench.job for bench in benches if not bench.unsupported)
        progress.begin(len(benches) * len(request.tests))
        for bench in benches:
            with bench:
                for test in request.tests:
                    record = bench.run(test, built.get(bench.job.key), progress)
                    file.append(record)
                    progress.done(record)
                    yield record


def build_variants(
    variants: Sequence[Variant], abi: str, cache: Path, progress: Progress
) -> list[Artifact | Answers | Failure]:
    """Build libraries for a processor, or this host, without a device. Raises UsageError."""
    if abi != "host" and abi not in TRIPLES:
        raise UsageError(f"there is no ABI {abi!r}", hint=f"known: host, {', '.join(TRIPLES)}")
    jobs = [LlmBuild.of(variant, host_triple=TRIPLES.get(abi)).job(variant.title) for variant in variants]
    with _builder(cache, progress) as builder:
        built = builder.build(jobs)
    return [built[job.key] for job in jobs]


def probe_quirks(cache: Path, progress: Progress) -> list[tuple[Quirk, ProbeAnswer]]:
    """Ask the installed TVM for each known defect, each in a worker: TVM may crash."""
    jobs = [probe_job(quirk.id) for quirk in QUIRKS]
    with _builder(cache, progress) as builder:
        built = builder.build(jobs)
    return [(quirk, read_probe(built[job.key])) for quirk, job in zip(QUIRKS, jobs, strict=True)]


def _builder(cache: Path, progress: Progress, limits: Limits | None = None) -> Builder:
    def watch(job: Job, state: str, seconds: float) -> None:
        progress.build(job.title, state, seconds)

    return Builder(cache, limits or Limits(), watch=watch)


class LlmBench:
    """One library, its tests, and a session that lasts until one of them ends badly. A context manager."""

    def __init__(
        self, request: LlmRequest, variant: Variant, device: Device, origin: Origin, host_triple: str | None
    ) -> None:
        self._request, self._variant, self._device, self._origin = request, variant, device, origin
        half = no_half(origin.identity) if variant.form.dtype == "float16" else ""
        self.unsupported = UNSUPPORTED_PATHS.get(variant.path, half)
        """Why the device cannot run it; empty if it may."""
        self.job = LlmBuild.of(variant, request.quirks, host_triple).job(variant.title)
        self._stack = contextlib.ExitStack()
        self._loaded: tuple[Session, Conversation, Loading] | None = None
        self._weights_bytes: int | None = None

    def __enter__(self) -> LlmBench:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, test: LlmTest, built: object, progress: Progress) -> Record:
        """Carry one test to its record. Never raises for what the library or the device does wrong."""
        case = self._variant.case(test)
        step = partial(progress.step, case.id)
        recording = Recording(case, self._origin, artifact=self.job.key, quirks=self._request.quirks, advice=ADVICE)
        recording.note(quick=self._request.budget.quick)
        recording.facts.add(self._part(test))
        with recording:
            artifact = self._require(built)
            recording.facts.add(artifact)
            require_support(artifact, self._origin.identity)
            step(RunStep.LOADING)
            session, conversation, loading = self._load(artifact)
            recording.facts.add(loading)
            step(RunStep.FIRST_RUN)
            verdict = self._judge(test, conversation, recording)
            recording.facts.add(session.peak_memory(timeout_s=self._request.limits.run_s))
            if verdict.right:
                step(RunStep.SAMPLING)
                self._time(test, conversation, verdict, recording)
        if recording.facts.failure:
            self._end()
        step("")
        return recording.record

    def _require(self, built: object) -> Artifact:
        if self.unsupported:
            raise Unsupported(self.unsupported)
        if isinstance(built, Failure):
            raise built
        assert isinstance(built, Artifact)
        return built

    def _judge(self, test: LlmTest, conversation: Conversation, recording: Recording) -> LlmVerdict:
        verdict = verify(test, conversation, self._truth)
        assert verdict.accuracy
        recording.facts.add(self._part(test, verdict))
        recording.facts.add(verdict.accuracy)
        recording.facts.add(Judgement(NAME, ""))
        if self._truth.tolerance > MOST_ROUNDING:
            recording.facts.add(
                Vacuity([f"logits are lost in rounding, which may move them by {self._truth.tolerance:.2g}"])
            )
        return verdict

    def _time(self, test: LlmTest, conversation: Conversation, verdict: LlmVerdict, recording: Recording) -> None:
        timed = TimedStep(conversation, DECODE if test.decodes else PREFILL_AGAIN)
        tokens = text(self._variant.model.config, test.depth + test.tokens)
        conversation.restart()
        conversation.fill(tokens[: test.depth])
        conversation.step(timed.step, tokens[test.depth :])
        launches = None
        with contextlib.suppress(RigFailure):  # without the probe
            launches = timed.launches()
        timing, steadiness = self._device.steadily(lambda: measure(timed, self._request.budget), ThermalLimits())
        recording.facts.add(Latency(timing, None, steadiness))
        recording.facts.add(self._part(test, verdict, timing.wall_ms, launches))

    @cached_property
    def _truth(self) -> LlmTruth:
        length = max(test.length for test in self._request.tests)
        return LlmTruth(self._variant.model.config, self._variant.model.weights, self._variant.form, length)

    def _load(self, artifact: Artifact) -> tuple[Session, Conversation, Loading]:
        """Return the session, a conversation with the library in it, and what loading cost."""
        if self._loaded is None:
            timeout_s, model = self._request.limits.run_s, self._variant.model
            folder = weights_folder(model.weights, model.config, self._variant.form, self._request.cache)
            files = {file: sha256_of(file) for file in sorted(folder.iterdir()) if not file.name.startswith(".")}
            session = self._stack.enter_context(self._device.session({}, timeout_s=timeout_s))
            assert isinstance(session, RpcSession)
            machine = load_machine(session, artifact.loadable, timeout_s=timeout_s)
            weights = machine.parameters(files, PREFIX, len(artifact.compiled.inputs), timeout_s=timeout_s)
            self._weights_bytes = sum(file.stat().st_size for file in files)
            loading = Loading(machine.init_ms, machine.pushed.sent_bytes)
            self._loaded = session, Conversation(machine, weights, timeout_s), loading
        return self._loaded

    def _end(self) -> None:
        self._loaded = None
        with contextlib.suppress(Failure):  # of a process that is to end anyway
            self._stack.close()

    def _part(
        self,
        test: LlmTest,
        verdict: LlmVerdict | None = None,
        wall_ms: Sequence[float] = (),
        launches: int | None = None,
    ) -> LlmPart:
        typical_ms = median(wall_ms) if wall_ms else None
        return LlmPart(
            model=self._variant.model.name,
            format=self._variant.form.name,
            pipeline=self._variant.pipeline,
            test=test.name,
            parameters=self._variant.model.config.parameters,
            weights_bytes=self._weights_bytes,
            launches=launches,
            tokens=test.tokens,
            depth=test.depth,
            tokens_per_s=1e3 * test.tokens / typical_ms if typical_ms else None,
            first_token_ms=None if test.decodes or test.depth else typical_ms,
            error=verdict.accuracy.max_rel_err if verdict and verdict.accuracy else None,
            divergence=verdict.divergence if verdict else None,
            invariants=verdict.invariants if verdict else {},
        )
