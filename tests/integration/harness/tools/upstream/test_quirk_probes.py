"""Probes of known defects: each in a process of its own, asked once for a release, told as soon as it is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from harness.base.plan import Job
from harness.compile.quirks import QUIRKS, Presence, ProbeAnswer, Quirk
from harness.tools.upstream.probes import PROBES
from harness.tools.upstream.quirk_probes import LIMITS, probe_answers

pytestmark = pytest.mark.rest

NOBODY = dataclasses.replace(QUIRKS[0], id="no-such-quirk")


class Watch:
    """The states of all probes, in their order."""

    def __init__(self) -> None:
        self.states: list[tuple[str, str]] = []

    def __call__(self, job: Job, state: str, _seconds: float) -> None:
        self.states.append((job.title, state))


def asked(cache: Path, *quirks: Quirk, **more: Any) -> tuple[list[ProbeAnswer], list[tuple[str, str]]]:
    watch = Watch()
    with probe_answers(quirks, cache, watch, **more) as answers:
        return list(answers), watch.states


def test_an_answer_is_asked_for_once_and_then_found(tmp_path: Path) -> None:
    quirk, title = QUIRKS[0], f"probe of {QUIRKS[0].id}"
    answers, states = asked(tmp_path, quirk)
    assert answers == [PROBES[quirk.id]()]
    assert states == [(title, "queued"), (title, "building"), (title, "built")]
    again, states = asked(tmp_path, quirk)
    assert again == answers
    assert states == [(title, "queued"), (title, "reused")]


def test_a_probe_that_fails_cannot_tell_and_is_asked_again(tmp_path: Path) -> None:
    for _ in range(2):
        (answer,), states = asked(tmp_path, NOBODY)
        assert answer.state is Presence.CANNOT_TELL
        assert [state for _, state in states] == ["queued", "building", "failed"]


def test_a_probe_that_hangs_cannot_tell(tmp_path: Path) -> None:
    (answer,), _ = asked(tmp_path, QUIRKS[0], limits=LIMITS.model_copy(update={"build_s": 0.01}))
    assert answer.state is Presence.CANNOT_TELL
    assert "did not end within 0 s" in answer.seen
