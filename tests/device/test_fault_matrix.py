"""Every fault that a rig meets, injected into a case: its outcome, how soon it is noticed, and that the next case runs.

The rows are printed as a table at the end of a test run (tests/conftest.py).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import suites
from programs import LONG_NAP
from waiting import eventually

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable, Rung
from device_runner.failures import Failure
from device_runner.recovery import rungs
from device_runner.recovery.ladder import Attempt, Recovery, RecoveryStep, T
from device_runner.rpc_server import server
from device_runner.stand_ins.virtual import VirtualPhone
from device_runner.transport.adb_transport import AdbTransport
from device_runner.transport.base import boot_of
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record, RecordFile
from harness.measure.runner import missing_plans, run_suite, settled_by
from harness.measure.tuning import TuningStore

pytestmark = pytest.mark.device

FOLDER = "data/local/tmp/adreno-bench"

NAP_US = 20_000
"""One inference of a case, so that its samples take half a second."""

DEAD_S = 5.0
"""A device that is gone is noticed within."""
FROZEN_S = suites.TIMEOUT_S + 1.0
"""One that does not answer is noticed within: the operation's deadline and a second."""
BUSY_S = 10.0
"""What a machine that is busy with other things may add to these; deadlines that were forgotten are longer."""


class Watched(Recovery):
    """Notes when each attempt ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[float] = []

    def retry(
        self, attempt: Attempt[T], rungs: Sequence[Rung], tell: Callable[[str], object] = lambda rung: None
    ) -> tuple[T, list[RecoveryStep]]:
        def watched() -> tuple[T, Failure | None]:
            try:
                return attempt()
            finally:
                self.ended.append(time.monotonic())

        return super().retry(watched, rungs, tell)


@dataclass(frozen=True)
class Scene:
    """What a fault may spoil; what it changes in this process is undone after the test."""

    phone: VirtualPhone
    patch: pytest.MonkeyPatch
    stack: contextlib.ExitStack


Act = Callable[[Scene], object]


@dataclass(frozen=True)
class Fault:
    """One row: what happens at which step of a case, what heals it, and what should come of it."""

    name: str
    strike: Act
    heal: Act
    heal_after_s: float | None = None
    """Since the strike; None is when the case has ended."""
    at: str = "sampling"
    after_s: float = 0.25
    slow_push: bool = False
    """Whether a push is made to last a second, so that there is a middle."""
    deaf: bool = False
    """Whether the program itself sleeps for ever, and SIGTERM does not end it."""
    of_stand_ins: bool = False
    """Whether only our own `tvm_rpc` can be made to do so, and TVM's cannot."""
    outcome: Outcome = Outcome.OK
    rung: str = ""
    """The one that brought the device back."""
    because: str = ""
    """What the record says was being done when the device was lost."""
    within_s: float = DEAD_S


class Striker(SilentProgress):
    """Injects a fault when the case comes to its step for the first time, and heals it."""

    def __init__(self, row: Fault, scene: Scene) -> None:
        self._row, self._scene = row, scene
        self._timers: list[threading.Timer] = []
        self.struck_at = math.inf

    def step(self, case_id: str, step: str) -> None:
        if self._timers or not case_id.startswith("struck") or step != self._row.at:
            return
        if self._row.slow_push:
            self._scene.phone.fault(bytes_per_s=20_000)
        self._after(self._row.after_s, self._strike)

    def _strike(self) -> None:
        self.struck_at = time.monotonic()
        self._row.strike(self._scene)
        if self._row.heal_after_s is not None:
            self._after(self._row.heal_after_s, self.heal)

    def heal(self) -> None:
        self._row.heal(self._scene)
        self._scene.phone.fault(bytes_per_s=None)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, act)
        self._timers.append(timer)
        timer.start()
        if not seconds:
            timer.join()

    def wait(self) -> None:
        for timer in self._timers:
            timer.join()


def fault(**changes: object) -> Act:
    return lambda scene: scene.phone.fault(**changes)


def state(**changes: object) -> Act:
    return lambda scene: scene.phone.update(**changes)


def nothing(scene: Scene) -> None:
    """It heals by itself, or never."""


