"""A GPU of this host: what its driver says, and whether it kept its pace."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from device_runner.device import Steadiness
from device_runner.stand_ins.host_gpu import (
    AMD,
    CARDS,
    CARDS_SCRIPT,
    INTEL,
    GpuReading,
    card_report,
    card_source,
    judge,
    nvml_reading,
    pace_between,
    pulses,
    reading_in,
    source,
    steadily,
)

COOL = GpuReading(1980, 40.0, 200.0, (), 5.0, False)


class NVMLError(Exception):
    """As the management library raises it."""


def nvml(*names: str, reasons: int = 0, slowed_ns: int = 0, lacks: tuple[str, ...] = ()) -> Any:
    """NVML with GPUs of these names."""

    def told(value: Any) -> Any:
        return lambda *_: value

    def refuse(*_: object) -> None:
        raise NVMLError("Not Supported")

    functions = {
        "nvmlInit": told(None),
        "nvmlDeviceGetCount": told(len(names)),
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda index: names[index],
        "nvmlDeviceGetClockInfo": told(1980),
        "nvmlDeviceGetTemperature": told(40),
        "nvmlDeviceGetPowerUsage": told(121_990),
        "nvmlDeviceGetCurrentClocksThrottleReasons": told(reasons),
        "nvmlDeviceGetViolationStatus": told(SimpleNamespace(violationTime=slowed_ns)),
    }
    return SimpleNamespace(NVMLError=NVMLError, **functions | dict.fromkeys(lacks, refuse))


def test_nvidias_library_tells_clock_heat_and_what_slows_the_gpu_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml("Other", "NVIDIA H200", reasons=0x44, slowed_ns=7_000_000))
    found = source("NVIDIA H200")
    assert isinstance(found, partial)
    assert found.args[-1] == 1
    assert found() == GpuReading(1980, 40, 121.99, ("heat (hardware)",), 7.0, True)


def test_what_a_driver_does_not_tell_is_unknown() -> None:
    library = nvml("G", lacks=("nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksThrottleReasons"))
    del library.nvmlDeviceGetViolationStatus
    assert nvml_reading(library, 0) == GpuReading(clock_mhz=1980, gpu_c=40)


@pytest.mark.parametrize("names", [(), ("NVIDIA H200", "NVIDIA H200")])
def test_a_gpu_that_cannot_be_told_apart_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(*names))
    assert (
        source("NVIDIA H200") == f"clock, heat and power: this host has {len(names)} GPUs that are called NVIDIA H200"
    )


def test_without_the_library_the_record_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    done, steadiness = steadily(lambda: 3, source("NVIDIA H200"))
    assert done == 3
    assert not steadiness.throttled
    assert "nvidia-ml-py is not installed" in steadiness.facts["unavailable"][0]


@pytest.mark.parametrize("cpu", ["pthread-skylake-avx512-AMD EPYC", "Intel(R) Xeon(R) Platinum", "", "Adreno(TM) 740"])
def test_what_is_no_gpu_of_a_known_driver_is_silent(cpu: str) -> None:
    assert source(cpu) == ""
    assert steadily(lambda: None, "")[1].facts == {}


def test_heat_between_the_readings_is_found_though_neither_shows_it() -> None:
    steadiness = judge(COOL, GpuReading(1980, 60.0, 300.0, (), 17.0, False))
    assert steadiness.throttled
    assert steadiness.why == "heat slowed the GPU down for 12 ms meanwhile"


def test_a_power_limit_is_noted_and_no_throttling() -> None:
    steadiness = judge(COOL, GpuReading(1700, 60.0, 700.0, (), 5.0, True))
    assert not steadiness.throttled
    assert steadiness.facts["notes"] == ["the power limit held the clock down"]


def test_what_slows_it_down_is_said_once() -> None:
    hot = GpuReading(slowed=("heat",))
    assert judge(hot, hot).why == "heat slowed the GPU down"
    assert judge(GpuReading(), GpuReading()).facts == {"before": {}, "after": {}}


def test_a_pulse_says_whether_heat_would_be_seen() -> None:
    hot = GpuReading(1000, 90.0, slowed=("heat",))
    seen, blind = pulses(lambda: hot)(), pulses("no driver")()
    assert (seen.clock_mhz, seen.gpu_c, seen.shows_heat, seen.slowed) == (1000, 90.0, True, "heat")
    assert (blind.clock_mhz, blind.shows_heat, blind.slowed) == (None, False, "")


def a_card(cards: Path, vendor: str, files: dict[str, str]) -> Path:
    for name, content in {"device/vendor": vendor, **files}.items():
        file = cards / "card0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    return cards


def test_an_amd_card_is_read_from_its_sensors(tmp_path: Path) -> None:
    sensors = {"freq1_input": "2400000000", "temp1_input": "51000", "power1_average": "88000000"}
    cards = a_card(tmp_path, AMD, {f"device/hwmon/hwmon3/{name}": value for name, value in sensors.items()})
    card = card_source(AMD, cards)
    assert not isinstance(card, str)
    assert card() == GpuReading(2400, 51.0, 88.0)
    assert isinstance(card_source(INTEL, cards), str)


def test_an_intel_card_tells_whether_heat_slows_it_down(tmp_path: Path) -> None:
    files = {
        "gt/gt0/rps_act_freq_mhz": "1150",
        "gt/gt0/throttle_reason_thermal": "1",
        "gt/gt0/throttle_reason_pl1": "0",
    }
    card = card_source(INTEL, a_card(tmp_path, INTEL, files))
    assert not isinstance(card, str)
    assert card() == GpuReading(clock_mhz=1150, slowed=("heat",), capped=False)


def test_what_a_bundles_look_printed_is_read_as_the_driver_itself(tmp_path: Path) -> None:
    cards = a_card(tmp_path, AMD, {"device/hwmon/hwmon3/freq1_input": "2400000000"})
    script = CARDS_SCRIPT.replace(str(CARDS), str(cards))
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout
    assert card_report(printed, AMD) == GpuReading(2400)
    assert isinstance(card_report(printed, INTEL), str)
    gpus = "gpu Other\nclock_mhz 1\ngpu NVIDIA H200\nclock_mhz 1980\npower_mw 121990\nreasons 4\nslowed_ns 0\n"
    assert reading_in({"gpus": gpus}, "NVIDIA H200") == GpuReading(1980, None, 121.99, (), 0.0, True)
    assert isinstance(reading_in({"gpus": ""}, "NVIDIA H200"), str)
    assert reading_in({}, "Adreno(TM) 740") == ""


def test_a_bundles_looks_say_how_the_gpu_held_its_pace() -> None:
    cool, slowed = (f"gpu NVIDIA H200\nreasons {bits}\n" for bits in (0, 0x20))
    pace = pace_between({"gpus": cool}, {"gpus": slowed}, "NVIDIA H200")
    assert isinstance(pace, Steadiness)
    assert pace.why == "heat (driver) slowed the GPU down"
    assert isinstance(pace_between({"gpus": cool}, {}, "NVIDIA H200"), str)
    assert pace_between({}, {}, "Adreno(TM) 740") == ""
