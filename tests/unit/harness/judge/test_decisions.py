"""What was decided in turns is kept, and a history's step says so."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from history_results import IDENTITY, Folder, both
from msgspec import structs

from harness.base.outcome import Outcome
from harness.judge.compare import Comparison
from harness.judge.confirm import decisions_of
from harness.judge.decisions import MeasuredBuild, PairedDecision, keep
from harness.judge.decisions import load as load_confirmed
from harness.judge.history.events import Event, events, is_news
from harness.judge.history.results import load
from harness.judge.report.site import write_site
from harness.judge.report.words import confirmation, step_text
from harness.judge.sides import SeriesKey, Side
from harness.judge.stats.pair import Change
from harness.judge.verdict import Verdict

CASE = "tiny-opencl-float32-untuned"
KEY = SeriesKey(IDENTITY.key, CASE)
DAY = "2026-11-22"
SLOWER = Change(Verdict.SLOWER, 0.31, 0.28, 0.34)


def settled(change: Change | None, in_turns: int) -> Comparison:
    base, head = (Side(KEY, Outcome.OK, artifact=letter * 24) for letter in "ab")
    return Comparison(KEY, base, head, change.verdict if change else Verdict.BROKEN, change=change, in_turns=in_turns)


def test_only_what_was_decided_in_turns_is_kept(tmp_path: Path) -> None:
    open_still, lost = settled(structs.replace(SLOWER, verdict=Verdict.INCONCLUSIVE), 32), settled(None, 5)
    found = decisions_of([settled(SLOWER, 12), settled(SLOWER, 0), open_still, lost], "compare", "0.26.0", "0.27.0")
    file = tmp_path / "new" / "confirmed.jsonl"
    keep(found, file)
    ((one,), skipped) = load_confirmed(file)
    assert (one.verdict, one.sessions, one.relative, one.by) == (Verdict.SLOWER, 12, 0.31, "compare")
    assert (one.base, one.head) == (MeasuredBuild("a" * 24, "0.26.0"), MeasuredBuild("b" * 24, "0.27.0"))
    assert not skipped


def test_a_file_that_cannot_be_written_is_said_and_a_torn_line_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    keep(decisions_of([settled(SLOWER, 12)], "gate"), tmp_path / "file" / "confirmed.jsonl")
    assert "not kept" in capsys.readouterr().err
    keep(decisions_of([settled(structs.replace(SLOWER, high=math.inf), 12)], "gate"), tmp_path / "kept")
    (tmp_path / "kept").write_bytes((tmp_path / "kept").read_bytes() + b'{"identity": 3}\n{"case":\xff')
    found, skipped = load_confirmed(tmp_path / "kept")
    assert [one.high for one in found] == [None]
    assert [text.partition(": ")[0] for text in skipped] == [f"{tmp_path / 'kept'}, line {n}" for n in (2, 3)]
    assert load_confirmed(tmp_path / "none") == ([], [])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A step from 10 to 13 ms at the ninth commit."""
    folder = Folder(tmp_path / "results")
    for level_ms, artifact in ((10.0, "a"), (13.0, "b")):
        for n in range(8):
            folder.commit(both(CASE, level_ms + 0.02 * (n % 3), level_ms + 0.02 * (n % 2)), artifact=artifact * 24)
    return folder


def step(folder: Folder, *decided: PairedDecision) -> Event:
    """The step of the case with workarounds, after these decisions."""
    history = replace(load(folder.path), confirmed=decided)
    return next(event for event in events(history) if event.series.quirks == "workarounds")


def confirmed(base: MeasuredBuild, head: MeasuredBuild, verdict: Verdict = Verdict.SLOWER) -> PairedDecision:
    return PairedDecision(IDENTITY.key, CASE, False, verdict, base, head, 0.31, 0.28, 0.34, 12, by="compare", day=DAY)


def test_a_step_is_suspected_until_it_was_measured_in_turns(folder: Folder) -> None:
    event = step(folder)
    assert "suspected" in step_text(event)
    assert confirmation(event).startswith("adreno-bench compare 00000007 00000008 --case")
    by_artifact, by_commit = (
        (MeasuredBuild("a" * 24), MeasuredBuild("b" * 24)),
        (MeasuredBuild("", "00000007"), MeasuredBuild("", "00000008" * 5)),
    )
    for ends in (by_artifact, by_commit):
        event = step(folder, confirmed(*ends))
        assert "confirmed in turns: +31.0% (+28.0% to +34.0%), 12 sessions by compare, 2026-11-22" in step_text(event)
        assert confirmation(event) == ""


def test_a_step_that_was_not_borne_out_is_no_news_and_the_last_decision_counts(folder: Folder, tmp_path: Path) -> None:
    ends = MeasuredBuild("a" * 24), MeasuredBuild("b" * 24)
    refuted = confirmed(*ends, Verdict.SAME)
    event = step(folder, confirmed(*ends), refuted)
    assert "not borne out in turns, same" in step_text(event)
    assert not is_news(event, load(folder.path))
    assert is_news(step(folder, refuted, confirmed(*ends)), load(folder.path))
    (tmp_path / "site").mkdir()
    write_site(replace(load(folder.path), confirmed=[refuted]), tmp_path / "site", "graphs.html")
    moved = (tmp_path / "site" / "moved.html").read_text(encoding="utf-8")
    assert moved.count("not borne out in turns") == 1
    assert moved.count("confirm it:") == 1, "the other build of the case was not measured"


def test_a_step_between_other_settings_says_so(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    for level_ms, artifact, chunk in ((10.0, "a", 512), (13.0, "b", 256)):
        for n in range(8):
            latencies = both(CASE, level_ms + 0.02 * (n % 3), level_ms + 0.02 * (n % 2))
            records = folder.commit(latencies, artifact=artifact * 24).with_suffix(".jsonl")
            records.write_text(records.read_text().replace('"settings":{}', f'"settings":{{"chunk":{chunk}}}'))
    assert step_text(step(folder)).endswith("suspected, but chunk = 512 before and chunk = 256 after")


def test_decisions_of_other_builds_cases_and_devices_say_nothing_of_a_step(folder: Folder) -> None:
    from msgspec.structs import replace as changed

    fits = confirmed(MeasuredBuild("a" * 24), MeasuredBuild("b" * 24))
    for other in (
        changed(fits, base=MeasuredBuild("c" * 24)),
        changed(fits, head=MeasuredBuild("", "0000")),
        changed(fits, identity="another"),
        changed(fits, case="tiny-texture-float32-untuned"),
        changed(fits, as_shipped=True),
    ):
        assert "suspected" in step_text(step(folder, other))
