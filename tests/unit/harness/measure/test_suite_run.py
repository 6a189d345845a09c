"""A suite on several devices, with workers that follow a script: no process, no device."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from fake_device import a_plan
from fake_records import a_record
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity, Pulse
from device_runner.failures import DeviceLost, Failure, RigFailure
from device_runner.workers import Arrival, Line, Loss, WorkerHost, WorkerPool
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.compile.artifacts.pool import Builder
from harness.measure.case_worker import Absence, CaseOrder, CaseResult, DeviceState, Return, StepChange
from harness.measure.context import Origin
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record, RecordFile
from harness.measure.runner import Prefetcher, SuiteRun

PHONES = {"a": Identity("phone", "", gpu="A"), "b": Identity("phone", "", gpu="A"), "c": Identity("phone", "", gpu="C")}
"""The first two do not say which handset they are, so they are one identity."""
CASES = ["one", "two", "three"]


class Says(SilentProgress):
    def __init__(self, said: list[str] | None) -> None:
        self.said = [] if said is None else said

    def say(self, text: str) -> None:
        self.said.append(text)

    def pulse(self, device: str, pulse: Pulse) -> None:
        self.said.append(f"{device}: {pulse.gpu_c} °C")


class NothingToBuild:
    def begin(self, job: Any) -> Future[Any]:
        made: Future[Any] = Future()
        made.set_result(RigFailure(job.key))
        return made


@dataclass
class Script:
    """`Processes` that live through the events that are drawn for them; when these run out, all goes well."""

    draw: Callable[[], str]
    open: dict[str, bool] = field(default_factory=dict)
    orders: dict[str, CaseOrder] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    dismissed: set[str] = field(default_factory=set)
    ordered: list[tuple[str, str]] = field(default_factory=list)
    comes_back: bool = True

    def start(self, name: str) -> bool:
        self.open.setdefault(name, False)
        return True

    def end(self, *, at_once: bool) -> None:
        pass

    def send(self, name: str, settle: CaseOrder) -> None:
        assert name not in self.dismissed
        assert name not in self.orders, "a worker got a second case before it was done with the first"
        self.orders[name] = settle
        self.ordered.append((name, settle.plan.case.model))

    def drop(self, name: str) -> None:
        self.dismissed.add(name)

    def receive(self, timeout_s: float) -> Iterator[tuple[str, object]]:
        for name in self.open:
            if name not in self.dismissed and (message := self._event(name)):
                yield name, message

    def _event(self, name: str) -> object:
        event = self.draw()
        if event == "crash":
            return Loss(RigFailure(f"{name} died"))
        if not self.open[name]:
            self.open[name] = True
            return Arrival(PHONES[name], name)
        if event == "warm":
            return DeviceState(Pulse(gpu_c=41.0))
        if event == "quiet":
            return StepChange("sampling")
        if order := self.orders.pop(name, None):
            self.away.discard(name)
            if event == "lost":
                self.away.add(name)
                return CaseResult(self._record(name, order, Outcome.DEVICE_LOST), "unplugged")
            return CaseResult(self._record(name, order, Outcome.OK))
        if name in self.away and self.comes_back:
            self.away.discard(name)
            return Return()
        if event == "away":
            self.away.add(name)
            return Absence("unplugged")
        return None

    @staticmethod
    def _record(name: str, order: CaseOrder, outcome: Outcome) -> Record:
        return a_record(order.plan.case.id, device=name, identity=PHONES[name], outcome=outcome)


def fleet(
    script: Script,
    names: Sequence[str] = tuple(PHONES),
    records: RecordFile | None = None,
    said: list[str] | None = None,
    builder: NothingToBuild | None = None,
) -> SuiteRun:
    def plan(_identity: Identity) -> list[Plan]:
        return [a_plan(case) for case in CASES]

    progress = Says(said)
    workers = WorkerPool(names, cast(WorkerHost, script), progress.say).__enter__()
    prefetcher = Prefetcher(cast(Builder, builder or NothingToBuild()))
    return SuiteRun(workers, prefetcher, plan, Origin("", PHONES["a"], False, "run"), records, progress)


def test_the_state_of_each_device_is_passed_on() -> None:
    said: list[str] = []
    records = list(fleet(events("well", "warm", "well", "warm"), ["a"], said=said).run())
    assert [record.outcome for record in records] == [Outcome.OK] * len(CASES)
    assert said == ["a: 41.0 °C"] * 2


def events(*drawn: str) -> Script:
    left = list(drawn)
    return Script(lambda: left.pop(0) if left else "well")


@given(st.lists(st.sampled_from(["well", "well", "quiet", "lost", "away", "crash"])))
def test_whatever_dies_every_case_has_one_record_on_each_identity(drawn: list[str]) -> None:
    script = events(*drawn)
    done = list(fleet(script).run())
    opened = {PHONES[name].key for name, is_open in script.open.items() if is_open}
    wanted = {(f"{case}-opencl-float32-untuned", identity) for case in CASES for identity in opened}
    assert Counter((record.case, record.identity_key) for record in done) == Counter(wanted)
    assert {record.outcome for record in done} <= {Outcome.OK, Outcome.DEVICE_LOST}


def test_two_of_one_identity_share_its_cases_and_the_third_has_its_own() -> None:
    script = events()
    done = list(fleet(script).run())
    by_device = Counter(record.device for record in done)
    assert by_device["a"] + by_device["b"] == by_device["c"] == 3
    assert 0 < by_device["a"] < 3


def test_a_lost_device_hands_its_case_on_and_says_so() -> None:
    said: list[str] = []
    script = events("well", "well", "well", "lost")
    run = fleet(script, said=said)
    done = list(run.run())
    assert all(record.outcome is Outcome.OK for record in done)
    assert run.failures == {}  # it has answered again
    assert [name for name, case in script.ordered if case == "one" and name != "c"] == ["a", "b"]
    assert "a is given up until it answers again: unplugged" in said


def test_a_device_that_stays_away_is_told_at_the_end_though_others_did_its_cases() -> None:
    script = events("well", "well", "well", "lost")
    script.comes_back = False
    run = fleet(script)
    assert {record.outcome for record in run.run()} == {Outcome.OK}
    assert {name: str(why) for name, why in run.failures.items()} == {"a": "unplugged"}


def test_where_no_device_is_left_the_cases_are_lost_with_the_reason() -> None:
    run = fleet(events("well", "well", "well", "crash", "crash"))
    done = list(run.run())
    lost = [record for record in done if record.identity_key == PHONES["a"].key]
    assert {record.outcome for record in lost} == {Outcome.DEVICE_LOST}
    assert len(lost) == 3
    assert {record.message for record in lost} <= {"a died", "b died"}
    assert {record.run for record in lost} == {"run"}
    assert set(run.failures) == {"a", "b"}


def test_a_device_that_cannot_be_opened_leaves_its_cases_to_the_others() -> None:
    run = fleet(events("crash"), ["a", "b"])
    done = list(run.run())
    assert [record.device for record in done] == ["b", "b", "b"]
    assert str(run.failures["a"]) == "a died"


def test_a_record_is_kept_before_it_is_handed_out(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    for number, record in enumerate(fleet(events(), ["c"], file).run(), 1):
        assert file.load().records[-1] == record
        assert len(file.load().records) == number


@pytest.mark.parametrize(("kind", "before"), [("phone", ["one"]), ("virtual", []), ("local", [])])
def test_phones_measure_while_the_rest_is_built_and_this_host_does_not(
    kind: str, before: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PHONES, "c", replace(PHONES["c"], kind=kind))
    go_on = threading.Event()

    class SlowToBuildTwo(NothingToBuild):
        def begin(self, job: Any) -> Future[Any]:
            if job.key != "c-two":
                return super().begin(job)
            made: Future[Any] = Future()
            threading.Thread(target=lambda: made.set_result(go_on.wait(20))).start()
            return made

    script = events()
    receive, rounds = script.receive, count()
    ordered: list[str] = []

    def receive_for_a_while(timeout_s: float) -> Iterator[tuple[str, object]]:
        yield from receive(timeout_s)
        if next(rounds) == 3:
            ordered.extend(case for _, case in script.ordered)
            go_on.set()
        time.sleep(0.01)

    script.receive = receive_for_a_while  # type: ignore[method-assign]
    assert len(list(fleet(script, ["c"], builder=SlowToBuildTwo()).run())) == 3
    assert ordered[:1] == before


class BuildsNever(NothingToBuild):
    def begin(self, job: Any) -> Future[Any]:
        raise DeviceLost("the build was asked for")


def test_a_fault_of_the_builder_ends_the_run() -> None:
    run = fleet(events(), builder=BuildsNever())
    with pytest.raises(Failure, match="the build was asked for"):
        list(run.run())


def test_what_a_worker_says_is_said_with_its_name() -> None:
    said: list[str] = []
    script = events()
    receive = script.receive

    def chatty(timeout_s: float) -> Iterator[tuple[str, object]]:
        yield "c", Line("c is in use by process 7")
        yield from receive(timeout_s)

    script.receive = chatty  # type: ignore[method-assign]
    list(fleet(script, said=said).run())
    assert "c: c is in use by process 7" in said


def test_the_only_device_of_its_identity_keeps_its_cases_when_it_goes_away_for_a_while() -> None:
    said: list[str] = []
    script = events()
    script.open["c"] = True
    heard: list[list[object]] = [[Arrival(PHONES["c"], "c"), Absence("unplugged")], [Return()]]
    receive = script.receive

    def first_away(timeout_s: float) -> Iterator[tuple[str, object]]:
        yield from (("c", message) for message in heard.pop(0)) if heard else receive(timeout_s)

    script.receive = first_away  # type: ignore[method-assign]
    done = list(fleet(script, ["c"], said=said).run())
    assert [record.outcome for record in done] == [Outcome.OK] * 3
    assert said == ["c does not answer any more: unplugged", "c answers again"]
