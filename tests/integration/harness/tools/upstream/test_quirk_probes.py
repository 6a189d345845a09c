"""The program of each report: in a process of its own, asked once for a release, told as soon as it is known."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compile.quirks import QUIRKS, Quirk
from harness.tools.upstream import quirk_probes
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer
from harness.tools.upstream.quirk_probes import LIMITS, probe_answers
from harness.tools.upstream.report import report_of, reproduce

pytestmark = pytest.mark.rest

NOBODY = dataclasses.replace(QUIRKS[0], id="no-such-quirk")


def asked(cache: Path, *quirks: Quirk, **more: Any) -> tuple[list[ProbeAnswer], list[tuple[str, str]]]:
    """The answers, and the states of all probes, in their order."""
    states: list[tuple[str, str]] = []
    with probe_answers(quirks, cache, lambda title, state, _: states.append((title, state)), **more) as answers:
        return list(answers), states


def test_an_answer_is_asked_for_once_and_then_found(tmp_path: Path) -> None:
    quirk, title, report = QUIRKS[0], f"probe of {QUIRKS[0].id}", report_of(QUIRKS[0])
    assert report
    answers, states = asked(tmp_path, quirk)
    assert answers == [reproduce(report.script, Path(sys.executable))]
    assert states == [(title, "queued"), (title, "building"), (title, "built")]
    again, states = asked(tmp_path, quirk)
    assert again == answers
    assert states == [(title, "queued"), (title, "reused")]


def test_a_program_that_fails_cannot_tell_and_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quirk_probes, "report_of", lambda _: SimpleNamespace(script="raise ValueError('no such pass')"))
    for _ in range(2):
        (answer,), states = asked(tmp_path, QUIRKS[0])
        assert answer == ProbeAnswer(Presence.CANNOT_TELL, "the worker failed: ValueError: no such pass")
        assert [state for _, state in states] == ["queued", "building", "failed"]


def test_a_quirk_without_a_report_cannot_be_told(tmp_path: Path) -> None:
    assert asked(tmp_path, NOBODY) == ([ProbeAnswer(Presence.CANNOT_TELL, "no report yet")], [])


def test_a_program_that_hangs_cannot_tell(tmp_path: Path) -> None:
    (answer,), _ = asked(tmp_path, QUIRKS[0], limits=LIMITS.model_copy(update={"build_s": 0.01}))
    assert answer.state is Presence.CANNOT_TELL
    assert "did not end within 0 s" in answer.seen
