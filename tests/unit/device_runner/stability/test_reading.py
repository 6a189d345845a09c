"""Reading what phones print of their heat: several releases of Android, and anything else that may come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES

from device_runner.stability.reading import (
    COLDEST_C,
    HOTTEST_C,
    Reading,
    battery_is_faked,
    celsius,
    megahertz,
    numbers,
    reading,
    whole,
)

PAGES = FIXTURES / "android"


def page(name: str) -> str:
    return (PAGES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("release", "status", "gpu_c", "battery_c", "cooling"),
    [
        ("10", 0, None, 29.3, None),
        ("12", 1, 43.1, 36.6, 0),
        ("15", 0, 37.5, 28.9, 0),
        ("hot", 3, 86.7, None, 4),
        ("override", None, 86.7, None, 4),
        ("not-ready", 0, None, None, None),
    ],
)
def test_the_thermal_service_of_several_releases(
    release: str, status: int | None, gpu_c: float | None, battery_c: float | None, cooling: int | None
) -> None:
    seen = reading({"thermalservice": page(f"thermalservice-{release}")})
    assert (seen.thermal_status, seen.gpu_c, seen.battery_c, seen.gpu_cooling) == (status, gpu_c, battery_c, cooling)


@pytest.mark.parametrize(
    ("release", "percent", "battery_c", "charging"),
    [
        ("10", 81, 30.1, True),
        ("14", 100, 27.4, False),
        ("15", 22, 28.0, True),
        ("maker", 64, 37.7, False),
        ("faked", 15, -2.0, True),
    ],
)
def test_the_battery_service_of_several_releases(release: str, percent: int, battery_c: float, charging: bool) -> None:
    text = page(f"battery-{release}")
    seen = reading({"battery": text})
    assert (seen.battery_percent, seen.battery_c, seen.charging) == (percent, battery_c, charging)
    assert battery_is_faked(text) == (release == "faked")


def test_the_nodes_of_the_gpu() -> None:
    seen = reading(
        {
            "temp": "41300",
            "thermal_pwrlevel": "2",
            "max_clock_mhz": "400",
            "gpuclk": "200000000",
            "gpu_available_frequencies": "800000000 600000000 400000000",
            "gpu_clock_stats": "12 0 345678901234",
            "reset_count": "3",
        }
    )
    assert seen == Reading(
        gpu_c=41.3,
        thermal_pwrlevel=2,
        max_clock_mhz=400,
        top_clock_mhz=800,
        clock_mhz=200,
        clocks_mhz=(800, 600, 400),
        clock_stats=(12, 0, 345678901234),
        reset_count=3,
    )
    assert "battery_c" in seen.unknown
    assert "battery_c" not in seen.facts


def test_the_driver_is_asked_before_the_zones_and_those_before_android() -> None:
    android = page("thermalservice-15")
    assert reading({"temp": "40100", "zones": "39000\n41000", "thermalservice": android}).gpu_c == 40.1
    assert reading({"temp": "", "zones": "39000\n\n41000\n-274000", "thermalservice": android}).gpu_c == 41.0
    assert reading({"zones": "", "thermalservice": android}).gpu_c == 37.5


@pytest.mark.parametrize(
    ("text", "degrees"),
    [("36000", 36.0), ("361", 36.1), ("36", 36.0), ("-5000", -5.0), ("0", 0.0), ("75000\n", 75.0), ("999999", None)],
)
def test_temperatures_come_in_three_units(text: str, degrees: float | None) -> None:
    assert celsius(text) == degrees


@pytest.mark.parametrize(("text", "mhz"), [("800000000", 800), ("800000", 800), ("800", 800), ("0", None)])
def test_clocks_come_in_three_units(text: str, mhz: int | None) -> None:
    assert megahertz(text) == mhz


def test_a_clock_of_a_fraction_is_cut_off_as_the_driver_cuts_its_own() -> None:
    """Adreno 530 Pro at full speed: rounded, the top clock would read 653 and the GPU throttled for ever."""
    seen = reading({"gpu_available_frequencies": "652800000 401800000", "max_clock_mhz": "652"})
    assert seen.top_clock_mhz == seen.max_clock_mhz == 652


NOT_NUMBERS = ["", "n/a", "cat: temp: Permission denied", "0x10", "1.5", "--", "nan", "9" * 30, "١٢"]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_what_is_no_number_is_not_known(text: str) -> None:
    assert (whole(text), celsius(text), megahertz(text), numbers(text)) == (None, None, None, None)
    assert reading(dict.fromkeys(("temp", "thermal_pwrlevel", "reset_count", "gpu_clock_stats"), text)) == Reading()


@pytest.mark.parametrize(("text", "percent"), [("37 %", 37), ("0 %", 0), ("100%", 100), ("101 %", None), ("%", None)])
def test_how_busy_the_gpu_is(text: str, percent: int | None) -> None:
    assert reading({"gpu_busy_percentage": text}).gpu_busy_percent == percent


def test_half_a_histogram_is_none() -> None:
    assert numbers("1 2 -3") is numbers("1 2 x") is None
    assert numbers(" 1  2 ") == (1, 2)


SOURCES = st.sampled_from(
    [
        "temp",
        "zones",
        "thermal_pwrlevel",
        "max_clock_mhz",
        "gpu_available_frequencies",
        "gpu_clock_stats",
        "reset_count",
        "thermalservice",
        "battery",
    ]
)
PIECES = st.sampled_from(
    [
        "Thermal Status: ",
        "Current temperatures from HAL:\n",
        "\tTemperature{mValue=",
        ", mType=",
        ", mName=",
        "}\n",
        "CoolingDevice{mValue=",
        "  level: ",
        "  scale: ",
        "  temperature: ",
        "\n",
        "1",
        "-",
        "NaN",
        "inf",
        "1e999",
        "é",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join), st.integers().map(str))


@given(st.dictionaries(SOURCES, TEXTS))
def test_whatever_a_phone_prints_is_read_or_not_known(said: dict[str, str]) -> None:
    seen = reading(said)
    for degrees in (seen.gpu_c, seen.battery_c):
        assert degrees is None or COLDEST_C <= degrees <= HOTTEST_C
    assert seen.battery_percent is None or 0 <= seen.battery_percent <= 100
    assert seen.thermal_status is None or 0 <= seen.thermal_status <= 9
    for count in (seen.thermal_pwrlevel, seen.reset_count, seen.max_clock_mhz):
        assert count is None or count >= 0
