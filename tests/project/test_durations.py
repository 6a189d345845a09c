"""How long tests take is stored, orders a run, and is a table in the docs."""

from __future__ import annotations

from pathlib import Path

import durations
from places import ROOT

from benchmarks import longest_tests

HERE = "tests/project/test_durations.py"


def test_a_run_replaces_the_seconds_of_its_tests_and_leaves_others_and_forgets_lost_files(tmp_path: Path) -> None:
    file = tmp_path / "durations.json"
    durations.store_durations({f"{HERE}::a": 2.04, f"{HERE}::b": 3.0, f"{HERE}::c": 0.1}, file)
    assert durations.load_durations(file) == {f"{HERE}::a": 2.0, f"{HERE}::b": 3.0}
    durations.store_durations({f"{HERE}::a": 0.2, f"{HERE}::d": 1.0, "tests/gone.py::e": 9.0}, file)
    assert durations.load_durations(file) == {f"{HERE}::b": 3.0, f"{HERE}::d": 1.0, "tests/gone.py::e": 9.0}
    durations.store_durations({}, file)
    assert "tests/gone.py::e" not in durations.load_durations(file)


def test_the_seconds_of_a_file_are_those_of_the_tests_that_run() -> None:
    known = {"a.py::x": 2.0, "a.py::y": 3.0, "b.py::z": 4.0}
    assert durations.seconds_by_file(["a.py::x", "b.py::z", "b.py::new"], known) == {"a.py": 2.0, "b.py": 4.0}


def test_the_page_of_the_longest_tests_is_what_its_command_prints() -> None:
    page = ROOT / "docs/data/longest-tests.md"
    assert page.read_text("utf-8") == longest_tests.page(), "python -m benchmarks.longest_tests"