def replug_as(**faults: object) -> Act:
    """Unplug, and plug in again with another fault."""

    def act(scene: Scene) -> None:
        scene.phone.fault(offline=True)
        time.sleep(0.2)  # the daemon looks at its faults every 0.05 s
        scene.phone.fault(offline=False, **faults)

    return act


def kill_adb_server(scene: Scene) -> None:
    adb_server_of(scene.phone).kill()


def reboot(scene: Scene) -> None:
    adb_of(scene.phone).reboot(timeout_s=DEAD_S)


def kill_rpc_server(scene: Scene) -> None:
    for process in children():
        if "tvm_rpc.server" in cmdline(process) or "/tvm_rpc server" in cmdline(process):  # ours, or TVM's own
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def take_port(scene: Scene) -> None:
    """The first port that is tried has a listener already."""
    listener = scene.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    try_ports(scene, listener.getsockname()[1])


def race_for_port(scene: Scene) -> None:
    """Nobody answers at the first port that is tried, and yet it cannot be had."""
    port = random.choice(server.PORTS)
    scene.phone.fault(taken_ports=(port, port))
    try_ports(scene, port)


def try_ports(scene: Scene, first: int) -> None:
    ports = itertools.chain([first], random.sample(server.PORTS, 100))  # other runs of this test use the same host
    scene.patch.setattr("device_runner.rpc_server.server.secrets.choice", lambda _: next(ports))


def jump_clocks(scene: Scene) -> None:
    """Years ahead on this host, years back on the device."""
    scene.patch.setattr(time, "time", lambda: time.monotonic() + 2e9)
    scene.phone.fault(clock_jump_s=-200_000_000)


def end_scene(scene: Scene) -> None:
    scene.stack.close()


FAULTS = [
    Fault(
        "unplugged in push, plugged in again",
        fault(offline=True),
        fault(offline=False),
        heal_after_s=1.0,
        at="loading",
        slow_push=True,
        rung="reconnect",
        because="push lib.so",
    ),
    Fault(
        "unplugged in set-up, plugged in again",
        fault(offline=True),
        fault(offline=False),
        heal_after_s=1.0,
        at="preparing",
        after_s=0.1,
        rung="reconnect",
    ),
    Fault(
        "unplugged in a sample, plugged in again",
        fault(offline=True),
        fault(offline=False),
        heal_after_s=1.0,
        rung="reconnect",
    ),
    Fault("adb server killed", kill_adb_server, nothing, rung="restart adb"),
    Fault(
        "unauthorised, then authorised",
        replug_as(unauthorized=True),
        fault(unauthorized=False),
        heal_after_s=1.0,
        rung="reconnect",
    ),
    Fault(
        "frozen daemon, thawed",
        fault(frozen=True),
        fault(frozen=False),
        heal_after_s=FROZEN_S + BUSY_S,  # after the first look, also when that comes late
        rung="reconnect",
        within_s=FROZEN_S,
    ),
    Fault(
        "adb connect that lies",
        replug_as(hollow=True),
        fault(hollow=False),
        heal_after_s=1.5,
        rung="reconnect",
    ),
    Fault("RPC server killed", kill_rpc_server, nothing, outcome=Outcome.DEVICE_CRASH),
    Fault(
        "hung in a kernel, deaf to SIGTERM",
        nothing,
        nothing,
        at="first run",
        after_s=0,
        deaf=True,
        outcome=Outcome.HANG,
        within_s=FROZEN_S,
    ),
    Fault("port taken", take_port, end_scene, at="preparing", after_s=0),
    Fault(
        "port taken between look and use",
        race_for_port,
        fault(taken_ports=()),
        at="preparing",
        after_s=0,
        of_stand_ins=True,
    ),
    Fault(
        "device out of space",
        fault(full_after_bytes=1000),
        fault(full_after_bytes=None),
        at="loading",
        after_s=0,
        outcome=Outcome.INFRA_ERROR,
    ),
    Fault(
        "storage read-only",
        fault(read_only=True),
        fault(read_only=False),
        at="loading",
        after_s=0,
        outcome=Outcome.INFRA_ERROR,
    ),
    Fault("clocks of host and device jump", jump_clocks, fault(clock_jump_s=0)),
    Fault("reboot in a sample", reboot, nothing, rung="reconnect"),
    Fault("GPU reset", state(gpu={"resets": 1}), nothing, outcome=Outcome.THROTTLED),
    Fault(
        "thermal event",
        state(gpu={"thermal_level": 2}, thermal_status=3),
        state(gpu={"thermal_level": 0}, thermal_status=0),
        outcome=Outcome.THROTTLED,
    ),
    Fault(
        "wrong runtime, does not load",
        fault(broken_runtime="symbol"),
        fault(broken_runtime=""),
        at="preparing",
        after_s=0,
        of_stand_ins=True,
        outcome=Outcome.INFRA_ERROR,
    ),
    Fault(
        "old runtime, another protocol",
        fault(broken_runtime="handshake"),
        fault(broken_runtime=""),
        at="preparing",
        after_s=0,
        of_stand_ins=True,
        outcome=Outcome.INFRA_ERROR,
    ),
]


