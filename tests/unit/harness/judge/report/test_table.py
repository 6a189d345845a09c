"""The table that a run ends with."""

import json
import re

import pytest
from fake_records import a_record, sessions
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT

from device_runner.device import PeakMemory
from harness.base.outcome import Outcome
from harness.cli.show import format_peak_memory
from harness.judge.compare import compare_sides
from harness.judge.confirm import settle
from harness.judge.path_ranking import rank_paths
from harness.judge.report import verdicts
from harness.judge.report.table import COLUMNS, json_array, milliseconds, results_table
from harness.judge.report.verdicts import verdict_table
from harness.judge.sides import sides_of
from harness.judge.stats.pair import RULES
from harness.judge.stats.session import locations_ms
from harness.measure.records.record import Record


def test_the_spread_is_called_one_within_a_session() -> None:
    header, _, row, *_ = results_table([a_record(wall_ms=[9.0, 10.0, 10.0, 11.0, 12.0], library_bytes=5)]).splitlines()
    at = header.index("± % within")
    assert row[at : at + len("± % within")].strip() == "10.0"  # the median absolute deviation from 10 ms is 1 ms


RESTLESS = {"wall_ms": [9.0, 10.0, 10.0, 11.0, 12.0]}
WHY = "unsteady: half of the samples lie more than 5% from their median"


def test_what_is_remarked_on_a_row_stands_beside_its_outcome_and_is_explained_below() -> None:
    half = [a_record(), a_record("tiny-texture-float32-untuned", **RESTLESS)]
    _, _, steady, row, _, line = results_table(half).splitlines()
    assert "unsteady" not in steady
    assert "  ok, unsteady  " in row
    assert line == f"  tiny-texture-float32-untuned: {WHY}"


def test_what_most_rows_are_is_said_once_below_and_on_none_of_them() -> None:
    busy = [a_record(f"tiny-{path}-float32-untuned", **RESTLESS) for path in ("opencl", "texture")]
    broken = a_record("tiny-clml-float32-untuned", outcome=Outcome.COMPILE_ERROR, message="no layout")
    *table, line = results_table(busy).splitlines()
    assert line == f"  both cases are {WHY}"
    assert "unsteady" not in "".join(table)
    *table, line = results_table([*busy, broken]).splitlines()
    assert line == f"  all but tiny-clml-float32-untuned are {WHY}"
    assert "unsteady" not in "".join(table)
    assert ["unsteady" in row for row in results_table([busy[0]]).splitlines()] == [False, False, True, False, True]
    assert json_array(busy).count('"unsteady"') == 2


def test_rows_of_one_case_say_which_is_as_shipped() -> None:
    both = [a_record(), a_record(as_shipped=True)]
    header, _, *rows = results_table(both).splitlines()
    assert header.endswith("  quirks")
    assert [row.rpartition("  ")[2] for row in rows[:2]] == ["with workarounds", "as-shipped"]
    assert "quirks" not in results_table(both[:1])


@given(st.lists(st.floats(1, 10), min_size=5, max_size=12))
@settings(max_examples=30)
def test_a_run_a_comparison_a_ranking_and_a_history_show_one_latency_of_a_session(samples: list[float]) -> None:
    one, other = a_record(wall_ms=samples), a_record(wall_ms=[7.0, 7.1, 7.2, 7.3, 7.4])
    at = COLUMNS.index("wall ms")
    shown = _cells(results_table([one]))[at]
    assert _cells(verdict_table(compare_sides(sides_of([other]), sides_of([one])).cases))[4] in (shown, "ok")
    ((ranking,), (in_history,)) = rank_paths([one]), locations_ms([samples])
    assert {milliseconds(ranking.standings[0].wall_ms or 0), milliseconds(in_history)} == {shown}


def _cells(table: str) -> list[str]:
    return re.split(r"  +", table.splitlines()[2])


def test_the_device_time_of_clml_is_marked_as_another_quantity() -> None:
    clml = a_record("tiny-clml-float32-untuned", wall_ms=[5.0] * 5, device_ms=[4.0, 4.1, 4.0])
    other = a_record(wall_ms=[6.0] * 5, device_ms=[3.0, 3.1, 3.0])
    told = results_table([clml, other])
    marked, plain = (re.split(r"  +", row)[COLUMNS.index("device ms")] for row in told.splitlines()[2:4])
    assert (marked, plain) == ("*4.025", "3.025")
    assert "* of clml the device's time is that of whole recordings" in told
    assert "*" not in results_table([other, a_record("tiny-clml-float32-untuned")])


