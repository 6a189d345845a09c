"""Baselines: what may become one, how it is written, and how it is read back."""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_records import IDENTITY, a_record, blessing_of, sessions
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.judge import baseline
from harness.judge import checked_file as reviewed
from harness.measure.facts import Reference
from harness.measure.records.record import Record

CASE = "tiny-opencl-float32-untuned"
REFERENCE = Reference("k", [5.0, 5.1, 5.0], [6.5, 6.6, 6.5])


def blessed(records: list[Record]) -> baseline.Baseline:
    blessing = blessing_of(records)
    assert blessing.baseline, blessing.notes
    return blessing.baseline


def test_a_baseline_keeps_every_fit_session_of_the_latest_build() -> None:
    kept = blessed([*sessions(10, artifact="old"), *sessions(10, 3, artifact="new")])
    assert (kept.kind, kept.artifact, len(kept.sessions)) == ("latency", "new", 3)


def test_a_session_that_is_unfit_is_left_out_and_named() -> None:
    blessing = blessing_of([*sessions(10, 2), a_record(wall_ms=[7.0] * 10)])
    assert blessing.baseline
    assert len(blessing.baseline.sessions) == 2
    assert "left out session 3" in blessing.notes[0]


def test_many_series_are_blessed_as_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "SERIES_AT_ONCE", 2)
    wrong = [*sessions(10), a_record(outcome=Outcome.WRONG_RESULT, message="off")]
    noisy, still = [*sessions(10, 2), a_record(wall_ms=[7.0] * 10)], [a_record(wall_ms=[7.0] * 10)]
    series = [sessions(10), noisy, wrong, [a_record(wall_ms=[])], sessions(12, 3, unchecked="no judge"), still]
    assert list(baseline.bless_builds(series)) == [blessing_of(one) for one in series]


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"outcome": Outcome.WRONG_RESULT, "message": "off"}, Outcome.WRONG_RESULT),
        ({"outcome": Outcome.COMPILER_CRASH, "message": "died"}, Outcome.COMPILER_CRASH),
        ({"outcome": Outcome.THROTTLED, "message": "hot", "throttled_ms": [1.0] * 10}, Outcome.THROTTLED),
        ({"outcome": Outcome.INCONCLUSIVE, "message": "not tuned"}, Outcome.INCONCLUSIVE),
        ({"outcome": Outcome.UNSUPPORTED, "message": "no fp16"}, Outcome.UNSUPPORTED),
        ({"wall_ms": [3.0] * 10}, Outcome.THROTTLED),
    ],
)
def test_what_is_not_good_is_refused_with_the_reason(facts: dict[str, Any], outcome: Outcome) -> None:
    blessing = blessing_of([a_record(**facts)])
    assert blessing.baseline is None
    assert blessing.outcome is outcome
    assert blessing.notes[0]


def test_one_wrong_session_among_right_ones_is_enough_to_refuse() -> None:
    blessing = blessing_of([*sessions(10), a_record(outcome=Outcome.WRONG_RESULT, message="off")])
    assert blessing.baseline is None


def test_of_an_emulated_device_only_the_correctness_is_kept() -> None:
    kept = blessed(sessions(10, identity=Identity("virtual", "x", gpu="PoCL", emulated=("gpu",))))
    assert (kept.kind, kept.sessions, kept.emulated) == ("correctness", [], ("gpu",))


def test_why_no_latency_is_kept_is_said() -> None:
    emulated = blessing_of(sessions(10, identity=Identity("virtual", "x", gpu="PoCL", emulated=("gpu",))))
    assert "emulated (gpu): no latency is kept" in emulated.notes
    untimed = blessing_of([a_record(wall_ms=[])])
    assert any(note.endswith("no latency is kept") and "emulated" not in note for note in untimed.notes)


def test_an_emulated_latency_is_kept_if_asked_for_and_says_what_it_is() -> None:
    pocl = Identity("virtual", "x", gpu="PoCL", emulated=("gpu",))
    blessing = blessing_of(sessions(10, identity=pocl), emulated=True)
    assert blessing.baseline
    assert (blessing.baseline.kind, len(blessing.baseline.sessions)) == ("latency", 4)
    assert blessing.baseline.emulated == ("gpu",)
    assert "these times say nothing about a phone" in blessing.notes[-1]
    clml = blessing_of([a_record(identity=pocl, emulated=("gpu", "clml"))], emulated=True)
    assert clml.baseline
    assert clml.baseline.kind == "correctness"


def test_a_file_reads_back_as_it_was_and_is_the_same_for_the_same_records(tmp_path: Path) -> None:
    kept = blessed(sessions(10, 2))
    assert kept.save(tmp_path)
    assert not blessed(sessions(10, 2)).save(tmp_path)
    assert baseline.Baseline.find(tmp_path, IDENTITY.key, CASE) == kept
    assert baseline.load(tmp_path) == baseline.load(tmp_path / IDENTITY.key) == [kept]
    assert baseline.Baseline.find(tmp_path, "another", CASE) is None
    lines = (tmp_path / IDENTITY.key / f"{CASE}.json").read_text().splitlines()
    assert sum('"started_at"' in line for line in lines) == 2, "one session to a line"
    assert "serial" not in "".join(lines)


@pytest.mark.parametrize("text", ["µs", "e-5]", '"e-5,', "e-5}"])
@pytest.mark.parametrize("error", [2.5e-6, 1e-5, 1e-20, 0.0, 1.0])
def test_whatever_a_text_or_a_number_looks_like_a_file_reads_back(tmp_path: Path, text: str, error: float) -> None:
    kept = blessed(sessions(10, unchecked=text, max_abs_err=error, tolerance=1))
    kept.save(tmp_path)
    assert baseline.load(tmp_path) == [kept]


