"""What Android 11 to 16 print to the commands that are parsed, line by line where releases differ.

Sources: AOSP BatteryService.dumpInternal, ThermalManagerService.dump, PowerManagerService.dump and
PowerManagerShellCommand, ConnectivityService.ShellCmd, SettingsService, toybox's `df`; the values are made up.
"""

from __future__ import annotations

import re

import pytest

from device_runner.adb_device import properties_in
from device_runner.stability.knobs.android import AirplaneMode, FixedPerformance, Setting, Wakefulness
from device_runner.stability.reading import reading
from device_runner.transport.batch import BatchAnswer

RELEASES = range(11, 17)
every_release = pytest.mark.parametrize("release", RELEASES)


def battery_page(release: int) -> str:
    """Dock since 13, state and policy of charging since 14, times of broadcasts since 15."""
    dock = ["  Dock powered: false"] if release >= 13 else []
    sent = ["Time when the latest updated value of the voltage was sent via battery changed broadcast: +1h2m3s4ms"]
    charging = ["  Charging state: 0", "  Charging policy: 1"] if release >= 14 else []
    lines = [
        "Current Battery Service state:",
        "  AC powered: false",
        "  USB powered: true",
        "  Wireless powered: false",
        *dock,
        "  Max charging current: 900000",
        "  Max charging voltage: 5000000",
        "  Charge counter: 2871000",
        "  status: 2",
        "  health: 2",
        "  present: true",
        "  level: 71",
        "  scale: 100",
        "  voltage: 4112",
        *(
            [f" {sent[0]}", " The last voltage value sent via the battery changed broadcast: 4109"]
            if release >= 15
            else []
        ),
        "  temperature: 312",
        "  technology: Li-poly",
        *charging,
        *(["  Capacity level: -1"] if release >= 15 else []),
    ]
    return "\n".join(lines) + "\n"


def thermal_page(release: int) -> str:
    """Callbacks since 12, the words of the AIDL HAL since 14, headroom since 15, forecasts in 16."""
    callbacks = ["ThermalEventListeners:", "\tcallbacks: 2", "\tkilled: false", "\tbroadcasts count: -1"]
    hal = "ThermalHAL AIDL 2  connected: yes" if release >= 14 else "ThermalHAL 2.0 connected: yes"
    lines = [
        "IsStatusOverride: false",
        *(
            callbacks
            if release >= 12
            else ["ThermalEventListeners: callbacks=2", "ThermalStatusListeners: callbacks=4"]
        ),
        "Thermal Status: 1",
        "Cached temperatures:",
        " Temperature{mValue=99.0, mType=1, mName=GPU, mStatus=0}",
        "HAL Ready: true",
        "HAL connection:",
        f"\t{hal}",
        "Current temperatures from HAL:",
        "\tTemperature{mValue=44.25, mType=1, mName=GPU0, mStatus=1}",
        "\tTemperature{mValue=43.5, mType=1, mName=GPU1, mStatus=0}",
        "\tTemperature{mValue=31.2, mType=2, mName=BATTERY, mStatus=0}",
        "Current cooling devices from HAL:",
        "\tCoolingDevice{mValue=2, mType=3, mName=thermal-devfreq-0}",
        *(["Temperature static thresholds from HAL:"] if release >= 12 else []),
        *(["Temperature headroom thresholds:", "[NaN, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3]"] if release >= 15 else []),
        *(["Thermal headroom callbacks:", "\tcallbacks: 0"] if release >= 16 else []),
    ]
    return "\n".join(lines) + "\n"


def power_page(release: int) -> str:
    """The wakefulness of each group, as a number, since 13."""
    reason = "  mWakefulnessChanging=false\n" if release < 13 else "  mGlobalWakefulnessReason=4\n"
    group = "PowerGroup{mGroupId=0}:\n    mWakefulness=1\n" if release >= 13 else ""
    return f"POWER MANAGER (dumpsys power)\n\nPower Manager State:\n  mWakefulness=Awake\n{reason}{group}"


@every_release
def test_the_battery_of_every_release(release: int) -> None:
    seen = reading({"battery": battery_page(release)})
    assert (seen.battery_percent, seen.battery_c, seen.charging) == (71, 31.2, True)
    assert (seen.plugged, seen.charge_uah, seen.voltage_mv) == (True, 2_871_000, 4112)
    unplugged = reading({"battery": battery_page(release).replace("USB powered: true", "USB powered: false")})
    assert unplugged.plugged is False


