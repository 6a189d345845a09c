"""A case that is kept running: what is kept of it, whatever ends it, and that nobody takes it for a latency."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from fake_device import FakeDevice, FakeProgram, a_plan, things
from fake_records import a_record, index_of, sessions
from hypothesis import given
from hypothesis import strategies as st
from page_figures import figures_of, trace_of
from typer.testing import CliRunner

from device_runner.device import Program, Pulse, Rung
from device_runner.failures import DeviceCrash, DeviceLost
from device_runner.stability.judge import pulses
from device_runner.stability.reading import Reading
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Budget, Plan
from harness.cli import app
from harness.compile.artifacts.pool import Builder
from harness.judge.sides import side_of
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.progress import RunStep, SilentProgress
from harness.measure.records.record import Record, RecordFile, ResumeKey
from harness.measure.runner import run_suite
from harness.measure.tuning import TuningStore
from harness.tools.sustain.measure import MOST_BINS, SustainedRun, sustain
from harness.tools.sustain.page import MOST_RUNS, draw
from harness.tools.sustain.part import Bin, Sustained
from harness.tools.sustain.view import format_energy

COOL = Pulse(clock_mhz=800, gpu_c=40.0, power_level=0, battery_percent=90, battery_c=30.0, shows_heat=True)
HOT = replace(COOL, clock_mhz=400, gpu_c=75.0, power_level=2, battery_percent=88, slowed="heat held the GPU")


@dataclass
class Simulated:
    """A program and a phone on a clock of their own: from `hot_at_s` on everything takes twice as long."""

    hot_at_s: float = 1e9
    each_ms: float = 3.0
    look_s: float = 0.02
    noise: float = 0.0
    now_s: float = 0.0
    heard: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        self.asked.append(repeat)
        factor = 2.0 if self.now_s >= self.hot_at_s else 1.0
        times = [self.each_ms * factor * (1 + self.noise * random.random()) for _ in range(repeat)]
        self.now_s += sum(times) / 1e3
        return times

    def look(self) -> Pulse:
        self.now_s += self.look_s
        return HOT if self.now_s >= self.hot_at_s else COOL


def sustained(phone: Simulated, seconds: float) -> Sustained:
    into = SustainedRun(seconds)
    budget = Budget(sustain_s=seconds)
    sustain(cast("Program", phone), budget, phone.look, into, tell=phone.heard.append, clock=phone.clock)
    return into.so_far


def on_battery(*looks: tuple[int | None, int | None]) -> Sustained:
    """Ten inferences in each bin, and what the battery says at its end."""
    bins = [
        Bin(float(place), 2.0, 2.5, 10, charge_uah=charge, voltage_mv=voltage)
        for place, (charge, voltage) in enumerate(looks)
    ]
    return Sustained(
        asked_s=len(bins),
        lasted_s=len(bins),
        columns={name: list(column) for name, column in zip(Bin._fields, zip(*bins, strict=True), strict=True)},
    )


def test_energy_is_charge_times_voltage_with_the_step_of_the_counter() -> None:
    figures = on_battery((3000, 4100), (3000, 4100), (2990, 4000), (2990, 4000), (2970, 3800)).figures
    assert figures
    assert figures.energy
    assert figures.energy.each_mj == pytest.approx(30 * 4000 * 3.6e-3 / 40)
    assert figures.energy.resolution_mj == pytest.approx(3.6)


@pytest.mark.parametrize(
    "looks",
    [
        [(3000, 4000), (2990, 4000), (None, None), (2970, 4000)],
        [(3000, 4000), (2990, 4000), (2995, 4000), (2980, 4000)],
        [(3000, 4000), (3000, 4000), (2990, 4000)],
        [(3000, 4000), (3000, 4000), (3000, 4000)],
        [(3000, None), (2990, None), (2980, None)],
        [(3000, 4000)],
    ],
    ids=["plugged in for a while", "charged", "one step", "no step", "no voltage", "one bin"],
)
def test_energy_that_cannot_be_known_is_none_and_a_dash(looks: list[tuple[int | None, int | None]]) -> None:
    figures = on_battery(*looks).figures
    assert figures
    assert figures.energy is None
    assert format_energy(figures.energy) == "-"


def test_a_phone_that_is_fed_tells_no_charge_of_its_own_use() -> None:
    battery = Reading(plugged=False, charge_uah=3_000_000, voltage_mv=4000)
    for plugged, known in ((False, 3_000_000), (True, None), (None, None)):
        seen = replace(battery, plugged=plugged)
        assert pulses(partial(replace, seen))().charge_uah == known


def test_ten_minutes_of_a_fast_model_are_a_bin_a_second_and_the_figures_that_people_quote() -> None:
    measured = sustained(Simulated(hot_at_s=200), 600)
    figures = measured.figures
    assert figures
    assert 500 <= len(measured.bins) <= MOST_BINS
    assert (figures.first_ms, figures.last_ms, figures.ratio) == (3.0, 6.0, 2.0)
    assert figures.inferences == sum(one.inferences for one in measured.bins) > 100_000
    assert 198 < cast("float", measured.throttled_after_s) < 203
    assert (measured.throttled_why, figures.hottest_c, figures.battery_used_percent) == ("heat held the GPU", 75.0, 2)
    assert figures.busy_share > 0.9
    assert figures.throttled_share == pytest.approx(2 / 3, abs=0.01)
    assert (figures.window_s, measured.lasted_s >= 600) == (60.0, True)


def test_its_line_in_the_records_stays_small_whatever_is_asked_for() -> None:
    for seconds in (600, 6 * 3600):
        measured = sustained(Simulated(each_ms=31.4159, noise=0.5, hot_at_s=300), seconds)
        assert len(a_record(standalone=True, parts=[measured]).line()) < 50_000
        assert len(measured.bins) <= 1.12 * MOST_BINS


def test_one_inference_that_takes_longer_than_a_bin_makes_a_bin_of_its_own() -> None:
    measured = sustained(Simulated(each_ms=5000), 60)
    assert {one.inferences for one in measured.bins} == {1}
    assert len(measured.bins) == 12


def test_the_device_computes_for_about_a_second_between_two_looks_and_somebody_hears_of_it() -> None:
    phone = Simulated(hot_at_s=50)
    sustained(phone, 100)
    assert max(phone.asked) * phone.each_ms <= 1000
    assert len(phone.heard) >= 95
    assert phone.heard[-1].endswith("of 100 s, 6 ms, 75 °C, power level 2")


def test_a_short_run_quotes_its_halves() -> None:
    measured = sustained(Simulated(hot_at_s=5), 10)
    assert measured.figures
    assert measured.figures.window_s == pytest.approx(5, abs=0.3)
    assert measured.figures.ratio == 2.0


def test_a_phone_that_is_hot_from_the_beginning_was_throttled_at_once() -> None:
    assert sustained(Simulated(hot_at_s=0), 10).throttled_after_s == 0


def test_a_device_that_shows_no_heat_is_unknown_not_cool() -> None:
    class Mute(Simulated):
        def look(self) -> Pulse:
            return Pulse()

    measured = sustained(Mute(), 10)
    assert (measured.throttled_after_s, measured.shows_throttling) == (None, False)
    assert set(measured.columns) == {"at_s", "wall_ms", "p90_ms", "inferences"}
    assert sustained(Simulated(), 10).shows_throttling


PULSES = st.builds(Pulse, clock_mhz=st.none() | st.integers(1, 2000), gpu_c=st.none() | st.floats(-30, 150))


@given(st.lists(st.tuples(st.floats(0.01, 1e4), st.integers(1, 999), PULSES), max_size=30))
def test_what_is_kept_is_what_was_collected(rows: list[tuple[float, int, Pulse]]) -> None:
    collected = SustainedRun(600)
    for at_s, (ms, count, pulse) in enumerate(rows):
        collected.add(Bin(float(at_s), ms, ms, count, pulse.clock_mhz, pulse.gpu_c), at_s + 1)
        collected.looked(at_s + 1, pulse)
    kept = collected.so_far
    assert Sustained.model_validate_json(kept.model_dump_json()) == kept
    assert [(one.wall_ms, one.inferences, one.clock_mhz, one.gpu_c) for one in kept.bins] == [
        (ms, count, pulse.clock_mhz, pulse.gpu_c) for ms, count, pulse in rows
    ]
    if rows:
        assert kept.figures
        low, high = min(ms for ms, *_ in rows), max(ms for ms, *_ in rows)
        assert low <= kept.figures.first_ms <= high
        assert low <= kept.figures.last_ms <= high
    else:
        assert kept.figures is None


# As a case


@dataclass
class Enduring(FakeDevice):
    """A device that is used up after so many chunks."""

    chunks: int = 10_000
    end: BaseException = field(default_factory=lambda: DeviceLost("the phone rebooted while timing"))
    pulse: Pulse = COOL

    def met(self, step: str) -> None:
        super().met(step)
        if step == "wall" and self.steps.count("wall") > self.chunks:
            raise self.end


def lasting(plan: Plan, seconds: float = 0.2) -> Plan:
    return replace(plan, budget=replace(plan.budget, sustain_s=seconds))


def a_run(device: FakeDevice, folder: Path) -> Run:
    return Run(device, TuningStore(folder))


def ran(device: FakeDevice, folder: Path) -> Record:
    return run_case(lasting(a_plan()), things(folder / "built"), a_run(device, folder), SilentProgress()).record


def part_of(record: Record) -> Sustained:
    part = record.part(Sustained)
    assert part
    return part


@pytest.fixture(autouse=True)
def _inferences_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def wall_ms(self: FakeProgram, repeat: int, *, timeout_s: float) -> list[float]:
        self.device.met("wall")
        time.sleep(repeat * 2e-3)
        return [2.0] * repeat

    monkeypatch.setattr(FakeProgram, "wall_ms", wall_ms)


def test_a_sustained_run_is_right_first_and_has_no_other_times(tmp_path: Path) -> None:
    record = ran(Enduring(), tmp_path)
    assert (record.outcome, record.wall_ms, record.device_ms, record.reference) == (Outcome.OK, [], [], None)
    assert record.standalone
    assert part_of(record).figures
    assert Record.model_validate_json(record.line()) == record
    wrong = ran(Enduring(error=9.0), tmp_path)
    assert (wrong.outcome, part_of(wrong)) == (Outcome.WRONG_RESULT, Sustained(asked_s=0.2))


def test_heat_is_what_it_finds_and_no_reason_to_measure_again(tmp_path: Path) -> None:
    record = ran(Enduring(pulse=HOT), tmp_path)
    assert record.outcome is Outcome.OK
    assert part_of(record).throttled_after_s == 0


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (DeviceLost("rebooted while timing"), Outcome.DEVICE_LOST),
        (DeviceCrash("died of SIGSEGV"), Outcome.DEVICE_CRASH),
    ],
)
def test_what_was_measured_before_a_reboot_or_a_crash_is_kept(end: Exception, outcome: Outcome, tmp_path: Path) -> None:
    record = ran(Enduring(chunks=6, end=end), tmp_path)
    assert (record.outcome, record.message) == (outcome, str(end))
    assert part_of(record).bins
    assert part_of(record).lasted_s > 0


def test_a_reboot_in_the_middle_is_its_result_and_one_before_it_is_recovered_from(tmp_path: Path) -> None:
    rungs = [Rung("retry", 1.0, lambda _: None)]

    def settled(device: FakeDevice) -> Record:
        built = things(tmp_path / "built")
        return run_with_recovery(lasting(a_plan()), built, a_run(device, tmp_path), SilentProgress())

    in_the_middle = settled(Enduring(chunks=6, rungs=rungs))
    assert (in_the_middle.outcome, in_the_middle.recovery) == (Outcome.DEVICE_LOST, [])
    before = settled(Enduring(fails={"load": DeviceLost("gone")}, rungs=rungs))
    assert [step.rung for step in before.recovery] == ["retry"]


class Ready(Builder):
    def __init__(self, folder: Path) -> None:
        self._built = things(folder)

    def build(self, jobs: Any) -> Any:
        return {job.key: self._built[job.key] for job in jobs}


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(130)])
def test_ctrl_c_keeps_what_was_measured_and_stops(stop: BaseException, tmp_path: Path) -> None:
    file, device = RecordFile(tmp_path / "records.jsonl"), Enduring(chunks=6, end=stop)
    plans = [lasting(a_plan()), lasting(a_plan())]
    with pytest.raises(type(stop)):
        list(run_suite(plans, a_run(device, tmp_path), Ready(tmp_path / "built"), file))
    (record,) = file.load().records
    assert record.outcome is Outcome.OK
    assert part_of(record).stopped
    assert part_of(record).bins


def test_ctrl_c_before_the_first_bin_leaves_no_record(tmp_path: Path) -> None:
    file, device = RecordFile(tmp_path / "records.jsonl"), Enduring(fails={"run": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        list(run_suite([lasting(a_plan())], a_run(device, tmp_path), Ready(tmp_path / "built"), file))
    assert file.load().records == []


def test_progress_says_how_far_it_has_come(tmp_path: Path) -> None:
    class Heard(SilentProgress):
        def __init__(self) -> None:
            self.steps: list[str] = []

        def step(self, case_id: str, step: str) -> None:
            self.steps.append(step)

    heard = Heard()
    run_case(lasting(a_plan()), things(tmp_path / "built"), a_run(Enduring(), tmp_path), heard)
    assert any(step.startswith(f"{RunStep.SAMPLING}: 0 of 0.2 s, 2 ms, 40 °C") for step in heard.steps)


# As a record


def kept(seconds: float = 600.0, hot_at_s: float = 200.0, **facts: Any) -> Record:
    part = sustained(Simulated(hot_at_s=hot_at_s, each_ms=30.0), seconds)
    return a_record(standalone=True, parts=[part], **facts)


def test_it_is_a_series_of_its_own_that_no_latency_is_taken_from(tmp_path: Path) -> None:
    latencies = sessions(10)
    with index_of(tmp_path, [*latencies, kept(artifact="b" * 24)]) as index:
        assert list(index.newest(lambda _: True)) == latencies[-1:]
        assert list(index.newest_builds(lambda _: True)) == [latencies]
        (only,) = index.newest(lambda _: True, sustained=True)
        assert part_of(only)
    assert side_of([kept()]).sessions == ()


def test_it_settles_no_latency(tmp_path: Path) -> None:
    record = kept()
    key = ResumeKey(record.case, record.identity_key, record.artifact, record.as_shipped)
    with index_of(tmp_path, [record]) as index:
        assert index.settled(key) is None
        assert index.of_key(key) == []


Shown = Callable[..., Any]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    def shown(records: Sequence[Record], *options: str, command: str = "sustained") -> Any:
        file = tmp_path / "records.jsonl"
        file.write_text("".join(record.line() + "\n" for record in records))
        return CliRunner().invoke(app, [command, "--records", str(file), *options])

    return shown


def test_sustained_quotes_the_figures(shown: Shown) -> None:
    said = shown([*sessions(10), kept()])
    assert said.exit_code == 0
    assert all(text in said.output for text in (" of 600 s", "2.00", "75 °C", "heat held the GPU"))
    (told,) = json.loads(shown([kept()], "--json").output)
    assert told["figures"]["ratio"] == 2.0
    assert told["parts"]["sustained"]["columns"]["wall_ms"][0] == 30.0


def test_show_without_it_shows_the_latency(shown: Shown) -> None:
    (told,) = json.loads(shown([*sessions(10, 1), kept()], "--json", command="show").output)
    assert told["wall_ms"]


def test_what_is_not_there_is_said_with_what_to_do(shown: Shown) -> None:
    assert "run --sustain" in str(shown(sessions(10, 1)).exception)
    assert "adreno-bench sustained" in str(shown([kept()], command="show").exception)


def test_the_option_of_show_that_it_was_calls_it(shown: Shown) -> None:
    said = shown([kept()], "--sustained", command="show")
    assert (said.exit_code, "heat held the GPU" in said.output) == (0, True)


@pytest.mark.parametrize("other", ["--quick", "--resume"])
def test_what_does_not_go_with_it_is_refused(other: str) -> None:
    refused = CliRunner().invoke(app, ["run", "--sustain", "60", other])
    assert other in str(refused.exception)


# Drawn


def test_it_is_drawn_as_a_page_that_needs_nothing_but_itself(shown: Shown, tmp_path: Path) -> None:
    hostile = kept(device="<script>alert(1)</script>$", message="<b>", emulated=("gpu",))
    page = tmp_path / "out/page.html"
    assert shown([hostile], "--plot", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "adreno-bench" in text
    assert "2.00 times the first" in text
    assert "emulated: gpu" in text
    assert "<script>alert" not in text
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    (figure,) = figures_of(text)
    assert trace_of(figure, "median")["y"][0] == 30.0
    assert trace_of(figure, "first 30 ms")["x"] == [0, 60]
    (slowed,) = figure["layout"]["shapes"]
    assert slowed["x0"] == pytest.approx(200, abs=2)


def test_what_the_phone_never_said_has_no_panel(tmp_path: Path) -> None:
    columns = {name: column for name, column in part_of(kept()).columns.items() if name in Bin._fields[:4]}
    mute = a_record(standalone=True, parts=[Sustained(asked_s=600, lasted_s=600, columns=columns)])
    pages, axes = {}, {}
    for name, record in {"mute": mute, "all": kept()}.items():
        draw([record], tmp_path / f"{name}.html")
        pages[name] = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        (figure,) = figures_of(pages[name])
        axes[name] = [axis["title"]["text"] for key, axis in figure["layout"].items() if key.startswith("yaxis")]
    assert axes["mute"] == ["inference, ms"]
    assert sorted(axes["all"]) == ["battery, %", "clock, MHz", "inference, ms", "power level", "°C"]
    assert "this device does not show it" in pages["mute"]


def test_what_cannot_be_drawn_is_refused_with_what_to_do(tmp_path: Path) -> None:
    nothing = a_record(standalone=True, parts=[Sustained(asked_s=600)])
    for records, name, hint in (
        ([nothing], "x.html", "says why"),
        ([kept(30)], "x.png", "name it x.html"),
        ([kept(30)] * (MOST_RUNS + 1), "x.html", "name some of the cases"),
    ):
        with pytest.raises(UsageError, match=hint):
            draw(records, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
