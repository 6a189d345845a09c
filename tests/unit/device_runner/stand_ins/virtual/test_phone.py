from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import LONG_S

from device_runner.failures import RigFailure
from device_runner.stand_ins.virtual import faults, phone
from device_runner.stand_ins.virtual.fault_file import FaultFile
from device_runner.stand_ins.virtual.faults import Chance, Faults, Kernels, Mishap, SlowKernels
from device_runner.stand_ins.virtual.phone import PhoneState

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program of a fresh phone's /system/bin."""
    phone.prepare(tmp_path)

    def run_one(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(tmp_path / "system/bin" / name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=LONG_S, check=False)

    return run_one


def change(home: Path, **changes: object) -> PhoneState:
    state = phone.load(home).changed(changes)
    phone.save(home, state)
    return state


def test_state_survives_a_restart_and_data_stays(tmp_path: Path) -> None:
    phone.prepare(tmp_path)
    (tmp_path / "data/local/tmp/kept").touch()
    changed = change(tmp_path, gpu={"thermal_level": 2}, temperatures_mc={"gpuss-0": 71_000})
    assert phone.prepare(tmp_path) == changed
    assert (tmp_path / "data/local/tmp/kept").exists()


def test_what_killed_processes_left_of_their_kernels_is_gone_after_a_restart(tmp_path: Path) -> None:
    phone.prepare(tmp_path)
    left = tmp_path / "data/local/tmp/.cache/pocl/uncached/_UNCACHED_x"
    left.mkdir(parents=True)
    phone.prepare(tmp_path)
    assert not left.exists()


def test_the_folder_is_private(tmp_path: Path) -> None:
    phone.prepare(tmp_path / "phone")
    assert (tmp_path / "phone").stat().st_mode & 0o777 == 0o700


def test_nothing_claims_to_be_a_real_part() -> None:
    properties = PhoneState().properties
    assert properties["ro.product.model"] == "adreno-bench virtual"
    assert "virtual" in properties["ro.build.fingerprint"]
    assert properties["ro.soc.model"] == PhoneState().gpu.model == "virtual"


def test_one_temperature_shows_everywhere(tmp_path: Path, run: Run) -> None:
    change(tmp_path, temperatures_mc={"gpuss-0": 66_600}, thermal_status=3)
    assert (tmp_path / "sys/class/kgsl/kgsl-3d0/temp").read_text() == "66600\n"
    zones = {
        (zone / "type").read_text(): (zone / "temp").read_text()
        for zone in (tmp_path / "sys/class/thermal").glob("thermal_zone*")
    }
    assert zones["gpuss-0\n"] == "66600\n"
    page = run("dumpsys", "thermalservice").stdout
    assert "Thermal Status: 3\n" in page
    assert "Temperature{mValue=66.6, mType=1, mName=GPU, mStatus=3}" in page


def test_a_thermal_limit_slows_the_clock(tmp_path: Path) -> None:
    phone.prepare(tmp_path)
    change(tmp_path, gpu={"thermal_level": 2, "level": 0})
    node = tmp_path / "sys/class/kgsl/kgsl-3d0"
    assert [(node / name).read_text() for name in ("gpuclk", "max_clock_mhz", "thermal_pwrlevel")] == [
        "400000000\n",
        "400\n",
        "2\n",
    ]


@pytest.mark.parametrize("changes", [{"gpu": {"speed": 1}}, {"colour": "red"}])
def test_a_key_that_no_phone_has_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    phone.prepare(tmp_path)
    with pytest.raises(RigFailure, match="not the state"):
        change(tmp_path, **changes)


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    phone.prepare(tmp_path)
    (tmp_path / "phone.json").write_text("{")
    with pytest.raises(RigFailure, match=r"phone\.json.*delete it"):
        phone.prepare(tmp_path)


class TestPrograms:
    def test_getprop_tells_one_all_or_the_default(self, run: Run) -> None:
        assert run("getprop", "ro.soc.model").stdout == "virtual\n"
        assert "[ro.product.model]: [adreno-bench virtual]\n" in run("getprop").stdout
        assert run("getprop", "ro.nothing").stdout == "\n"
        assert run("getprop", "ro.nothing", "else").stdout == "else\n"

    def test_getprop_follows_the_state(self, tmp_path: Path, run: Run) -> None:
        change(tmp_path, properties={"ro.soc.model": "virtual two"})
        assert run("getprop", "ro.soc.model").stdout == "virtual two\n"

    def test_setprop_sets_what_the_shell_user_may(self, run: Run) -> None:
        assert run("setprop", "debug.a b", "x y").returncode == 0
        assert run("getprop", "debug.a b").stdout == "x y\n"
        assert "[debug.a b]: [x y]\n" in run("getprop").stdout

    @pytest.mark.parametrize("name", ["ro.soc.model", "debug.../../../escape"])
    def test_setprop_refuses_the_rest(self, tmp_path: Path, run: Run, name: str) -> None:
        before = sorted(tmp_path.rglob("*"))
        assert run("setprop", name, "x").returncode == 1
        assert sorted(tmp_path.rglob("*")) == before

    def test_dumpsys_knows_the_battery(self, tmp_path: Path, run: Run) -> None:
        change(tmp_path, battery={"level_percent": 41, "charging": True})
        page = run("dumpsys", "battery").stdout
        assert "  level: 41\n" in page
        assert "  status: 2\n" in page

    @pytest.mark.parametrize("name", ["nonsense", "../../build.prop", ".hidden"])
    def test_dumpsys_has_no_other_pages(self, run: Run, name: str) -> None:
        assert run("dumpsys", name).stdout == f"Can't find service: {name}\n"

    def test_settings_leave_a_trace(self, run: Run) -> None:
        assert run("svc", "power", "stayon", "usb").returncode == 0
        assert run("cmd", "power", "set-fixed-performance-mode-enabled", "true").returncode == 0
        assert run("getprop", "virtual.power.stayon").stdout == "usb\n"
        assert run("getprop", "virtual.power.fixed_performance").stdout == "true\n"
        assert run("svc", "wifi", "disable").returncode != 0
        assert run("cmd", "gpu", "vkjson").returncode == 20


class TestFaultFile:
    def test_follows_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "faults.json"
        watched = FaultFile(path)
        assert watched.now == Faults()
        for injected in (Faults(frozen=True), Faults(features=("cmd",), bytes_per_s=3), Faults()):
            faults.write(path, injected)
            assert watched.now == injected

    def test_adds_what_passes_by_itself(self, tmp_path: Path) -> None:
        watched = FaultFile(tmp_path / "faults.json")
        faults.write(tmp_path / "faults.json", Faults(latency_s=1.0))
        watched.for_a_while(60, frozen=True)
        watched.for_a_while(0, offline=True)
        assert watched.now == Faults(latency_s=1.0, frozen=True)

    def test_counts_mishaps_anew_when_it_is_written(self, tmp_path: Path) -> None:
        watched = FaultFile(tmp_path / "faults.json")
        mishap = Mishap("reboot", times=2)
        for _ in range(2):
            faults.write(tmp_path / "faults.json", Faults(mishaps=(mishap,)))
            assert watched.now.mishaps == (mishap,)
            assert [watched.strikes(mishap) for _ in range(3)] == [True, True, False]

    def test_keeps_the_last_good_one(self, tmp_path: Path) -> None:
        path = tmp_path / "faults.json"
        watched = FaultFile(path)
        faults.write(path, Faults(send_error="no"))
        assert watched.now.send_error == "no"
        path.write_text("[")
        assert watched.now.send_error == "no"

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("[", "Input data was truncated"),
            ("[]", "Expected `object`, got `array`"),
            ('{"melted": true}', "there is no melted: docs"),
            ('{"frozen": 1}', r"Expected `bool`, got `int` - at `\$.frozen`"),
            ('{"bytes_per_s": true}', r"Expected `int \| null`, got `bool`"),
            ('{"crash_session_after_s": "soon"}', r"Expected `float \| null`, got `str`"),
            ('{"crash_session_after_s": NaN}', "JSON is malformed"),
            ('{"slow_kernels": [{"factor": 2}, {"pace": 1}]}', r"there is no slow_kernels\.pace: docs"),
            ('{"mishaps": [{"what": "flood"}]}', "there is no mishap 'flood'; known are unplug"),
            ('{"mishaps": [{}]}', r"Object missing required field `what` - at `\$.mishaps\[0\]`"),
            ('{"shell_answers": "no"}', "shell_answers should be one of garbage, truncated"),
            ('{"latency_s": -1}', "latency_s should not be negative"),
            ('{"mishaps": [{"what": "reboot", "for_s": -1}]}', "for_s should not be negative"),
            ('{"taken_ports": [1]}', "taken_ports should be the first and the last"),
            ('{"features": "cmd"}', r"Expected `array \| null`, got `str`"),
            ('{"features": [1]}', r"Expected `str`, got `int` - at `\$.features\[0\]`"),
        ],
    )
    def test_a_wrong_file_is_refused(self, tmp_path: Path, text: str, says: str) -> None:
        (tmp_path / "faults.json").write_text(text)
        with pytest.raises(faults.BadFaults, match=rf"faults\.json is no file of faults: {says}"):
            faults.read(tmp_path / "faults.json")

    def test_a_person_names_a_file_of_faults(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(faults.FAULTS_VARIABLE, raising=False)
        assert faults.from_environment() == Faults()
        monkeypatch.setenv(faults.FAULTS_VARIABLE, str(tmp_path / "mine.json"))
        with pytest.raises(faults.BadFaults, match=r"mine\.json, which does not exist"):
            faults.from_environment()
        (tmp_path / "mine.json").write_text('{"crash_session_after_s": 2}')
        assert faults.from_environment() == Faults(crash_session_after_s=2.0)
        (tmp_path / "mine.json").unlink()
        (tmp_path / "mine.json").mkdir()
        with pytest.raises(faults.BadFaults, match="Is a directory"):
            faults.from_environment()

    def test_every_fault_survives_the_file(self, tmp_path: Path) -> None:
        injected = Faults(
            drop_after_bytes=1,
            full_after_bytes=2,
            send_error="x",
            bytes_per_s=3,
            features=("cmd", "ls_v2"),
            crash_session_after_s=0.5,
            slow_kernels=(SlowKernels(factor=1.3, least_s=0.5, library="a*", kernel="b"),),
            hang_kernels=Kernels(),
            mishaps=(Mishap("reboot", 1.0, 2.0, 3), Mishap("unplug")),
            clock_jump_s=-5,
            latency_s=0.25,
            shell_answers="garbage",
            taken_ports=(1, 2),
            broken_runtime="symbol",
            simulate_inference_s=0.1,
            chance=Chance(-3, 0.5),
            frozen=True,
            offline=True,
            unauthorized=True,
            read_only=True,
            hollow=True,
        )
        faults.write(tmp_path / "faults.json", injected)
        assert faults.read(tmp_path / "faults.json") == injected
        assert set(json.loads((tmp_path / "faults.json").read_text())) == set(Faults.__dataclass_fields__)
