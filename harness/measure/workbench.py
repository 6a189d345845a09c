"""One request, opened into all that a run needs: the device, held by us, the plans, and what builds for them.

Every command that runs or builds cases comes through here, and so do asv's benchmarks and the pytest plugin.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from device_runner import registry, selection
from device_runner.device import ADRENO_LOCAL_BYTES, Device, Identity, Permission
from device_runner.failures import Failure
from device_runner.names import load
from device_runner.runtimes import clml as clml_runtime
from device_runner.runtimes import host
from device_runner.runtimes.cross_linker import TRIPLES
from device_runner.store import cache_root
from device_runner.workers import DeviceSource, Processes, WorkerPool
from harness.base.case import NO_AXES, Axes, Case
from harness.base.failures import UsageError
from harness.base.model import Model, OnnxModel, words_given
from harness.base.plan import Job, Plan
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.base.suite import Suite, choose, suite_of
from harness.base.tool import place_of
from harness.compile.artifacts.planner import check, plan_case, plan_oracle, require_operators
from harness.compile.artifacts.pool import Builder, shared_store
from harness.compile.compiler.releases import harness_version, require_working_pair, versions
from harness.compile.paths import family_of
from harness.measure.case_worker import Settings, run_cases
from harness.measure.context import Origin, Run, new_id
from harness.measure.device_watch import DeviceWatch
from harness.measure.progress import Progress, ProgressTee
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import NO_DEVICE, Record, RecordFile
from harness.measure.runner import Prefetcher, SuiteRun, missing_plans, own_suite, settled_by
from harness.measure.tuning import TuningStore

STORE = "ADRENO_BENCH_STORE"
"""Environment: URL of the store that hosts share, where the suite names none."""


@dataclass(frozen=True)
class Request:
    """Cases of a suite and the workarounds to use, for any device."""

    suite: Suite
    cases: Sequence[Case]
    cache: Path
    quirks: QuirkPolicy = WORKED_AROUND
    quick: bool = False
    """Take the fewest samples, for a first look; only on an emulated device."""
    sustain_s: float = 0.0
    """If not 0, each case is kept running for so long instead of being sampled."""
    repeat: int = 1
    """Inferences that are judged before any is timed, each on a draw of the inputs of its own."""
    models: str = ""
    """Options that name its suite and models, for the commands in hints: ` --model FILE`."""
    builders: str | None = None
    """Address of a Dask scheduler whose workers build."""
    schedules: Path | None = None
    """File of schedules that was given instead of the suite's."""

    @classmethod
    def read(
        cls,
        suite_file: Path,
        globs: Sequence[str] | None,
        quirks: QuirkPolicy = WORKED_AROUND,
        *,
        models: Sequence[Model] = (),
        axes: Axes = NO_AXES,
        schedules: Path | None = None,
        quick: bool = False,
        sustain_s: float = 0.0,
        repeat: int = 1,
        builders: str | None = None,
    ) -> Request:
        """Read the suite and choose its cases by globs. No device is opened.

        With `models` and `axes`, these stand in place of its own; with models there need be no file. With `schedules`,
        that file stands in place of the one that it names. Raises UsageError, SetupMissing.
        """
        harness_version()  # in every record: without it the run would fail when everything is built
        require_working_pair(versions())
        suite, cache = suite_of(suite_file, models).on(axes), cache_root()
        if schedules:
            suite = suite.model_copy(update={"schedules": schedules})
        cases = choose(suite, globs, axes)
        suite = suite.model_copy(update={"store": suite.store or os.environ.get(STORE)})
        if builders:
            _require_scheduler(builders, suite, suite_file)
        check(suite, cases, cache)
        if models:
            require_operators(suite, cases, cache)
        other = suite_file.exists() and suite_file.name != "adreno-bench.toml"  # which a command finds in its folder
        where = ["--suite", str(suite_file)] if other else []
        words = "".join(f" {shlex.quote(word)}" for word in (*where, *words_given(models)))
        return cls(suite, cases, cache, quirks, quick, sustain_s, repeat, words, builders, schedules)

    @property
    def paths(self) -> set[str]:
        """Paths of its cases."""
        return {case.path for case in self.cases}

    def plans(self, identity: Identity) -> list[Plan]:
        """Return the cases, planned for a device. Raises UsageError for a quick look at one that is not emulated."""
        if self.quick and "gpu" not in identity.emulated:
            raise UsageError(
                f"{identity.gpu or identity.serial} is not emulated, and --quick is for emulated devices",
                hint="leave --quick out",
            )
        how: dict[str, Any] = {"quick": self.quick, "sustain_s": self.sustain_s, "repeat": self.repeat}
        named = tuple(shlex.split(self.models))
        scheduled = (*named, "--schedules", str(self.schedules)) if self.schedules else named
        plans = (plan_case(self.suite, case, identity, self.cache, self.quirks, **how) for case in self.cases)
        return [replace(p, model_options=scheduled if p.case.tuning.scheduled else named) for p in plans]

    def oracles(self) -> list[Job]:
        """Return the jobs of the oracle. They are the same on every device, so they can run before one is open."""
        return [plan_oracle(self.suite, model, self.cache) for model in dict.fromkeys(c.model for c in self.cases)]

    def one_device(self, words: str, progress: Progress) -> str:
        """Resolve a name or labels to the name of one device. Raises `AmbiguousDevice`, `UnknownDevice`."""
        return selection.select_one(words, self.cache, progress.say)

    def builder(self, progress: Progress) -> Builder:
        """Return what builds for the plans; a context manager."""
        shared, remote = shared_store(self.suite.store, progress.say), None
        if self.builders and shared:
            place = place_of("remote_builders")
            remote = load(place)(self.builders, shared, progress.say)
        return Builder(self.cache, self.suite.limits, watch=progress.build, shared=shared, remote=remote)


