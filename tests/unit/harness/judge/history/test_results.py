"""Reading a results folder, and what moved in it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from history_results import IDENTITY, Folder, a_record, both, names
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from places import ROOT

from harness.base.case import Case
from harness.base.outcome import CaseState, Outcome
from harness.judge.history.events import change, events, vanished_series
from harness.judge.history.results import CODES, History, Point, Series, load, outcome_of
from harness.judge.history.runs import reopen_commits
from harness.judge.verdict import Verdict
from harness.measure.records.record import RecordFile
from harness.measure.records.view import RecordView, load_views

CASE = "tiny-texture-float32-untuned"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_point_joins_what_asv_keeps_with_what_the_record_says(folder: Folder) -> None:
    folder.commit(both(CASE, 10.0, Outcome.WRONG_RESULT))
    shipped, best = load(folder.path).series
    assert (best.newest.wall_ms, best.newest.tvm) == (10.0, "0.27.0")
    assert best.newest.low_ms == pytest.approx(9.9)
    assert shipped.newest.outcome is Outcome.WRONG_RESULT
    assert shipped.newest.message == "what went wrong with tiny"
    assert shipped.newest.wall_ms is None


def test_without_records_asv_alone_tells_the_outcome(folder: Folder) -> None:
    folder.commit(both(CASE, 10.0, Outcome.COMPILE_ERROR), records=False)
    shipped, best = load(folder.path).series
    assert (best.newest.outcome, best.newest.wall_ms) == (Outcome.OK, 10.0)
    assert shipped.newest.outcome is Outcome.COMPILE_ERROR


def test_a_commit_that_could_not_be_installed_is_broken(folder: Folder) -> None:
    file = folder.commit(both(CASE, 10.0, 10.0), records=False)
    data = json.loads(file.read_text())
    for row in data["results"].values():
        row[0] = None
    file.write_text(json.dumps(data))
    point = load(folder.path).series[0].newest
    assert point.state is CaseState.BROKEN
    assert "could not be installed" in point.message


def test_parameters_that_were_not_asked_for_are_no_points(folder: Folder) -> None:
    file = folder.commit(both(CASE, 10.0, float("nan")), records=False)
    data = json.loads(file.read_text())
    data["results"]["outcome.Outcome.track_outcome"][0] = [0, float("nan")]
    file.write_text(json.dumps(data))
    assert [one.quirks for one in load(folder.path).series] == ["workarounds"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "{}", '{"commit_hash": "x", "date": 1, "results": 3}', "\xff"])
def test_a_torn_or_foreign_file_is_named_and_the_rest_is_read(folder: Folder, text: str) -> None:
    folder.commit(both(CASE, 10.0, 10.0))
    foreign = folder.path / IDENTITY.key / "beefbeef-env.json"
    foreign.write_text(text, encoding="latin-1")
    history = load(folder.path)
    assert len(history.series) == 2
    assert [str(foreign) in problem for problem in history.skipped] == [True]


def test_a_torn_machine_file_and_a_torn_record_are_named(folder: Folder) -> None:
    records = folder.commit(both(CASE, 10.0, 10.0)).with_suffix(".jsonl")
    records.write_text(records.read_text() + '{"torn')
    (folder.path / IDENTITY.key / "machine.json").write_text("{")
    skipped = load(folder.path).skipped
    assert len(skipped) == 2
    assert "machine.json" in skipped[0]
    assert ".jsonl:3" in skipped[1]


KEYS = st.sampled_from(["results", "commit_hash", "date", "result_columns", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(JSON)
def test_no_json_file_breaks_reading(tmp_path_factory: pytest.TempPathFactory, data: object) -> None:
    folder = Folder(tmp_path_factory.mktemp("results"))
    folder.write("beefbeef-env.json", data)
    load(folder.path)


def test_right_then_wrong_is_an_event_with_both_errors_and_the_commits(folder: Folder) -> None:
    folder.commit(both(CASE, 10.0, 10.0), tvm="0.25.0")
    folder.commit(both(CASE, 10.0, Outcome.WRONG_RESULT), tvm="0.26.0")
    folder.commit(both(CASE, 10.0, Outcome.WRONG_RESULT), tvm="0.27.0")
    (event,) = events(load(folder.path))
    assert (event.verdict, event.series.quirks) == (Verdict.WRONG, "as-shipped")
    assert (event.before.tvm, event.after.tvm) == ("0.25.0", "0.26.0")
    assert (event.before.max_abs_err, event.after.max_abs_err) == (1e-7, 0.5)


def test_broken_fixed_slower_and_faster_are_told_apart_and_the_worst_comes_first(folder: Folder) -> None:
    for n in range(12):
        folder.commit(both(CASE, 10.0 + 0.01 * (n % 3), 10.0 + 0.01 * (n % 2)))
    for n in range(12):
        folder.commit(both(CASE, 12.0 + 0.01 * (n % 3), Outcome.COMPILE_ERROR if n < 2 else 8.0 + 0.01 * (n % 2)))
    found = events(load(folder.path))
    assert names(found) == ["faster as-shipped", "fixed as-shipped", "broken as-shipped", "slower workarounds"]
    (slower,) = (event for event in found if event.verdict is Verdict.SLOWER)
    assert slower.step
    assert 1 + slower.step.relative == pytest.approx(1.2, abs=0.01)
    assert (slower.before.commit, slower.after.commit) == (folder.commits[11], folder.commits[12])


def test_a_short_history_knows_noise_from_what_one_library_differs_by_from_itself(folder: Folder) -> None:
    for n, values in enumerate([(10.0, 10.05), (10.04, 10.0), (10.0, 10.06), (10.02, 10.0), (14.0, 14.05)]):
        folder.commit(both(CASE, *values), artifact=f"build {n}")
    found = events(load(folder.path))
    assert sorted(names(found)) == ["slower as-shipped", "slower workarounds"]
    assert {event.after.commit for event in found} == {folder.commits[4]}


def test_a_short_history_whose_noise_nobody_knows_tells_no_step(folder: Folder) -> None:
    for value in (10.0, 10.1, 14.0):
        folder.commit(both(CASE, value, value))
    assert events(load(folder.path)) == []


def test_a_step_lies_where_the_artifact_changed_and_is_none_where_it_did_not(folder: Folder) -> None:
    for n in range(30):
        level_ms = 10.0 if n < 10 else 12.0 if n < 20 else 14.0
        folder.commit({(CASE, "workarounds"): level_ms + 0.02 * (n % 3)}, artifact="old" if n < 11 else "new")
    (event,) = events(load(folder.path))
    assert event.after.commit == folder.commits[11]


def test_a_lost_device_is_no_event_and_hides_none(folder: Folder) -> None:
    folder.commit(both(CASE, 10.0, 10.0))
    folder.commit(both(CASE, Outcome.DEVICE_LOST, Outcome.DEVICE_LOST))
    folder.commit(both(CASE, 10.0, Outcome.WRONG_RESULT))
    (event,) = events(load(folder.path))
    assert (event.before.commit, event.after.commit) == (folder.commits[0], folder.commits[2])


def test_coverage_that_vanished(folder: Folder) -> None:
    folder.commit({**both(CASE, 10.0, 10.0), **both("gone-opencl-float32-untuned", 5.0, 5.0)})
    folder.commit(both(CASE, 10.0, Outcome.DEVICE_LOST))
    found = {(one.case.model, one.quirks) for one in vanished_series(load(folder.path))}
    assert found == {("gone", "workarounds"), ("gone", "as-shipped"), ("tiny", "as-shipped")}


def test_change_is_since_the_last_other_release(folder: Folder) -> None:
    for value, tvm in ((8.0, "0.25.0"), (10.0, "0.26.0"), (11.0, "0.27.0"), (12.0, "0.27.0")):
        folder.commit(both(CASE, value, value), tvm=tvm)
    assert change(load(folder.path).series[0]) == pytest.approx(0.2)


def test_commits_are_in_the_order_that_is_given(folder: Folder) -> None:
    first, second = (folder.commit(both(CASE, value, value)).stem[:8] * 5 for value in (10.0, 20.0))
    assert load(folder.path, {first: 2, second: 1}).series[0].newest.wall_ms == 10.0


def test_outcomes_and_their_numbers_are_one_to_one() -> None:
    assert set(CODES) == set(Outcome)
    assert [outcome_of(CODES[outcome]) for outcome in Outcome] == list(Outcome)
    assert outcome_of(0.5) is outcome_of(99) is None


def test_what_met_no_device_is_taken_up_again_and_nothing_else(folder: Folder) -> None:
    settled = folder.commit(both(CASE, 10.0, Outcome.WRONG_RESULT))
    lost = folder.commit(both(CASE, 10.0, Outcome.DEVICE_LOST))
    machine = folder.path / IDENTITY.key
    assert reopen_commits(machine) == [folder.commits[1][:8]]
    assert settled.exists()
    assert not lost.exists()
    RecordFile(lost.with_suffix(".jsonl")).append(a_record(CASE, "as-shipped", 10.0))
    assert reopen_commits(machine) == []


def test_a_case_that_is_new_in_the_suite_opens_the_commits_that_lack_it(folder: Folder) -> None:
    folder.commit(both(CASE, 10.0, 11.0))
    machine = folder.path / folder.machine
    assert reopen_commits(machine, [CASE]) == []
    assert reopen_commits(machine, [CASE, "resnet18-opencl-float32-untuned"]) == [folder.commits[0][:8]]
    assert not list(machine.glob("00000000-*.json"))
    assert list(machine.glob("00000000-*.jsonl"))


def test_a_vacuous_point_is_neither_right_nor_a_fix(folder: Folder) -> None:
    vacuous = replace(a_point(Outcome.OK), vacuous=True)
    assert vacuous.state is CaseState.VACUOUS
    case = Case.parse(CASE)

    def verdicts(*points: Point) -> list[Verdict]:
        history = History({}, [Series("m", case, "workarounds", list(points))], {"m": [p.commit for p in points]})
        return [event.verdict for event in events(history)]

    wrong, right = a_point(Outcome.WRONG_RESULT), a_point(Outcome.OK)
    assert verdicts(wrong, replace(vacuous, commit="b")) == []
    assert verdicts(vacuous, replace(wrong, commit="b")) == [Verdict.WRONG]
    assert verdicts(right, replace(vacuous, commit="b")) == []


def test_what_a_vacuous_record_says_stands_in_its_point(folder: Folder) -> None:
    file = folder.commit(both(CASE, 10.0, 10.0)).with_suffix(".jsonl")
    kept = [
        record.model_copy(update={"vacuous": ["output 0 of 1 is all zero"]})
        for record in RecordFile(file).load().records
    ]
    file.write_text("\n".join(record.line() for record in kept))
    point = load(folder.path).series[0].newest
    assert (point.vacuous, point.message) == (True, "output 0 of 1 is all zero")


def test_what_no_history_shows_is_not_looked_at_in_a_record(folder: Folder) -> None:
    file = folder.commit(both(CASE, 10.0, 10.0)).with_suffix(".jsonl")
    lines = file.read_text().replace('"steadiness":{}', '"steadiness":7,"new":1').splitlines()
    file.write_text("\n".join([*lines, '{"schema":2}', "torn"]))
    history = load(folder.path)
    assert history.series[0].newest.wall_ms == pytest.approx(10.0)
    assert [problem.split(": ")[0] for problem in history.skipped] == [f"{file}:3", f"{file}:4"]


def a_point(outcome: Outcome) -> Point:
    return Point("a", 0, outcome)


def test_what_is_kept_of_a_line_is_what_the_whole_record_has(tmp_path: Path) -> None:
    example = ROOT / "docs/example/results"
    records = [record for file in example.glob("*/*.jsonl") for record in RecordFile(file).load().records]
    assert records
    odd = records[0].model_copy(update={"max_abs_err": math.inf, "outcome": Outcome.WRONG_RESULT})
    lines = [record.line() for record in (*records, odd)]
    (tmp_path / "kept.jsonl").write_text("\n".join([*lines, '{"case": 1}']) + "\n")
    kept = load_views(tmp_path / "kept.jsonl")
    fields = [name for name in RecordView.__struct_fields__ if name != "schema"]
    for one, record in zip(kept.records, (*records, odd), strict=True):
        assert {name: getattr(one, name) for name in fields} == {name: getattr(record, name) for name in fields}
    (skipped,) = kept.skipped
    assert "not a record of schema 2" in skipped


def test_a_commit_that_the_repository_lost_is_named_and_placed_by_its_date(folder: Folder) -> None:
    first, lost, last = (folder.commit(both(CASE, value, value)).stem[:8] * 5 for value in (10.0, 20.0, 30.0))
    history = load(folder.path, {first: 5, last: 7})
    assert [point.wall_ms for point in history.series[0].points] == [10.0, 20.0, 30.0]
    assert [commit for commit in history.displaced if lost[:12] in commit and "not in the repository" in commit]
    assert history.skipped == []
    assert load(folder.path).skipped == []
