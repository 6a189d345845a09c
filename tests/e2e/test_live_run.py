"""`run --live` in a terminal: the matrix as it fills, and a terminal that is as it was afterwards."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path

import command
import pytest
from waiting import LONG_S

from harness.base.outcome import ExitCode, Outcome
from harness.measure.records.record import RecordFile

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

ROWS, COLUMNS = 30, 100
SUITE = 'models = ["tiny"]\npaths = ["opencl", "texture"]\nbudget_s = {budget_s}\nsamples = 10\n'
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HIDDEN_CURSOR, CURSOR = "\x1b[?25l", "\x1b[?25h"
CTRL_C = b"\x03"


def on_a_terminal(
    folder: Path, cache: Path, *words: str, press_when: Callable[[str], bool] = lambda _: False
) -> tuple[int, str]:
    """Run the program on a terminal of its own; return its exit code and all that the terminal got.

    Args:
        folder: Where it runs.
        cache: Its cache.
        words: Its arguments.
        press_when: Says of what the terminal got whether somebody presses Ctrl-C now; once.
    """
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        plain = {
            name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
        }
        environment = {**plain, "ADRENO_BENCH_CACHE": str(cache), "TERM": "xterm"}
        os.execve(command.PROGRAM[0], [*command.PROGRAM, *words], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    got, pressed, end = b"", False, time.monotonic() + LONG_S
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            more = os.read(terminal, 65536)
        except OSError:  # what Linux answers once the last process behind a terminal has ended
            break
        got += more
        if not pressed and press_when(got.decode(errors="replace")):
            os.write(terminal, CTRL_C)
            pressed = True
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), got.decode()


def test_the_matrix_fills_and_the_table_follows(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(SUITE.format(budget_s=0.1))
    code, got = on_a_terminal(tmp_path, cache, "run", "--live")
    assert code == ExitCode.GOOD, got
    drawn, _, rest = got.rpartition(CURSOR)
    lines = [line.rstrip() for line in ESCAPES.sub("", drawn).replace("\r", "\n").split("\n")]
    assert any(re.fullmatch(r"model +opencl +texture", line) for line in lines)
    cells = [line for line in lines if re.match(r"tiny  ", line)]
    assert re.fullmatch(r"tiny +\. +\.", cells[0]), "both wait"
    assert any(re.fullmatch(r"tiny +ok [\d.]+ ms +[a-z].*", line) for line in cells), "one is done, one is going on"
    assert any(re.match(r"virtual: .*(°C|MHz)", line) for line in lines)
    assert all(len(line) <= COLUMNS for line in lines)
    table = ESCAPES.sub("", rest).replace("\r", "")
    assert re.search(r"^model .*outcome", table.lstrip(), re.M), "what was drawn is gone, the result stays"


@pytest.mark.usefixtures("waiting_inferences")
def test_ctrl_c_ends_it_in_one_line_and_gives_the_cursor_back(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(SUITE.format(budget_s=60).replace("samples = 10", "samples = 5000"))
    code, got = on_a_terminal(tmp_path, cache, "run", "--live", press_when=lambda got: "untuned: sampling" in got)
    assert code == 130, got
    assert got.rfind(CURSOR) > got.rfind(HIDDEN_CURSOR) >= 0
    said = " ".join(ESCAPES.sub("", got).split())
    line = "interrupted: 0 of 2 cases are settled; `adreno-bench run --live --resume` continues"
    assert (said.count(line), said.count("interrupted")) == (1, 1)
    assert "Traceback" not in said
    assert RecordFile(tmp_path / "records.jsonl").load().records == []


def test_in_a_pipe_it_says_what_it_says_without(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "adreno-bench.toml").write_text(SUITE.format(budget_s=0.1))
    code, out, err = command.bench(tmp_path, cache, "run", "--live", "--case", "*-opencl-*")
    assert code == ExitCode.GOOD, err
    assert "\x1b" not in out + err
    assert re.search(r"^\[ +[\d.]+ s\] tiny-opencl-float32-untuned: ok", err, re.M)
    assert [record.outcome for record in RecordFile(tmp_path / "records.jsonl").load().records] == [Outcome.OK]