def edited(text: str) -> str:
    facts = json.loads(text)
    facts["sessions"][0]["wall_ms"][0] = 1.0
    return json.dumps(facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited, "was edited by hand since it was written"),
        (lambda text: text.replace('"schema": 1', '"schema": 0'), "at `$.schema`"),
        (lambda text: text[: len(text) // 2], "is no baseline ("),
        (lambda text: "[]", "is no baseline of schema 1"),
        (lambda text: text.replace('"kind": "latency"', '"kind": "guess"'), "at `$.kind`"),
        (lambda text: text.replace('"kind"', '"more": 1, "kind"'), "unknown field `more`"),
        (lambda text: text.replace('"sha256": "', '"sha256": "0'), "was edited by hand since it was written"),
        (lambda text: "[" * 100_000, "is no baseline"),
        (lambda text: text + " " * reviewed.LARGEST_BYTES, "is larger than any baseline"),
        (lambda text: "\xff", "is no baseline"),
    ],
)
def test_a_file_that_is_not_good_is_one_line(tmp_path: Path, change: Any, message: str) -> None:
    blessed(sessions(10)).save(tmp_path)
    file = tmp_path / IDENTITY.key / f"{CASE}.json"
    file.write_text(change(file.read_text()), encoding="latin-1")
    with pytest.raises(UsageError) as caught:
        baseline.Baseline.find(tmp_path, IDENTITY.key, CASE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_moved_to_another_identity_is_refused(tmp_path: Path) -> None:
    blessed(sessions(10)).save(tmp_path)
    (tmp_path / IDENTITY.key).rename(tmp_path / "phone-Other-12345678")
    with pytest.raises(UsageError, match="is the baseline of"):
        baseline.Baseline.find(tmp_path, "phone-Other-12345678", CASE)


@pytest.mark.parametrize("name", ["../escape", "", ".hidden", "a/b", "a\nb"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    hostile = msgspec.structs.replace(blessed(sessions(10)), identity_key=name)
    with pytest.raises(UsageError, match="cannot be part of a file name"):
        hostile.save(tmp_path)


def as_bytes(value: object) -> bytes:
    return json.dumps(value).encode()


@given(content=st.binary(max_size=200) | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(as_bytes))
def test_whatever_a_file_holds_it_is_refused_in_one_line(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / IDENTITY.key / f"{CASE}.json"
        file.parent.mkdir()
        file.write_bytes(content)
        with pytest.raises(UsageError) as caught:
            baseline.Baseline.find(Path(folder), IDENTITY.key, CASE)
        assert "\n" not in str(caught.value)


def test_the_reference_kernel_of_each_session_is_kept_if_it_was_measured(tmp_path: Path) -> None:
    with_reference = sessions(10, 2, parts=[REFERENCE])
    kept = blessed([*sessions(10, 1, seed=1), *with_reference])
    kept.save(tmp_path)
    assert baseline.Baseline.find(tmp_path, IDENTITY.key, CASE) == kept
    assert [probed.kernel for probed in kept.side.probes] == ["k", "k"]
    text = (tmp_path / IDENTITY.key / f"{CASE}.json").read_text()
    assert text.count("reference_ms") == 2, "a baseline of before has the text that it had"


def test_the_clocks_of_each_session_are_kept_if_they_are_known(tmp_path: Path) -> None:
    shares = {"800": 0.9, "600": 0.1}
    kept = blessed(sessions(10, 2, steadiness={"clock_histogram": shares}))
    kept.save(tmp_path)
    (read,) = baseline.load(tmp_path)
    assert (read, read.side.clocks) == (kept, (shares, shares))
    assert "clock_histogram" not in blessed(sessions(10)).text()


def test_sessions_on_a_runtime_that_was_rebuilt_since_are_not_blessed() -> None:
    old, rebuilt = (replace(IDENTITY, runtime=digest) for digest in "12")
    blessing = blessing_of([*sessions(10, 3, identity=old), *sessions(10, 2, identity=rebuilt)])
    assert blessing.baseline
    assert [session.runtime for session in blessing.baseline.sessions] == ["2", "2"]


def test_the_runtime_that_was_brought_to_the_phone_is_kept(tmp_path: Path) -> None:
    """A file of a device that brings its own is what it was before anybody asked."""
    kept = blessed(sessions(10, identity=replace(IDENTITY, runtime="0a1b2c")))
    kept.save(tmp_path)
    (read,) = baseline.load(tmp_path)
    assert (read, read.side.runtime) == (kept, "0a1b2c")
    assert "runtime" not in blessed(sessions(10)).text()


def test_reference_times_that_are_none_are_not_kept() -> None:
    odd = replace(REFERENCE, slowed_ms=[math.nan, 6.0, 6.0])
    kept = blessed(sessions(10, 2, parts=[odd]))
    assert (len(kept.sessions), kept.side.probes) == (2, ())


@pytest.mark.parametrize("facts", [{}, {"wall_ms": [10.0, 10.1, 10.0, 10.2, 9.9, 10.0, 10.1, 10.0, 9.9, 10.1]}])
def test_a_vacuous_case_is_blessed_with_that_said_first(facts: dict[str, Any]) -> None:
    blessing = blessing_of([a_record(vacuous=["output 0 of 1 is all zero"], **facts)])
    assert blessing.baseline
    assert blessing.notes[0] == "vacuous: being right proves nothing: output 0 of 1 is all zero"