@pytest.fixture(scope="module")
def device(running_phone: VirtualPhone) -> AdbDevice:
    phone = running_phone
    return AdbDevice("virtual", adb_of(phone), ["tvm_rpc"], kind="virtual", restart_adb=phone.restart_adb)


@pytest.fixture
def run(device: AdbDevice, tmp_path: Path) -> Run:
    assert device.identity.serial
    return Run(device, TuningStore(tmp_path), recovery=Watched())


@pytest.fixture
def scene(phone: VirtualPhone, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with contextlib.ExitStack() as stack:
        yield Scene(phone, monkeypatch, stack)


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rungs, "RECONNECT_S", 20.0)
    monkeypatch.setattr(rungs, "LOOK_S", 3.0)


@pytest.mark.parametrize("row", FAULTS, ids=[row.name for row in FAULTS])
def test_a_fault_has_its_outcome_and_the_rest_goes_on(
    row: Fault,
    scene: Scene,
    run: Run,
    misbehaving: Loadable,
    deaf: Loadable,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    if row.of_stand_ins and scene.phone.original:
        pytest.skip("only our own tvm_rpc can be made to do so, and this phone runs TVM's")

    def settled(name: str, program: Loadable, given: list[int]) -> Record:
        return run_with_recovery(suites.plan(name), suites.built(name, program, given, tmp_path), run, striker)

    striker = Striker(row, scene)
    naps = [NAP_US, 0, 0]
    struck = settled("struck", deaf, [LONG_NAP, signal.SIGTERM]) if row.deaf else settled("struck", misbehaving, naps)
    striker.wait()
    striker.heal()
    after = settled("after", misbehaving, naps)

    assert striker.struck_at < math.inf, struck
    noticed_s = noticed_after(run, striker.struck_at)
    recovered = struck.recovery[-1].rung if struck.recovery and struck.recovery[-1].recovered else ""
    harmless = struck.outcome is Outcome.OK and not struck.recovery
    told = (row.name, struck.outcome.value, "-" if harmless else f"{noticed_s:.1f}", recovered or "-")
    record_property("fault", told)
    assert (struck.outcome, recovered) == (row.outcome, row.rung), struck
    assert not row.because or row.because in struck.recovery[0].because
    assert bool(struck.recovery) is bool(row.rung)
    assert noticed_s <= row.within_s + BUSY_S
    assert after.outcome is Outcome.OK, after
    assert eventually(lambda: not left_over(scene.phone)), left_over(scene.phone)


def test_a_device_that_stays_away_is_given_up_and_used_again_when_it_is_back(
    phone: VirtualPhone,
    run: Run,
    misbehaving: Loadable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    def settled(name: str) -> Record:
        return run_with_recovery(
            suites.plan(name), suites.built(name, misbehaving, [NAP_US, 0, 0], tmp_path), run, SilentProgress()
        )

    monkeypatch.setattr(rungs, "RECONNECT_S", 1.0)
    monkeypatch.setattr(rungs, "RESTART_S", 1.0)
    began = time.monotonic()
    phone.fault(offline=True)
    struck = settled("struck")
    noticed_s = noticed_after(run, began)
    assert struck.outcome is Outcome.DEVICE_LOST
    assert [(step.rung, step.recovered) for step in struck.recovery] == [
        ("retry", False),
        ("reconnect", False),
        ("restart adb", False),
    ]
    assert run.recovery.quarantine
    for name in ("second", "third"):
        began = time.monotonic()
        record = settled(name)
        assert record.outcome is Outcome.DEVICE_LOST
        assert record.message == f"the device has been lost since {run.recovery.quarantine.since}: {struck.message}"
        assert record.recovery == []
        assert time.monotonic() - began < DEAD_S + BUSY_S
    phone.fault(offline=False)
    # adb sees a phone a moment after it is plugged in, and each case looks once.
    assert eventually(lambda: settled("back").outcome is Outcome.OK)
    assert run.recovery.quarantine is None
    told = ("unplugged for good, then plugged in again", struck.outcome.value, f"{noticed_s:.1f}", "a later look")
    record_property("fault", told)
    assert noticed_s <= DEAD_S + BUSY_S
    assert eventually(lambda: not left_over(phone)), left_over(phone)


def test_a_reboot_is_waited_for_until_android_is_up(phone: VirtualPhone, device: AdbDevice) -> None:
    if not phone.sandboxed:
        pytest.skip("without a sandbox the boot id is the host's")
    before = boot_of(adb_of(phone), timeout_s=DEAD_S)
    rungs.reboot(adb_of(phone), 30)
    assert boot_of(adb_of(phone), timeout_s=DEAD_S) not in ("", before)
    rungs.look(adb_of(phone), DEAD_S)


def test_resuming_completes_exactly_what_faults_left_open(
    phone: VirtualPhone, run: Run, misbehaving: Loadable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["crashes", "first", "second", "third"]
    plans = [suites.plan(name) for name in names]
    built = {
        key: thing
        for name in names
        for key, thing in suites.built(
            name, misbehaving, [NAP_US, signal.SIGSEGV if name == "crashes" else 0, 0], tmp_path
        ).items()
    }
    for name in ("RECONNECT_S", "RESTART_S"):
        monkeypatch.setattr(rungs, name, 0.2)

    class Unplugger(SilentProgress):
        def step(self, case_id: str, step: str) -> None:
            phone.fault(offline=case_id.startswith("second"))

    file = RecordFile(tmp_path / "records.jsonl")
    once = [record.outcome for record in run_suite(plans, run, suites.Prebuilt(built), file, Unplugger())]
    assert once == [Outcome.DEVICE_CRASH, Outcome.OK, Outcome.DEVICE_LOST, Outcome.DEVICE_LOST]
    phone.fault(offline=False)
    left = _left(plans, run, file)
    assert left == plans[2:]
    assert [record.outcome for record in run_suite(left, run, suites.Prebuilt(built), file)] == [Outcome.OK] * 2
    settled = [record.model for record in file.load().records if record.outcome.conclusive]
    assert sorted(settled) == sorted(names)
    assert _left(plans, run, file) == []


def _left(plans: Sequence[Plan], run: Run, file: RecordFile) -> list[Plan]:
    """What `--resume` would run."""
    with RecordIndex(file.path) as kept:
        return missing_plans(plans, settled_by(plans, run.origin, kept))


def noticed_after(run: Run, struck_at: float) -> float:
    """Seconds from a fault to the end of the attempt that it struck."""
    assert isinstance(run.recovery, Watched)
    return next(ended for ended in run.recovery.ended if ended > struck_at) - struck_at


def adb_of(phone: VirtualPhone) -> AdbTransport:
    return AdbTransport(phone.serial, phone.adb_server, phone.root)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def cmdline(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def adb_server_of(phone: VirtualPhone) -> psutil.Process:
    for child in children():
        with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess):
            if "nodaemon" in child.cmdline() and child.environ()["HOME"] == str(phone.home / "adb"):
                return child
    raise AssertionError("there is no adb server")


def left_over(phone: VirtualPhone) -> list[str]:
    """Relays, servers and their keepers that still run on host or device, and files that belong to no case."""
    running = [line for line in map(cmdline, children()) if "relay_process" in line or "tvm_rpc" in line]
    ours = phone.home / FOLDER
    return running + [str(file) for glob in ("files/*.tmp.*", "scratch/*", ".cache/*") for file in ours.glob(glob)]
