from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import FENCE_S

from device_runner.stand_ins.local import LocalTransport
from device_runner.transport.batch import BatchAnswer, run_batch

Run = Callable[..., "dict[str, BatchAnswer]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a batch on a machine whose `timeout` does what it is given, with a deadline as its first argument."""

    def run_with(timeout: str, **commands: str) -> dict[str, BatchAnswer]:
        (tmp_path / "timeout").write_text(f"#!/bin/sh\nshift\n{timeout}\n")
        (tmp_path / "timeout").chmod(0o755)
        return run_batch(LocalTransport(str(tmp_path), {"PATH": f"{tmp_path}:{os.defpath}"}), commands)

    return run_with


HONEST = 'exec "$@"'


def test_each_command_has_its_own_text_and_code(run: Run) -> None:
    said = run(HONEST, good="echo one; echo two >&2", bad="echo three; exit 3", none="no-such-tool 2>/dev/null")
    assert said["good"] == BatchAnswer("one\ntwo\n", 0)
    assert said["bad"] == BatchAnswer("three\n", 3)
    assert said["none"].code == 127


def test_a_command_that_replaces_its_shell_or_makes_no_sense_spoils_no_other(run: Run) -> None:
    said = run(HONEST, replaced="exec sh -c 'exit 5'", senseless="if then", after="echo here")
    assert said["replaced"].code == 5
    assert said["senseless"].code != 0
    assert said["after"] == BatchAnswer("here\n", 0)


def test_a_code_that_timeout_makes_up_is_not_believed(run: Run) -> None:
    """As toybox 0.8.9 does of a command that ends at once."""
    said = run('"$@"; exit 127', good="echo fine", bad="exit 3")
    assert said == {"good": BatchAnswer("fine\n", 0), "bad": BatchAnswer("", 3)}


def test_a_command_that_is_cut_off_says_so(run: Run) -> None:
    said = run('exec timeout_of_host 0.2 "$@"'.replace("timeout_of_host", "/usr/bin/timeout"), late="echo a; sleep 20")
    assert said["late"] == BatchAnswer("a\n", 124)


def test_a_command_that_waits_is_cut_off_where_timeout_ends_only_its_child(run: Run) -> None:
    """As toybox of Android 11 does: an `su` that waits for its dialog has been started by that child."""
    began = time.monotonic()
    said = run('"$@" & child=$!; sleep 0.5; kill $child', su="echo asks; sleep 600; echo 0", after="echo here")
    assert (said["su"].text, said["su"].code) == ("asks\n", 124)
    assert said["after"].text.startswith("here\n")
    assert time.monotonic() - began < FENCE_S


def test_the_complaint_is_the_exception_and_not_the_end_of_its_stack() -> None:
    text = (
        "\nException occurred while executing 'put':\njava.lang.SecurityException: Permission denial\n"
        "\tat com.android.providers.settings.SettingsService.main(A.java:49)\n"
    )
    assert BatchAnswer(text, 255).complaint.startswith("java.lang.SecurityException: Permission denial")
    assert BatchAnswer("one\ntwo\n", 1).complaint == "two"
    assert BatchAnswer("", 7).complaint == "exit code 7"


def test_what_a_command_leaves_behind_holds_nothing_up(run: Run) -> None:
    said = run(HONEST, daemon="sleep 20 >/dev/null 2>&1 & echo started $!; exit 4")
    assert said["daemon"].code == 4
    os.kill(int(said["daemon"].text.split()[1]), 9)


def test_a_command_that_is_not_here_ends_as_in_a_shell(tmp_path: Path) -> None:
    answer = LocalTransport(str(tmp_path)).shell(["no-such-tool", "x"], timeout_s=60)
    assert (answer.code, answer.stderr) == (127, "no-such-tool: not found")
