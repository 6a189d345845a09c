"""Many cases on a device that fails at random: does each end in one record with a true outcome, and what is left over?

    nice python -m benchmarks.soak [CASES] [RATE] [DEVICE] [SEED]

The network `tiny` is built once for each of two paths; the cases are these two artifacts under many names, tuned so
that a session need not compile their kernels. At RATE of its operations over adb (commands, pushes, connections to
ports) the virtual device drops the connection, refuses, freezes, kills the RPC server's worker or fails the push, and
says so. On a phone, with RATE 0, only the leaks are looked for. Exits with 1 if an outcome is not explained by what was
injected, or if anything is left over.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
from tabulate import tabulate

from device_runner.adb_device import AdbDevice
from device_runner.deadline import Deadline
from device_runner.failures import Failure
from device_runner.recovery.rungs import reconnect
from device_runner.registry import VIRTUAL, open_device
from device_runner.stand_ins.virtual import Faults, faults
from device_runner.stand_ins.virtual.faults import Chance
from device_runner.stand_ins.virtual.phone import FAULTS_JSON, INJECTED_JSONL
from device_runner.store import cache_root
from device_runner.transport.adb_transport import AdbTransport
from harness.base.case import Tuning
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.base.suite import Limits, Suite
from harness.compile.artifacts.artifact import Built
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record, RecordFile
from harness.measure.tuning import TuningStore

FREEZE_S = 1.0
CALL_S = 30.0
COMMAND_LIMIT = 200
WARM_UP = 6
"""Cases without faults that come first: libraries are loaded and artifacts pushed before anything is counted."""
GROWTH_MB = 40.0
"""Host memory that may be gained over a soak: Python and TVM keep some of what they once had."""
HEALING_S = 30.0
SETTLING_S = 60.0
GOES_BY_ITSELF = {"host_fds", "host_threads", "host_children", "adb_forwards", "device_processes"}
"""What is given `SETTLING_S` to go: a session that was cut off ends on the device, in its own time."""

EXPLAINS = {
    "drop": {Outcome.DEVICE_LOST},
    "refuse": {Outcome.DEVICE_LOST, Outcome.INFRA_ERROR},
    "freeze": {Outcome.DEVICE_LOST},
    "error": {Outcome.DEVICE_LOST, Outcome.INFRA_ERROR},
    "full": {Outcome.INFRA_ERROR},
    "crash": {Outcome.DEVICE_CRASH, Outcome.INFRA_ERROR},
}
"""What a case may have come to, besides `ok`, if this struck one of its operations."""


@dataclass(frozen=True)
class Footprint:
    """What is there because of us, on this host and on the device."""

    host_fds: int
    host_threads: int
    host_children: int
    host_memory_mb: float
    adb_forwards: int
    device_processes: int
    device_files: int
    device_kb: int


@dataclass(frozen=True)
class Soak:
    """What came of a soak."""

    records: list[Record]
    injected: Counter[str]
    untrue: list[str]
    """Cases whose outcome, or whose recovery, nothing that was injected explains."""
    before: Footprint
    after: Footprint
    running: list[str]
    """The processes under this one at the end: those that are left over are among them."""
    took_s: float

    @property
    def twice(self) -> list[str]:
        """Cases that ended in more than one record."""
        return [case for case, count in Counter(record.case for record in self.records).items() if count > 1]

    @property
    def left_over(self) -> list[str]:
        """What grew."""
        return grown(self.before, self.after)


@dataclass(frozen=True)
class VirtualFaults:
    """The faults of the virtual phone in this folder."""

    home: Path

    def begin(self, rate: float, seed: int) -> None:
        """Strike operations by chance from now on."""
        chance = Chance(seed, rate, FREEZE_S) if rate else None
        faults.write(self.home / FAULTS_JSON, Faults(chance=chance))

    def injected(self) -> list[tuple[float, str]]:
        """Return when (Unix time) what was injected, so far."""
        lines = map(json.loads, (self.home / INJECTED_JSONL).read_text().splitlines())
        return [(line["time_s"], line["what"]) for line in lines]


def soak(
    plans: Sequence[Plan], built: Built, run: Run, chance: VirtualFaults | None, rate: float, seed: int
) -> Iterator[Record | Soak]:
    """Settle all cases, the first of them without faults; yields each record, and what came of it all at the end."""
    device = run.device
    assert isinstance(device, AdbDevice)
    for plan in plans[:WARM_UP]:
        run_with_recovery(plan, built, run, SilentProgress())
    before = footprint(device)
    if chance:
        chance.begin(rate, seed)
    started = time.monotonic()
    spans: list[tuple[Record, float, float]] = []
    for plan in plans[WARM_UP:]:
        began = time.time()
        record = run_with_recovery(plan, built, run, SilentProgress())
        spans.append((record, began, time.time()))
        yield record
    took_s = time.monotonic() - started
    injected = chance.injected() if chance else []
    if chance:
        chance.begin(0, seed)
    reconnect(device.adb, HEALING_S)
    yield Soak(
        [record for record, _, _ in spans],
        Counter(what for _, what in injected),
        [complaint for span in spans if (complaint := untrue(*span, injected))],
        before,
        wait_until_settled(device, before),
        running(),
        took_s,
    )


def untrue(record: Record, began: float, ended: float, injected: Sequence[tuple[float, str]]) -> str:
    """Return what is not true of a record, given what was injected while its case ran; empty if all is."""
    struck = {what for at, what in injected if began - FREEZE_S - 0.1 <= at <= ended + 0.1}
    explained = {Outcome.OK}.union(*(EXPLAINS[what] for what in struck))
    by = ", ".join(sorted(struck)) or "nothing"
    if record.outcome not in explained:
        return f"{record.case}: {record.outcome.value} ({record.message}), though struck by {by}"
    if record.recovery and not struck:
        return f"{record.case}: recovered from {record.recovery[0].because}, though struck by nothing"
    return ""


def wait_until_settled(device: AdbDevice, before: Footprint) -> Footprint:
    """Return the footprint once all has gone that goes by itself, or at the deadline. Raises `Failure`."""
    after = footprint(device)
    for _ in Deadline(SETTLING_S).attempts(0.3):
        if not GOES_BY_ITSELF.intersection(grown(before, after)):
            break
        after = footprint(device)
    return after


def grown(before: Footprint, after: Footprint) -> list[str]:
    """Return what there is more of."""
    allowed = {"host_memory_mb": GROWTH_MB}
    now = asdict(after)
    return [name for name, was in asdict(before).items() if now[name] > was + allowed.get(name, 0)]


def running() -> list[str]:
    """Return a line for each process under this one. The virtual phone's are among them."""
    lines = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            words = " ".join(process.cmdline()) or process.name()
            lines.append(f"{process.pid} of {process.ppid()}, {process.status()}: {words[:COMMAND_LIMIT]!r}")
    return lines


