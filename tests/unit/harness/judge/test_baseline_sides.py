"""Baselines as sides, read from files below a folder."""

from pathlib import Path
from typing import Any

import pytest
from fake_records import IDENTITY, blessing_of, sessions

from device_runner.failures import Failure
from harness.base.failures import UsageError
from harness.judge.baseline import Baseline, files_in, load, sides_in
from harness.measure.facts import Reference

CASE = "tiny-opencl-float32-untuned"


def blessed(folder: Path, **facts: Any) -> Path:
    baseline = blessing_of(sessions(10, 2, **facts)).baseline
    assert baseline
    baseline.save(folder)
    return Baseline.file(folder, IDENTITY.key, baseline.case)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"parts": [Reference("k", [5.0, 5.1, 5.0], [6.5, 6.6, 6.5])]},
        {"steadiness": {"clock_histogram": {"800": 1.0}}},
        {"unchecked": "no e-5] judge", "max_abs_err": 2.5e-6, "tolerance": 1},
        {"unchecked": "µs", "max_abs_err": 1e-20, "tolerance": 1e16},
        {"quirks": ("q",), "network": "n", "truth": "t", "facts": {"kernels": 3}},
        {"settings": {"work_group": 64}},
    ],
)
def test_a_file_makes_the_side_of_what_was_blessed(tmp_path: Path, facts: dict[str, Any]) -> None:
    file = blessed(tmp_path, **facts)
    side = Baseline.read(file).side
    assert sides_in(tmp_path, lambda _: True) == {side.key: side}
    assert [baseline.side for baseline in load(tmp_path)] == [side]
    assert sides_in(tmp_path, lambda case: case != CASE) == {}


def test_a_file_that_was_moved_or_is_gone_is_refused(tmp_path: Path) -> None:
    file = blessed(tmp_path)
    moved = file.rename(file.with_name("other-opencl-float32-untuned.json"))
    with pytest.raises(UsageError, match="is the baseline of"):
        Baseline.read(str(moved))
    with pytest.raises(Failure, match="cannot read"):
        Baseline.read(str(file))


def test_files_come_by_folder_then_by_name(tmp_path: Path) -> None:
    for name in ("b/1.json", "b-c/2.json", "b.json", "a/.3.json", "b/not.txt", "b/c/4.json"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = [*tmp_path.glob("*.json"), *tmp_path.glob("*/*.json")]
    assert files_in(tmp_path) == [str(file) for file in sorted(found, key=lambda file: file.parts)]
    assert files_in(tmp_path / "none") == []


def test_a_side_takes_eight_bytes_for_each_sample(tmp_path: Path) -> None:
    side = Baseline.read(blessed(tmp_path, parts=[Reference("k", [5.0, 5.1, 5.0], [6.5, 6.6, 6.5])])).side
    for samples in (*side.sessions, side.probes[0].reference_ms, side.probes[0].slowed_ms):
        assert memoryview(samples).nbytes == 8 * len(samples)  # type: ignore[arg-type]
