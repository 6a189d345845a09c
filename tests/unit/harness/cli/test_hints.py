"""What a command says last when Ctrl-C ended it."""

from __future__ import annotations

import importlib
import inspect
import signal
import sys

import pytest
from interruptible import ended_by

from harness.cli import every_command
from harness.cli.commands import load_command
from harness.cli.hints import last_words

SERVE = {"doctor", "devices", "serve", "cache"}
"""Commands that end in seconds, or run until Ctrl-C."""


def test_ctrl_c_names_the_command_that_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["adreno-bench", "tune", "--case", "a b"])

    @last_words("all is kept; {command} continues", ["--more"])
    def tune() -> None:
        signal.raise_signal(signal.SIGINT)

    with ended_by(signal.SIGINT):
        tune()
    line = "interrupted: all is kept; `adreno-bench tune --case 'a b' --more` continues\n"
    assert capsys.readouterr().err == line


def test_what_ends_by_itself_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="wrong"), last_words("all is kept"):
        raise ValueError("wrong")
    assert capsys.readouterr().err == ""


def test_every_command_that_measures_has_last_words() -> None:
    silent = []
    for command in every_command():
        loaded = load_command(command)
        for name, each in (getattr(loaded, "commands", None) or {command.name: loaded}).items():
            options = [option for parameter in each.params for option in parameter.opts]
            module = command.place.partition(":")[0] or f"harness.cli.{command.name}"
            source = inspect.getsource(importlib.import_module(module))
            if "--device" in options and name not in SERVE and "last_words(" not in source:
                silent.append(name)
    assert silent == []