def footprint(device: AdbDevice) -> Footprint:
    """Count, here and there. Raises `Failure`."""
    gc.collect()  # TVM's virtual machine lies in a cycle, and holds a socket that nobody listens to any more
    adb, us = device.adb, psutil.Process()
    return Footprint(
        us.num_fds(),
        threading.active_count(),
        len(us.children(recursive=True)),
        round(us.memory_info().rss / 1e6, 1),
        len(adb.ask_server("host:list-forward", timeout_s=CALL_S).splitlines()),
        _count(adb, "n=0; for process in /proc/[0-9]*; do n=$((n + 1)); done; echo $n"),
        _count(adb, f"find {adb.root} -type f | wc -l"),
        _count(adb, f"du -sk {adb.root} | cut -f1"),
    )


def _count(adb: AdbTransport, script: str) -> int:
    return int(adb.shell(["sh", "-c", script], timeout_s=CALL_S).stdout.split()[0])


def main(cases: str = "200", rate: str = "0.1", name: str = VIRTUAL, seed: str = "1") -> None:
    """Soak a device and print the figures."""
    cache = cache_root()
    suite = Suite(
        models=["tiny"],
        paths=["opencl", "texture"],
        tunings=[Tuning.TUNED],  # kernels are compiled in the first session, and not in each
        budget_s=0.3,
        samples=10,
        limits=Limits(run_s=CALL_S),
    )
    with (
        tempfile.TemporaryDirectory() as scratch,
        open_device(name, cache) as device,
        Builder(cache, suite.limits) as builder,
    ):
        if not isinstance(device, AdbDevice) or (float(rate) and name != VIRTUAL):
            raise SystemExit("a soak needs a device behind adb, and RATE 0 if it is not the virtual one")
        planned = [plan_case(suite, case, device.identity, cache) for case in suite.cases]
        built = builder.build(job for plan in planned for job in plan.jobs)
        plans = [_rename(planned[i % len(planned)], i) for i in range(WARM_UP + int(cases))]
        run = Run(device, TuningStore(cache))
        file = RecordFile(Path(scratch) / "records.jsonl")
        chance = VirtualFaults(cache / VIRTUAL) if name == VIRTUAL else None
        for came in soak(plans, built, run, chance, float(rate), int(seed)):
            if isinstance(came, Record):
                file.append(came)
            else:
                sys.exit(_print(replace(came, records=file.load().records)))


def _rename(plan: Plan, number: int) -> Plan:
    return replace(plan, case=replace(plan.case, model=f"{plan.case.model}_{number:03d}"))


def _print(came: Soak) -> bool:
    soaked = came.records
    climbed = Counter(step.rung for record in soaked for step in record.recovery if step.recovered)
    noticed = [step.noticed_s for record in soaked for step in record.recovery]
    print(f"{len(soaked)} cases in {came.took_s:.0f} s")
    print("injected  ", _counts(came.injected), f"({came.injected.total()} in all)")
    print("outcomes  ", _counts(Counter(record.outcome.value for record in soaked)))
    print("brought back by", _counts(climbed))
    print(f"an attempt that was lost had gone on for at most {max(noticed, default=0):.1f} s")
    print(f"more than one record: {len(came.twice)}; not explained by what was injected: {len(came.untrue)}")
    after = asdict(came.after)
    print(tabulate([(name, was, after[name]) for name, was in asdict(came.before).items()], ("", "before", "after")))
    print("left over: " + (", ".join(came.left_over) or "nothing"))
    print("\n".join(came.untrue + (came.running if came.left_over else [])))
    return bool(came.twice or came.untrue or came.left_over)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "nothing"


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as failure:
        sys.exit(str(failure))