@pytest.mark.parametrize(
    ("line", "instead", "field"),
    [
        ("  Charge counter: 2871000\n", "", "charge_uah"),
        ("Charge counter: 2871000", "Charge counter: 0", "charge_uah"),
        ("Charge counter: 2871000", "Charge counter: -1", "charge_uah"),
        ("  voltage: 4112\n", "", "voltage_mv"),
        ("voltage: 4112", "voltage: 0", "voltage_mv"),
        ("voltage: 4112", "voltage: 4", "voltage_mv"),
    ],
)
def test_a_charge_or_voltage_that_a_phone_does_not_tell_is_unknown(line: str, instead: str, field: str) -> None:
    assert getattr(reading({"battery": battery_page(14).replace(line, instead)}), field) is None


def test_a_voltage_in_microvolts_is_read_in_millivolts() -> None:
    page = battery_page(14).replace("voltage: 4112", "voltage: 4112000")
    assert reading({"battery": page}).voltage_mv == 4112


@every_release
def test_the_heat_of_every_release(release: int) -> None:
    seen = reading({"thermalservice": thermal_page(release)})
    assert (seen.thermal_status, seen.gpu_c, seen.battery_c, seen.gpu_cooling) == (1, 44.25, 31.2, 2)


@every_release
def test_the_screen_of_every_release(release: int) -> None:
    printed = "".join(re.findall(r".*mWakefulness=.*\n", power_page(release)))
    assert Wakefulness().value(printed) == "Awake"
    assert Wakefulness().value(printed.replace("=Awake", "=Dozing")) == "Asleep"


def test_modes_that_a_release_has_and_has_not() -> None:
    airplane, fixed = AirplaneMode(), FixedPerformance()
    assert (airplane.value("enabled\n"), airplane.value("disabled\n")) == ("enabled", "disabled")
    assert not airplane.wanted("Unknown command: airplane-mode\n")  # 10
    assert not airplane.wanted("cmd: Can't find service: connectivity\n")
    refusal = "Failed to set FIXED_PERFORMANCE mode\nThis is likely because Power HAL AIDL is not implemented\n"
    assert fixed.value(refusal) == "false"
    assert BatchAnswer(refusal, 255).complaint == "This is likely because Power HAL AIDL is not implemented"


@pytest.mark.parametrize(("printed", "value"), [("null\n", "null"), ("1.0\n", "1.0"), ("\n1\n", "1"), ("", "null")])
def test_a_setting_of_every_release(printed: str, value: str) -> None:
    assert Setting("x", "global", "window_animation_scale", "0").value(printed) == value


@pytest.mark.parametrize(
    "text",
    [
        # 10 and before: `settings` and `input` are programs of their own.
        "Error while accessing the provider\njava.lang.SecurityException: Permission denial\n\tat a.b(C.java:1)\n",
        # 11 and later: `cmd` prints a heading.
        "\nException occurred while executing 'put':\njava.lang.SecurityException: Permission denial\n\tat a.b(C)\n",
        "Security exception: Permission denial\n\njava.lang.SecurityException: Permission denial\n\tat a.b(C.java:9)\n",
    ],
)
def test_a_security_exception_of_every_release_is_one_line(text: str) -> None:
    assert BatchAnswer(text, 255).complaint == "java.lang.SecurityException: Permission denial"


def test_properties_with_brackets_colons_lines_and_other_scripts() -> None:
    printed = (
        "[persist.sys.locale]: [ar-EG]\n[ro.build.fingerprint]: [a/b/c:14/UP1A.1/1:user/release-keys]\r\n"
        "[ro.product.marketname]: [手机 [Pro]]\n[sys.two.lines]: [one\ntwo]\n[ro.soc.model]: [SM8550]\n"
    )
    known = properties_in(printed)
    assert known["persist.sys.locale"] == "ar-EG"
    assert known["ro.build.fingerprint"] == "a/b/c:14/UP1A.1/1:user/release-keys"
    assert known["ro.product.marketname"] == "手机 [Pro]"
    assert known["ro.soc.model"] == "SM8550"


def test_digits_of_another_locale_are_read_or_unknown_but_never_wrong() -> None:
    """Java formats numbers with the digits of the locale where its author forgot to name one."""
    arabic = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    said = {"battery": battery_page(14).translate(arabic), "thermalservice": thermal_page(14).translate(arabic)}
    seen = reading(said)
    assert seen.battery_percent in (None, 71)
    assert seen.battery_c in (None, 31.2)
    assert seen.charging in (None, True)
    assert seen.thermal_status in (None, 1)
    assert seen.gpu_c in (None, 44.25)
