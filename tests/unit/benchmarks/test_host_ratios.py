"""Benchmarks of the host are told as ratios, so that no machine is compared with another."""

import json
from pathlib import Path

import pytest

from benchmarks import host_ratios


def result(folder: Path, **fastest_s: float) -> str:
    file = folder / "result.json"
    told = [{"name": name, "stats": {"min": seconds}} for name, seconds in fastest_s.items()]
    file.write_text(json.dumps({"benchmarks": told}))
    return str(file)


def test_a_machine_that_is_twice_as_slow_changes_no_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host_ratios, "SAVED", tmp_path / "saved.json")
    host_ratios.main(result(tmp_path, test_reference=0.01, test_push=0.05, test_find=0.001), "--save")
    assert "new" in capsys.readouterr().out
    host_ratios.main(result(tmp_path, test_reference=0.02, test_push=0.1, test_find=0.004))
    rows = {line.split()[0]: line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]}
    assert rows == {"test_push": "1.00", "test_find": "2.00"}


def test_without_the_reference_nothing_is_claimed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="test_reference was not measured"):
        host_ratios.main(result(tmp_path, test_push=0.05))
