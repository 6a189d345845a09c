"""The virtual phone's heat: warm at work, slowed down by it, cool again; and nothing of it stays."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.stand_ins.virtual import faults, phone
from device_runner.stand_ins.virtual.faults import Faults, Heat
from device_runner.stand_ins.virtual.heat import Body, Heating, warmed
from device_runner.stand_ins.virtual.phone import FAULTS_JSON, GPU_ZONE, PhoneState
from device_runner.stand_ins.virtual.tvm_rpc.inference import BUSY_FILE

LEVELS = PhoneState().gpu.levels_mhz
RESTED = Body(gpu_c=36.0, battery_c=25.0)
HEAT = Heat()


def levels(body: Body, load: float, minutes: float) -> list[int]:
    found = []
    for _ in range(round(60 * minutes)):
        body = body.after(1.0, load, HEAT, LEVELS)
        found.append(body.level)
    return found


def test_a_phone_at_work_warms_with_its_time_constant() -> None:
    warm = RESTED.after(HEAT.time_constant_s, 1.0, replace(HEAT, slow_down_c=200.0), LEVELS)
    assert warm.gpu_c == pytest.approx(105 - (105 - 36) * math.exp(-1), abs=0.01)


def test_it_is_slowed_down_after_a_hundred_seconds_and_stays_so() -> None:
    seen = levels(RESTED, 1.0, 20)
    assert seen.index(1) == pytest.approx(100, abs=2)
    assert set(seen[110:]) == {1}


def test_with_less_to_do_it_goes_to_and_fro() -> None:
    seen = levels(RESTED, 0.7, 30)
    assert set(seen) == {0, 1}
    assert sum(after != before for before, after in itertools.pairwise(seen)) >= 5


def test_one_that_rests_is_never_slowed_down_and_a_hot_one_recovers() -> None:
    assert set(levels(RESTED, 0.0, 10)) == {0}
    assert levels(Body(gpu_c=95.0, battery_c=30.0, level=3), 0.0, 10)[-1] == 0


@given(
    body=st.builds(Body, st.floats(-20, 140), st.floats(-20, 60), st.floats(0, 50), st.integers(0, 3)),
    seconds=st.floats(0.001, 5000),
    load=st.floats(0, 1),
)
def test_it_never_leaves_what_can_be(body: Body, seconds: float, load: float) -> None:
    after = body.after(seconds, load, HEAT, LEVELS)
    assert min(body.gpu_c, HEAT.air_c) - 1e-6 <= after.gpu_c <= max(body.gpu_c, HEAT.full_load_c) + 1e-6
    assert 0 <= after.level < len(LEVELS)
    assert after.used_percent >= body.used_percent


def test_what_is_worse_counts_and_what_the_state_says_of_the_rest_stays() -> None:
    hot = PhoneState().changed({"gpu": {"thermal_level": 2, "resets": 3}, "temperatures_mc": {GPU_ZONE: 95_000}})
    shown = warmed(hot, replace(RESTED, level=1), (5, 0, 0, 0), 0.5)
    assert (shown.gpu.thermal_level, shown.gpu.resets, shown.temperatures_mc[GPU_ZONE]) == (2, 3, 95_000)
    assert (shown.gpu.busy_us, shown.gpu.busy_percent, shown.thermal_status) == ((5, 0, 0, 0), 50, 1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    phone.prepare(tmp_path)
    (tmp_path / BUSY_FILE).parent.mkdir(exist_ok=True)
    faults.write(tmp_path / FAULTS_JSON, Faults(heat=Heat(speed=100)))
    return tmp_path


def node(home: Path, name: str) -> str:
    return (home / "sys/class/kgsl/kgsl-3d0" / name).read_text().strip()


def test_work_shows_in_every_node_and_nothing_of_it_in_the_state(home: Path) -> None:
    model, before = Heating(home), phone.load(home)
    model.tick(0.1)
    for tick in range(1, 21):
        (home / BUSY_FILE).write_text(f"{100_000 * tick}\n")
        model.tick(0.1)
    assert int(node(home, "temp")) > 60_000
    assert int(node(home, "thermal_pwrlevel")) == 1
    assert (node(home, "max_clock_mhz"), node(home, "gpuclk")) == ("600", "600000000")
    assert sum(map(int, node(home, "gpu_clock_stats").split())) == 2_000_000
    assert "level: 99\n" in (home / "system/etc/dumpsys/battery").read_text()
    assert phone.load(home) == before
    model.tick(0.1)
    assert node(home, "gpuclk") == "200000000", "a GPU that has nothing to do is at its lowest clock"


def test_another_heat_begins_with_a_phone_that_has_rested(home: Path) -> None:
    model = Heating(home)
    model.tick(0.1)
    (home / BUSY_FILE).write_text("5000000\n")
    model.tick(0.1)
    assert int(node(home, "temp")) > 36_000
    faults.write(home / FAULTS_JSON, Faults(heat=Heat(speed=1e-6)))
    model.tick(0.1)
    assert node(home, "temp") == "36000"


def test_it_ends_with_the_fault(home: Path) -> None:
    model = Heating(home)
    (home / BUSY_FILE).write_text("0\n")
    model.tick(0.1)
    (home / BUSY_FILE).write_text("5000000\n")
    model.tick(0.1)
    assert node(home, "temp") != "36000"
    faults.write(home / FAULTS_JSON, Faults())
    model.tick(0.1)
    assert (node(home, "temp"), node(home, "gpu_clock_stats")) == ("36000", "0 0 0 0")


def test_work_that_is_told_of_in_one_go_is_spread_over_time(home: Path) -> None:
    model = Heating(home)
    model.tick(0.1)
    (home / BUSY_FILE).write_text("1000000\n")
    stats = []
    for _ in range(12):
        model.tick(0.1)
        stats.append(sum(map(int, node(home, "gpu_clock_stats").split())))
    assert stats[0] == 100_000
    assert stats[-1] == 1_000_000


def test_after_a_boot_the_counters_begin_at_nothing_and_the_phone_is_as_warm_as_it_was(home: Path) -> None:
    model = Heating(home)
    model.tick(0.1)
    (home / BUSY_FILE).write_text("100000\n")
    model.tick(0.1)
    warm = int(node(home, "temp"))
    phone.reboot(home)
    model.tick(0.001)
    assert node(home, "gpu_clock_stats") == "0 0 0 0"
    assert int(node(home, "temp")) == pytest.approx(warm, abs=200)


@pytest.mark.parametrize("garbage", ["", "not a number", "-5"])
def test_garbage_in_the_counter_is_no_work(home: Path, garbage: str) -> None:
    model = Heating(home)
    model.tick(0.1)
    (home / BUSY_FILE).write_text(garbage)
    model.tick(0.1)
    assert node(home, "gpu_clock_stats") == "0 0 0 0"


def test_a_time_constant_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="time_constant_s"):
        Heat(time_constant_s=0)
