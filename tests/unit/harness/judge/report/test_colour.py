"""Colour: a wrong result is red where a terminal has colours, and nowhere else."""

from __future__ import annotations

import io

import pytest

from harness.base.terminal import takes_colour
from harness.judge.report.screen import out, out_whole, paint

RED = "\x1b[31m{}\x1b[0m"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_a_terminal_has_colour_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert takes_colour(stream) is coloured


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("digits  texture  wrong-result         -", "wrong-result"),
        ("digits-texture-float32-untuned  wrong    > 99.9%", "wrong"),
        ("  digits-texture-float32-untuned: wrong-result (owner: path): output 0 is off", "wrong-result"),
        ("missing OpenCL            no device", "missing"),
        ("resnet18  clml  compile-error, unsteady  -", "compile-error"),
    ],
)
def test_what_is_wrong_or_broken_is_red(line: str, word: str) -> None:
    assert RED.format(word) in paint(line)


@pytest.mark.parametrize(
    "line", ["1 case is wrong and 2 are broken", "digits  opencl  ok  2.1", "`show` wrong-result.png"]
)
def test_words_of_a_sentence_are_not(line: str) -> None:
    assert paint(line) == line


def test_what_a_program_reads_is_plain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out_whole("digits  wrong")
    out("digits  wrong")
    assert capsys.readouterr().out == f"digits  wrong\ndigits  {RED.format('wrong')}\n"