@dataclass(frozen=True)
class Workbench:
    """A request on a device that this process holds."""

    request: Request
    run: Run
    plans: list[Plan]
    builder: Builder

    @property
    def device(self) -> Device:
        """The device."""
        return self.run.device


@dataclass(frozen=True)
class RunResults:
    """Records of a run, model by model."""

    records: tuple[Record, ...]
    settled: tuple[Record, ...] = ()
    """Those of earlier runs, in place of the cases that were not run again."""
    lost: Mapping[str, Failure] = field(default_factory=dict)
    """Devices that could not be opened or were lost."""

    @property
    def new(self) -> list[Record]:
        """Those that were measured, not taken from earlier runs."""
        earlier = set(map(id, self.settled))
        return [record for record in self.records if id(record) not in earlier]


@dataclass(frozen=True)
class PlannedRequest:
    """A request planned for a device on which nothing will be run."""

    identity: Identity
    plans: list[Plan]
    builder: Builder


def _require_scheduler(address: str, suite: Suite, suite_file: Path) -> None:
    """Raise UsageError for what is no address of Dask, or a suite without a store, or with functions of this host."""
    if not re.fullmatch(r"(tcp|tls|ucx|wss?)://[^/\s]+:\d+", address):
        raise UsageError(f"{address} is not the address of a scheduler", hint="pass --builders tcp://HOST:8786")
    if any(isinstance(model, OnnxModel) and model.score for model in suite.models):
        hint = "leave one of them out"
        raise UsageError("--builders does not go with `score`, whose function other hosts lack", hint=hint)
    if not suite.store:
        hint = f'{suite_file}: store = "s3://BUCKET/NAME", or "file:///FOLDER" that all hosts have'
        raise UsageError("--builders needs a store that hosts share", hint=hint)


def devices_behind(tracker: str) -> DeviceSource:
    """Return the devices of other hosts, behind the tracker at HOST:PORT. Raises UsageError for no address."""
    place = place_of("remote_devices")
    source: DeviceSource = load(place)(tracker)
    return source


def opening(names: Sequence[str], cache: Path) -> str:
    """Print that devices are opened, and what takes long at first. Raises SetupMissing without a C++ compiler."""
    new = any(map(registry.is_built_in, names)) and not host.are_compiled(cache)
    return f"opening {', '.join(names)}" + (f" ({host.COMPILING})" if new else "")


def preparing(paths: Collection[str], cache: Path) -> str:
    """Print that builds are prepared, and what takes long at first. Raises SetupMissing without a C++ compiler."""
    new = "clml" in map(family_of, paths) and clml_runtime.needed() and not clml_runtime.is_built(cache)
    return "preparing to build" + (f" ({host.COMPILING})" if new else "")


def make_ready(paths: Collection[str], cache: Path) -> None:
    """Make what the compile workers need for these paths, once, before the first of them wants it."""
    if "clml" in map(family_of, paths) and clml_runtime.needed():
        clml_runtime.library(cache)


@contextlib.contextmanager
def open_workbench(
    request: Request, name: str, progress: Progress, *, timed: bool = True, allowed: frozenset[Permission] = frozenset()
) -> Iterator[Workbench]:
    """Hold the device of this name and plan the request for it; all is undone when the context ends.

    Raises what opening a device raises.
    """
    cache, step = request.cache, partial(progress.step, f"opening {name}")
    progress.say(opening([name], cache))
    with (
        _builder(request, name, progress) as builder,
        registry.open_device(name, cache, say=progress.say, progress=progress.pushing, step=step) as device,
    ):
        make_ready(request.paths, cache)
        identity = registry.identify(device, step)
        selection.remember_identity(name, identity, cache)
        tunings, as_shipped = TuningStore(cache), request.quirks.as_shipped
        run = Run(device, tunings, as_shipped, timed=timed, allowed=allowed, builder=builder, models=request.models)
        yield Workbench(request, run, request.plans(identity), builder)


