"""The ladder: which rungs are climbed for which losses, and when a device is given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from fake_device import FakeDevice, Things, a_plan, things
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Permission, Rung
from device_runner.failures import DeviceCrash, DeviceLost, Failure, Hang, LinkFailure, RigFailure
from device_runner.recovery.ladder import Recovery, RecoveryStep, climb
from harness.base.failures import CompilerCrash
from harness.base.outcome import Outcome
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore

NAMES = ("retry", "reconnect", "restart", "reboot")


@dataclass
class Scene:
    """A clock, rungs that help or not, and attempts that lose the device or not; all by script."""

    lost: list[bool]
    helps: dict[str, bool] = field(default_factory=dict)
    rung_s: float = 1.0
    attempt_s: float = 10.0
    now: float = 0.0
    did: list[str] = field(default_factory=list)
    granted: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def rungs(self) -> list[Rung]:
        return [Rung(name, 5.0, partial(self._act, name)) for name in NAMES]

    def _act(self, name: str, timeout_s: float) -> None:
        self.did.append(name)
        self.granted.append(timeout_s)
        self.now += min(self.rung_s, timeout_s)
        if not self.helps.get(name, True):
            raise DeviceLost(f"{name} did not help")

    def attempt(self) -> tuple[int, Failure | None]:
        self.did.append("attempt")
        self.now += self.attempt_s
        number = self.did.count("attempt")
        return number, DeviceLost(f"lost {number}") if self.lost[number - 1] else None

    def climb(self, limit_s: float = 1000.0) -> tuple[int, Failure | None, list[RecoveryStep]]:
        return climb(self.attempt, self.rungs(), limit_s=limit_s, clock=self.clock)


def test_a_case_that_keeps_its_device_climbs_nothing() -> None:
    assert Scene([False]).climb() == (1, None, [])


def test_the_gentlest_rung_that_helps_is_the_last() -> None:
    scene = Scene([True, True, False], helps={"reconnect": False})
    result, lost, steps = scene.climb()
    assert (result, lost) == (3, None)
    assert scene.did == ["attempt", "retry", "attempt", "reconnect", "restart", "attempt"]
    assert [(step.rung, step.because, step.recovered, step.why_not) for step in steps] == [
        ("retry", "lost 1", False, ""),
        ("reconnect", "lost 2", False, "reconnect did not help"),
        ("restart", "lost 2", True, ""),
    ]
    assert [(step.noticed_s, step.took_s) for step in steps] == [(10.0, 1.0)] * 3


def test_a_rung_that_this_host_refuses_is_one_that_did_not_help() -> None:
    def refused(_: float) -> None:
        raise OSError("address already in use")

    _, lost, (step,) = climb(lambda: (None, DeviceLost("gone")), [Rung("restart", 1.0, refused)])
    assert lost
    assert (step.why_not, step.recovered) == ("address already in use", False)


def test_nothing_begins_after_the_limit() -> None:
    scene = Scene([True] * 5, rung_s=60.0)
    _, lost, steps = scene.climb(limit_s=12.0)
    assert lost
    assert scene.did == ["attempt", "retry", "attempt"]
    assert len(steps) == 1


def test_a_rung_gets_no_more_than_what_is_left() -> None:
    scene = Scene([True] * 5, attempt_s=0.0, rung_s=4.0)
    scene.climb(limit_s=6.0)
    assert scene.granted == [5.0, 2.0]


@given(
    lost=st.lists(st.booleans(), min_size=5, max_size=5),
    helps=st.dictionaries(st.sampled_from(NAMES), st.booleans()),
    rung_s=st.integers(0, 20),
    attempt_s=st.integers(0, 20),
    limit_s=st.integers(0, 60),
)
def test_whatever_fails_the_climb_is_ordered_bounded_and_told(
    lost: list[bool], helps: dict[str, bool], rung_s: int, attempt_s: int, limit_s: int
) -> None:
    scene = Scene(lost, helps, rung_s, attempt_s)
    result, failure, steps = scene.climb(limit_s)
    climbed = [name for name in scene.did if name != "attempt"]
    assert climbed == list(NAMES[: len(climbed)]) == [step.rung for step in steps]
    assert result == scene.did.count("attempt")
    assert (failure is not None) == lost[result - 1]
    assert not any(step.recovered for step in steps[:-1])
    assert not steps or steps[-1].recovered == (failure is None)
    assert all(0 <= timeout_s <= 5.0 for timeout_s in scene.granted)
    assert scene.now <= attempt_s + limit_s + 5.0 + attempt_s
    if failure and len(climbed) < len(NAMES):
        assert scene.now - attempt_s >= limit_s


def broken(_: float) -> None:
    raise DeviceLost("still gone")


def well(_: float) -> None:
    pass


@dataclass
class Attempts:
    """Attempts on a device that is lost or not, as a script says."""

    recovery: Recovery
    rungs: Sequence[Rung]
    made: int = 0

    def retry(self, *lost: bool) -> tuple[Failure | None, list[RecoveryStep]]:
        script = iter(lost)

        def attempt() -> tuple[Failure | None, Failure | None]:
            try:
                self.recovery.admit(self.rungs)
            except DeviceLost as lost:
                return lost, lost
            self.made += 1
            failure = DeviceLost("gone") if next(script) else None
            return failure, failure

        return self.recovery.retry(attempt, self.rungs)


def test_a_device_given_up_is_looked_at_once_for_each_case() -> None:
    looks: list[float] = []

    def look(timeout_s: float) -> None:
        looks.append(timeout_s)
        raise DeviceLost("still gone")

    attempts = Attempts(Recovery(), [Rung("retry", 2.0, look), Rung("reconnect", 9.0, broken)])
    attempts.retry(True)
    assert attempts.recovery.quarantine
    since = attempts.recovery.quarantine.since
    for _ in range(3):
        failure, steps = attempts.retry()
        assert str(failure) == f"the device has been lost since {since}: gone"
        assert steps == []
    assert looks == [2.0] * 4
    assert attempts.made == 1


def test_a_device_that_comes_back_is_used_again() -> None:
    attempts = Attempts(Recovery(), [Rung("retry", 2.0, broken)])
    attempts.retry(True)
    attempts.rungs = [Rung("retry", 2.0, well)]
    assert attempts.retry(False) == (None, [])
    assert attempts.recovery.quarantine is None
    failure, steps = attempts.retry(True, False)
    assert failure is None
    assert [step.rung for step in steps] == ["retry"]


def test_a_device_that_comes_and_goes_costs_one_attempt_for_each_case() -> None:
    attempts = Attempts(Recovery(), [Rung("retry", 2.0, well), Rung("reconnect", 2.0, well)])
    attempts.retry(True, True, True)
    for _ in range(4):
        attempts.retry(True)
        assert attempts.recovery.quarantine
    assert attempts.made == 3 + 4


@pytest.fixture
def built(tmp_path: Path) -> Things:
    return things(tmp_path)


def a_run(device: FakeDevice) -> Run:
    return Run(device, TuningStore(Path("/nowhere")))


def settled(device: FakeDevice, built: Things, run: Run | None = None) -> Record:
    return run_with_recovery(a_plan(), built, run or a_run(device), SilentProgress())


def healing(device: FakeDevice, step: str) -> list[Rung]:
    def heal(_: float) -> None:
        device.fails.pop(step, None)

    return [Rung("retry", 1.0, heal)]


@pytest.mark.parametrize("error", [DeviceLost("gone"), LinkFailure("no adb server")])
def test_a_lost_case_is_run_again_and_its_record_tells_how(built: Things, error: Failure) -> None:
    device = FakeDevice(fails={"wall": error})
    device.rungs = healing(device, "wall")
    record = settled(device, built)
    assert record.outcome is Outcome.OK
    assert [(step.rung, step.because, step.recovered) for step in record.recovery] == [("retry", error.message, True)]
    assert Record.model_validate_json(record.line()) == record
    assert device.steps.count("session") == 2


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (DeviceCrash("died"), Outcome.DEVICE_CRASH),
        (Hang("no answer"), Outcome.HANG),
        (RigFailure("no runtime"), Outcome.INFRA_ERROR),
        (ZeroDivisionError("ours"), Outcome.INFRA_ERROR),
    ],
)
def test_what_is_not_a_loss_is_never_tried_again(built: Things, error: Exception, outcome: Outcome) -> None:
    device = FakeDevice(fails={"run": error})
    device.rungs = healing(device, "run")
    record = settled(device, built)
    assert record.outcome is outcome
    assert record.recovery == []
    assert device.steps.count("session") == 1


def test_a_wrong_answer_is_never_tried_again(built: Things) -> None:
    device = FakeDevice(error=0.5, rungs=[Rung("retry", 1.0, well)])
    assert settled(device, built).outcome is Outcome.WRONG_RESULT
    assert device.steps.count("session") == 1


def test_who_watches_hears_what_is_done_for_a_lost_device(built: Things) -> None:
    heard: list[tuple[str, str]] = []

    class Listener(SilentProgress):
        def step(self, case_id: str, step: str) -> None:
            heard.append((case_id, step))

    device = FakeDevice(fails={"session": DeviceLost("unplugged")})
    device.rungs = healing(device, "session")
    run_with_recovery(a_plan(), built, a_run(device), Listener())
    assert ("tiny-opencl-float32-untuned", "device lost: retry") in heard


def test_the_rest_of_a_lost_devices_cases_end_at_once_but_what_the_compiler_did_stays_known(built: Things) -> None:
    device = FakeDevice(fails={"session": DeviceLost("unplugged")}, rungs=[Rung("retry", 1.0, broken)])
    run = a_run(device)
    assert settled(device, built, run).message == "unplugged"
    record = settled(device, built, run)
    assert record.outcome is Outcome.DEVICE_LOST
    assert record.message.startswith("the device has been lost since 20")
    assert record.message.endswith(": unplugged")
    assert device.steps.count("session") == 1
    crashed = settled(device, {**built, "c-tiny": CompilerCrash("died of SIGSEGV")}, run)
    assert crashed.outcome is Outcome.COMPILER_CRASH
    assert run.recovery.quarantine


@pytest.mark.parametrize("allowed", [set(), {Permission.REBOOT}, {Permission.USB_POWER}, set(Permission)])
def test_what_is_drastic_needs_leave_of_its_own(built: Things, allowed: set[Permission]) -> None:
    did: list[str] = []
    rungs = [
        Rung("retry", 1.0, broken),
        Rung("USB power", 1.0, lambda _: did.append("usb-power"), needs=Permission.USB_POWER),
        Rung("reboot", 1.0, lambda _: did.append("reboot"), needs=Permission.REBOOT),
    ]
    device = FakeDevice(fails={"session": DeviceLost("unplugged")}, rungs=rungs)
    settled(device, built, replace(a_run(device), allowed=frozenset(allowed)))
    assert did == [permission.value for permission in Permission if permission in allowed]