def test_json_has_the_remarks_of_each_record() -> None:
    restless, steady = json.loads(
        json_array([a_record(wall_ms=[9.0, 10.0, 10.0, 11.0, 12.0]), a_record(wall_ms=[10.0, 10.1, 10.2, 9.9, 10.0])])
    )
    assert [remark["word"] for remark in restless["remarks"]] == ["unsteady"]
    assert steady["remarks"] == []
    assert Record.model_validate({name: value for name, value in steady.items() if name != "remarks"})


def test_the_columns_of_the_table_in_the_readme_exist() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    header = next(line for line in lines if line.startswith("model   "))
    columns = re.split(r"  +", header.strip())
    assert columns == [column for column in COLUMNS if column in columns]


HALVES = [f"tiny-{path}-float16-untuned" for path in ("opencl", "texture", "clml")]


OFF = ("a-b-float32-untuned", "c-d-float32-untuned")


def test_what_a_device_lacks_for_many_cases_is_one_line_below_the_table() -> None:
    halves = [a_record(case, outcome=Outcome.UNSUPPORTED, message="no half (no cl_khr_fp16)") for case in HALVES]
    wrong = [a_record(case, outcome=Outcome.WRONG_RESULT, message="off") for case in OFF]
    told = results_table([*halves, *wrong])
    assert (
        "3 of 5 cases are unsupported on this device: no half (no cl_khr_fp16); see docs/explanation/virtual-device.md"
        in told
    )
    assert told.count("no cl_khr_fp16") == 1
    assert "float16 " not in told, "they have no rows"
    assert told.count("wrong-result (owner: path): off") == 1, "the same reason is one line"
    assert f"{', '.join(OFF)}: wrong-result" in told


def test_a_case_that_alone_is_unsupported_is_named_with_what_to_do() -> None:
    one = a_record(HALVES[0], outcome=Outcome.UNSUPPORTED, message="the model takes 9 GB", hint="try a smaller batch")
    line = f"{HALVES[0]} is unsupported on this device: the model takes 9 GB; try a smaller batch"
    assert results_table([one]).strip() == line, "there is no table without a row"
    assert line in results_table([a_record(), one])


@pytest.mark.parametrize(
    ("process_bytes", "gpu_bytes", "text"),
    [
        (210_000_000, 64_000_000, "process 210 MB, GPU 64 MB"),
        (210_000_000, None, "process 210 MB"),
        (None, 64_000_000, "GPU 64 MB"),
        (None, None, ""),
    ],
)
def test_a_peak_of_memory_that_is_not_known_is_left_out(
    process_bytes: int | None, gpu_bytes: int | None, text: str
) -> None:
    assert format_peak_memory(PeakMemory(process_bytes, gpu_bytes)) == text


def test_of_very_many_comparisons_the_uneventful_ones_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "MOST_ROWS", 2)
    base = [a_record(f"m{number}-opencl-float32-untuned", outcome=Outcome.OK) for number in range(3)]
    head = [*base[:2], a_record("m2-opencl-float32-untuned", outcome=Outcome.WRONG_RESULT), a_record()]
    lost = a_record("m4-opencl-float32-untuned", outcome=Outcome.DEVICE_LOST)
    suspicious, noisy = ("m5-opencl-float32-untuned", 13), ("m6-opencl-float32-untuned", 10)
    for case, ms in (suspicious, noisy):
        base += sessions(10, 1, case=case)
        head += sessions(ms, 1, seed=1, case=case, artifact="b" * 24)
    compared = compare_sides(sides_of(base), sides_of([*head, lost]))
    shown = verdict_table(settle(compared, RULES, lambda _: "nothing is measured").cases).splitlines()
    assert sorted(line.split()[0] for line in shown[2:5]) == [
        "m2-opencl-float32-untuned",
        lost.case,
        suspicious[0],
    ]
    counts = {"1 others: new", "2 others: same", "1 others: inconclusive"}
    assert {f"{count} (--json names them)" for count in counts} <= {*shown}