@contextlib.contextmanager
def open_suite(
    request: Request,
    names: Sequence[str],
    choose: Callable[[Sequence[Plan], Origin], list[Plan]],
    records: RecordFile,
    progress: Progress,
    *,
    allowed: frozenset[Permission] = frozenset(),
    source: DeviceSource | None = None,
) -> Iterator[SuiteRun]:
    """Yield the suite on devices of this host, or of `source`. This process itself holds a single one of this host.

    `choose` is given the plans for a device and what its records say of their origin, and returns the plans to run.
    Raises what opening the only device raises.
    """
    cache = request.cache
    if len(names) == 1 and not source:
        tee = ProgressTee(progress, partial(registry.tell, names[0], cache))
        watch = DeviceWatch(partial(tee.pulse, names[0]) if tee.watches_devices else None)
        with open_workbench(request, names[0], tee, allowed=allowed) as bench, watch.looking_at(bench.run.device):
            plans, run = choose(bench.plans, bench.run.origin), replace(bench.run, watch=watch)
            with own_suite(plans, run, bench.builder, records, tee) as suite:
                yield suite
        return
    progress.say(opening(names, cache))
    make_ready(request.paths, cache)
    as_shipped, run_id = request.quirks.as_shipped, new_id()
    store, watched = request.suite.store, progress.watches_devices
    settings = Settings(cache, run_id, as_shipped, request.suite.limits, allowed, store, watched)
    origin = Origin("", no_device(), as_shipped, run_id)
    processes = Processes(cache, partial(run_cases, settings), source.open if source else None)

    def plans_for(identity: Identity) -> list[Plan]:
        return choose(request.plans(identity), replace(origin, identity=identity))

    with (
        request.builder(progress) as builder,
        Prefetcher(builder) as prefetcher,
        WorkerPool(names, processes, progress.say) as workers,
    ):
        yield SuiteRun(workers, prefetcher, plans_for, origin, records, progress)


def run_request(
    request: Request,
    names: Sequence[str],
    file: RecordFile,
    progress: Progress,
    *,
    index: RecordIndex | None = None,
    allowed: frozenset[Permission] = frozenset(),
    source: DeviceSource | None = None,
) -> RunResults:
    """Run a request on devices, as `open_suite` does; cases that `index` has settled are not run again."""
    settled: list[Record] = []

    def missing(plans: Sequence[Plan], origin: Origin) -> list[Plan]:
        records_of_plans = settled_by(plans, origin, index) if index else []
        settled.extend(records_of_plans)
        return missing_plans(plans, records_of_plans)

    with open_suite(request, names, missing, file, progress, allowed=allowed, source=source) as suite:
        done = list(suite.run())
    models = list(dict.fromkeys(record.model for record in (*settled, *done)))
    records = sorted([*settled, *done], key=lambda record: models.index(record.model))
    return RunResults(tuple(records), tuple(settled), suite.failures)


@contextlib.contextmanager
def open_to_build(
    request: Request, words: str, progress: Progress, identities: Sequence[Identity] = ()
) -> Iterator[PlannedRequest]:
    """Plan the request for a device of which nothing but its image limits is wanted, or for none (`NO_DEVICE`).

    With `identities`, plan it for such devices in place of that one. Raises what opening a device raises.
    """
    if words != NO_DEVICE and not identities:
        with open_workbench(request, request.one_device(words, progress), progress, timed=False) as bench:
            yield PlannedRequest(bench.device.identity, bench.plans, bench.builder)
        return
    progress.say(preparing(request.paths, request.cache))
    make_ready(request.paths, request.cache)
    chosen = identities or [no_device()]
    plans = {(plan.case.id, plan.compile.key): plan for identity in chosen for plan in request.plans(identity)}
    with request.builder(progress) as builder:
        yield PlannedRequest(chosen[0], list(plans.values()), builder)


def no_device(abi: str = "") -> Identity:
    """Return the identity to build for without a device: the limits that every Adreno since the 5xx reports.

    `abi` is a phone's or a board's processor; empty for this host's. Raises UsageError for another one.
    """
    if abi and abi not in (processors := dict.fromkeys([*TRIPLES, platform.machine()])):
        raise UsageError(f"there is no processor {abi!r}", hint=f"use one of {', '.join(processors)}")
    kind, items = "phone" if abi else NO_DEVICE, 1024  # clinfo of Adreno 735, 740 and 750
    return Identity(kind, NO_DEVICE, abi=abi, work_group_items=items, local_memory_bytes=ADRENO_LOCAL_BYTES)


@contextlib.contextmanager
def _builder(request: Request, name: str, progress: Progress) -> Iterator[Builder]:
    """Yield what builds for the request. On a new machine it asks the oracle while the runtimes are compiled.

    Once they are there nothing is built before the device is ours: somebody may be measuring on this host's cores.
    """
    with ThreadPoolExecutor(1) as pool, request.builder(progress) as builder:
        if registry.is_built_in(name) and not host.are_compiled(request.cache):
            pool.submit(builder.build, request.oracles())
        yield builder
