"""`adreno-bench devices --watch`: who does what."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from device_runner.device import DeviceEntry
from device_runner.failures import RigFailure
from device_runner.lease import Holder, lease, tell
from device_runner.registry import list_devices
from device_runner.transport import adb_server
from device_runner.transport.adb_server import AdbEntry
from harness.cli import app
from harness.tools.fleet.devices_command import row_of, watch_devices

ODD = "adb-0A\x1b[31m [bold]=2c ' \u202ed"


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[AdbEntry]:
    entries = [AdbEntry("R5CT", "device"), AdbEntry(ODD, "device")]
    monkeypatch.setattr(adb_server, "known_devices", lambda: list(entries))
    return entries


def interrupt() -> None:
    raise KeyboardInterrupt


def lines(cache: Path, capsys: pytest.CaptureFixture[str], *between: Callable[[], object]) -> list[str]:
    """What is said, without the clock, while these things happen one after the other."""
    happening = iter(between)

    def sleep(_seconds: float) -> None:
        next(happening, interrupt)()

    with pytest.raises(KeyboardInterrupt):
        watch_devices(partial(list_devices, cache), sleep=sleep)
    return [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in capsys.readouterr().out.splitlines()]


def test_each_change_is_one_line(tmp_path: Path, attached: list[AdbEntry], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "leases"
    with ExitStack() as held:
        said = lines(
            tmp_path,
            capsys,
            lambda: held.enter_context(lease("R5CT", folder, timeout_s=0)),
            lambda: tell("R5CT", folder, "tiny-opencl-float32-untuned", "sampling"),
            lambda: None,
            lambda: attached.__setitem__(0, AdbEntry("R5CT", "offline")),
            lambda: attached.pop(0),
        )
    assert said[:4] == ["virtual  ready", "local  ready", "R5CT  ready", "adb-0A\ufffd[31m [bold]=2c ' \ufffdd  ready"]
    assert re.fullmatch(r"R5CT  busy  \d+ on \S+", said[4])
    assert re.fullmatch(r"R5CT  busy  \d+ on \S+  tiny-opencl-float32-untuned  sampling", said[5])
    assert re.fullmatch(r"R5CT  offline  \d+ on \S+  tiny-opencl-float32-untuned  sampling", said[6])
    assert said[7:] == ["R5CT  gone"]


def test_a_terminal_gets_a_table_and_no_markup_of_a_device(
    tmp_path: Path, attached: list[AdbEntry], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt):
        watch_devices(partial(list_devices, tmp_path), sleep=lambda _s: interrupt())
    shown = capsys.readouterr().out
    assert "held for" in shown
    assert "[bold]=2c" in shown
    assert "\x1b[31m [" not in shown


def test_the_list_names_what_it_tells_of_a_phone_and_says_what_the_others_are(
    tmp_path: Path, attached: list[AdbEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    attached[:] = [AdbEntry("R5CT", "device", {"model": "SM_S928B"})]
    rows = [re.split(r"  +", line) for line in CliRunner().invoke(app, ["devices"]).output.splitlines()[2:]]
    assert [row[3] for row in rows] == [
        "an Android-shaped sandbox on this host's OpenCL",
        "this host's OpenCL, without adb",
        "model SM_S928B",
    ]


def test_an_adb_server_that_does_not_answer_is_shown_and_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[list[AdbEntry]] = []

    def known() -> list[AdbEntry]:
        if not answers:
            raise RigFailure("the adb server on port 5037 does not answer")
        return answers[0]

    monkeypatch.setattr(adb_server, "known_devices", known)
    said = lines(tmp_path, capsys, lambda: answers.append([AdbEntry("R5CT", "device")]))
    assert said[0] == "-  the adb server on port 5037 does not answer"
    assert "R5CT  ready" in said
    assert said[-1] == "-  gone"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (75, "1:15"), (7_325, "2:02:05"), (-5, "0:00")])
def test_times_are_told_as_clocks_do(seconds: int, text: str) -> None:
    now = datetime.now(timezone.utc)
    owner = Holder(7, "run", "host", (now - timedelta(seconds=seconds)).isoformat(), step_since="not a time")
    assert row_of(DeviceEntry("d", "phone", "busy", owner=owner), now)[-2:] == ("", text)
