"""`run --live`: a cell for each case, from waiting to its outcome, and lines where there is no terminal."""

from __future__ import annotations

import re

import pytest
from fake_records import a_record

from device_runner.device import Pulse
from harness.base.outcome import Outcome
from harness.tools.live.matrix_screen import MOST_ROWS, LiveMatrix, MatrixScreen

OPENCL, TEXTURE = "net-opencl-float32-untuned", "net-texture-float32-untuned"


def rows(matrix: LiveMatrix) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in matrix.text().splitlines()]


def test_a_cell_goes_from_waiting_over_its_steps_to_its_outcome() -> None:
    matrix = LiveMatrix()
    assert matrix.text() == ""
    matrix.expect([OPENCL, TEXTURE])
    assert rows(matrix)[0] == ["model", "opencl", "texture"]
    assert rows(matrix)[2] == ["net", ".", "."]
    matrix.step(f"{TEXTURE} on virtual-2", "device lost: reconnect")
    matrix.step("opening virtual", "step 1 of 3")
    assert rows(matrix)[2] == ["net", ".", "device lost"]
    matrix.done(a_record(OPENCL, wall_ms=[2.14] * 10))
    matrix.done(a_record(TEXTURE, outcome=Outcome.WRONG_RESULT))
    matrix.step(TEXTURE, "sampling")
    assert rows(matrix)[2] == ["net", "ok 2.14 ms", "wrong-result"]


def test_each_device_has_its_heat_and_the_clock_of_its_last_work() -> None:
    matrix = LiveMatrix()
    matrix.expect([OPENCL])
    matrix.pulse("phone", Pulse(clock_mhz=585, gpu_c=41.52))
    matrix.pulse("local", Pulse())
    assert matrix.text().splitlines()[-1] == "phone: 41.5 °C, 585 MHz"
    matrix.pulse("phone", Pulse(gpu_c=52.0, slowed="heat held the GPU"))
    assert matrix.devices == ["phone: 52.0 °C, 585 MHz, heat held the GPU"]


def test_models_that_are_not_finished_stand_first_and_the_rest_is_counted() -> None:
    matrix = LiveMatrix()
    cases = [f"net{number}-opencl-float32-untuned" for number in range(MOST_ROWS + 3)]
    matrix.expect(cases)
    matrix.done(a_record(cases[0], wall_ms=[1.0] * 10))
    assert rows(matrix)[2][0] == "net1"
    assert rows(matrix)[-1] == ["and 3 models more"]


def test_both_precisions_share_a_cell() -> None:
    matrix = LiveMatrix()
    matrix.expect([OPENCL, OPENCL.replace("float32", "float16")])
    matrix.step(OPENCL, "sampling")
    assert rows(matrix)[2] == ["net", "sampling, ."]


def test_a_silence_in_a_pipe_ends_with_the_state_of_each_device() -> None:
    screen = MatrixScreen()
    screen.step(OPENCL, "first run")
    screen.pulse("phone", Pulse(clock_mhz=585, gpu_c=41.5))
    assert list(screen._going_on.values())[-1] == "phone: 41.5 °C, 585 MHz"


def test_a_pipe_gets_lines_and_no_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    with MatrixScreen() as screen:
        screen.expect([OPENCL])
        screen.begin(1)
        screen.step(OPENCL, "sampling")
        screen.done(a_record(OPENCL, wall_ms=[1.0] * 10))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[2] for line in lines] == [f"{OPENCL}: ok"]


def test_a_terminal_gets_the_matrix_above_what_is_going_on() -> None:
    screen = MatrixScreen()
    screen.expect([OPENCL])
    screen.step(OPENCL, "first run")
    with screen.console.capture() as drawn:
        screen.console.print(screen._live)
    text = drawn.get()
    assert re.search(r"net +first run", text)
    assert text.index("net ") < text.index(f"{OPENCL}: first run")


@pytest.mark.parametrize(("variable", "red"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_what_is_wrong_is_red_where_there_is_colour(variable: str, red: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    screen = MatrixScreen()
    screen.expect([OPENCL])
    screen.done(a_record(OPENCL, outcome=Outcome.WRONG_RESULT, message="off"))
    with screen.console.capture() as drawn:
        screen.console.print(screen._live)
    assert ("\x1b[31mwrong-result" in drawn.get()) is red
