"""The table that a run ends with."""

from pathlib import Path

from fake_records import a_record

from harness.cli.table import COLUMNS, results_table

ROOT = Path(__file__).parents[2]


def test_the_spread_is_called_one_within_a_session() -> None:
    header, _, row, *_ = results_table([a_record(wall_ms=[9.0, 10.0, 10.0, 11.0, 12.0], library_bytes=5)]).splitlines()
    at = header.index("± % within")
    assert row[at : at + len("± % within")].strip() == "10.0"  # the median absolute deviation from 10 ms is 1 ms


def test_what_is_remarked_on_a_row_stands_beside_its_outcome_and_is_explained_below() -> None:
    _, _, row, _, line = results_table([a_record(wall_ms=[9.0, 10.0, 10.0, 11.0, 12.0])]).splitlines()
    assert "  ok, unsteady  " in row
    assert line == "  tiny-opencl-float32-untuned: unsteady: half of its samples lie more than 10% from their median"


def test_the_readme_shows_the_columns_that_there_are() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    header = next(line for line in lines if line.startswith("model   "))
    assert [column.strip() for column in header.split("  ") if column.strip()] == [*COLUMNS]
