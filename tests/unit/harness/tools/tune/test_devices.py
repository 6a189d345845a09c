"""Several devices that share the trials of a search: workers in threads, devices of plain Python, and real pipes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from fake_device import FakeDevice, FakeSession
from fake_tuning import DEAR, Behaviour, Bench, Device, Threads, candidates

from device_runner.device import Identity, Toggles
from device_runner.failures import DeviceLost, Failure
from device_runner.workers import Processes, WorkerPool
from harness.base.failures import UsageError
from harness.tools.tune import devices
from harness.tools.tune.devices import Devices, kind_key, require_alike

WAIT_S = 20
PHONE = Identity("phone", "A1", soc="SM8650", gpu="Adreno 750", driver="OpenCL 3.0 V@0800", work_group_items=1024)


@dataclass
class Shared(Device):
    """A device whose first session waits until all have begun one, so that each has part in the search."""

    all_there: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    unplugged: bool = False
    back: Shared | None = None
    """Its own first session waits until this one, lost in its first, has begun another or was refused."""
    again: threading.Event = field(default_factory=threading.Event)
    returns_as: Identity | None = None

    @contextlib.contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[FakeSession]:
        if "session" not in self.steps:
            self.all_there.wait(WAIT_S)
        elif not self.unplugged:
            self.again.set()
        if self.back:
            assert self.back.again.wait(WAIT_S)
        with super().session(toggles, timeout_s=timeout_s) as session:
            yield session

    def met(self, step: str) -> None:
        super().met(step)
        if step == "session" and self.unplugged:
            raise DeviceLost(f"{self.name} was unplugged")

    def dropped(self) -> None:
        if not self.unplugged:
            self.again.set()

    def reopened(self) -> None:
        self.unplugged, self.identity = False, self.returns_as or self.identity


@contextlib.contextmanager
def shared(folder: Path, behaviours: dict[str, Behaviour], *lost: str, back: Identity | None = None) -> Iterator[Bench]:
    """A search on two devices, of which those in `lost` die in their first session; with `back` the other waits."""
    bench, barrier = Bench(folder, behaviours), threading.Barrier(2)
    both = [
        Shared(name=name, behaviours=behaviours, all_there=barrier, unplugged=name in lost) for name in ("one", "two")
    ]
    if back:
        both[1].back, both[0].returns_as = both[0], back
    with WorkerPool(["one", "two"], cast(Processes, Threads(both, folder)), bench.said.append) as pool:
        bench.devices = Devices(pool, bench.said.append)
        yield bench


def test_two_devices_share_the_candidates_each_is_tried_once_and_says_where(tmp_path: Path) -> None:
    known = candidates(DEAR, Behaviour(9.0), *(Behaviour(9.0 - seed) for seed in range(6)))
    with shared(tmp_path, known) as bench:
        search = bench.search(6)
        (winner,) = bench.winners(search)
    trials = list(bench.log.read())
    assert sorted(trial.seed for trial in trials) == list(range(6))
    assert {trial.device for trial in trials} == {"one", "two"}
    assert search.standings[DEAR.task].gain == 90.0 / 4.0
    assert winner.schedule
    assert winner.schedule.ms == 4.0
    assert sum("measured again" in line for line in bench.said) == 3
    assert all(line.startswith("one: ") for line in bench.said if "measured again" in line)
    again = Bench(tmp_path, known)
    assert again.search(0).tried == 6


def test_a_device_lost_in_the_middle_costs_its_trial_and_the_other_goes_on(tmp_path: Path) -> None:
    known = candidates(DEAR, Behaviour(9.0), *[Behaviour(3.0)] * 4)
    with shared(tmp_path, known, "one") as bench:
        standing = bench.search(4).standings[DEAR.task]
        (winner,) = bench.winners(bench.search(0))
    lost = [trial for trial in standing.trials.values() if not trial.right]
    assert [(trial.outcome, trial.device) for trial in lost] == [("device-lost", "one")]
    assert [trial.device for trial in standing.trials.values() if trial.right] == ["two"] * 3
    assert list(bench.devices.lost) == ["one"]
    assert "one is out: the device was lost: one was unplugged" in bench.said
    assert winner.schedule


def test_a_device_that_comes_back_searches_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "BACK_AFTER_S", 0.0)
    known = candidates(DEAR, Behaviour(9.0), *[Behaviour(3.0)] * 4)
    with shared(tmp_path, known, "one", back=FakeDevice().identity) as bench:
        standing = bench.search(4).standings[DEAR.task]
    assert {trial.outcome for trial in standing.trials.values() if trial.device == "one"} == {"device-lost", "ok"}
    assert not bench.devices.lost
    assert bench.devices.count == 2
    assert "one is back" in bench.said


def test_a_device_that_comes_back_as_another_one_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "BACK_AFTER_S", 0.0)
    known = candidates(DEAR, Behaviour(9.0), *[Behaviour(3.0)] * 4)
    with shared(tmp_path, known, "one", back=replace(FakeDevice().identity, driver="updated")) as bench:
        search = bench.search(4)
    assert search.tried == 4
    assert list(bench.devices.lost) == ["one"]
    assert any("one cannot share trials with two: its driver is 'updated'" in line for line in bench.said)


def test_a_search_whose_devices_are_all_lost_ends_and_says_that_it_can_go_on(tmp_path: Path) -> None:
    known = candidates(DEAR, Behaviour(9.0), *[Behaviour(3.0)] * 4)
    with (
        shared(tmp_path, known, "one", "two") as bench,
        pytest.raises(DeviceLost, match=r"no device is left: .* was unplugged: finished trials are kept"),
    ):
        bench.search(4)


def test_what_is_done_on_one_device_is_done_anew_on_the_next_if_that_is_lost(tmp_path: Path) -> None:
    known = candidates(DEAR, Behaviour(9.0), Behaviour(3.0))
    with shared(tmp_path, known) as bench:
        assert bench.devices.on_one(_named, WAIT_S) == "two"
        with pytest.raises(UsageError, match="wrong untuned"):
            bench.devices.on_one(_refuses, WAIT_S)


def _named(run: Any, say: Any) -> str:
    if run.device.name == "one":
        raise DeviceLost("unplugged")
    return str(run.device.name)


def _refuses(run: Any, say: Any) -> str:
    raise UsageError("it is wrong untuned")


@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("driver", "OpenCL 3.0 V@0900", "its driver is 'OpenCL 3.0 V@0900', not 'OpenCL 3.0 V@0800'"),
        ("gpu", "Adreno 830", "its gpu is 'Adreno 830', not 'Adreno 750'"),
        ("work_group_items", 256, "its work_group_items is 256, not 1024"),
        ("image2d_max_width", 8192, "its image2d_max_width is 8192, not 16384"),
    ],
)
def test_devices_that_differ_are_refused_by_name(what: str, value: Any, why: str) -> None:
    other = replace(PHONE, serial="B2", **{what: value})
    with pytest.raises(Failure, match=f"^B2 cannot share trials with A1: {why}"):
        require_alike({"A1": PHONE, "B2": other})


def test_handsets_of_a_kind_share_trials_and_one_log() -> None:
    other = replace(PHONE, serial="B2", memory_bytes=8 << 30)
    require_alike({"A1": PHONE, "B2": other})
    assert PHONE.key != other.key
    assert kind_key(PHONE) == kind_key(other)
