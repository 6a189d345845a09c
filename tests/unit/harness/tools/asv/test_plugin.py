"""What asv says beside its own output."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from asv.results import Results
from fake_records import a_record
from history_results import Folder, both

from harness.base.outcome import Outcome
from harness.measure.records.record import RecordFile
from harness.tools.asv import plugin
from harness.tools.asv.plugin import REMARKS, _followed_by

CASE = "tiny-texture-float32-untuned"


def test_asv_is_told_why_a_case_has_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    monkeypatch.setattr(Results, "load", Results.__dict__["load"])  # undone when the test ends
    plugin.setup()
    failed, good = folder.commit(both(CASE, 10.0, Outcome.WRONG_RESULT)), folder.commit(both(CASE, 10.0, 11.0))
    assert Results.load(str(failed)).stderr["latency.Wall.time_inference"] == (
        f"{CASE} as-shipped: wrong-result: what went wrong with tiny"
    )
    assert not Results.load(str(good)).stderr


def test_asv_says_what_its_own_commands_leave_open(capsys: pytest.CaptureFixture[str]) -> None:
    def compare(_cls: type, ratio: float, *, factor: float = 1.0) -> float:
        return ratio * factor

    followed = _followed_by(lambda ratio, factor: f"{ratio} and {factor} are noise", compare)
    assert followed(object, 0.5, factor=2.0) == 1.0
    assert capsys.readouterr().err == "0.5 and 2.0 are noise\n"
    assert "history publish" in REMARKS["Publish"](object)


@pytest.mark.parametrize(
    ("artifacts", "remark"),
    [
        (
            ("same", "same"),
            "1 case has the same library at both commits, and latency ratios of 0.50: this host's noise",
        ),
        (("old", "new"), "each side is one session: on a busy or emulated host such ratios are noise"),
    ],
)
def test_asv_compare_says_how_far_ratios_of_unchanged_libraries_lie_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, artifacts: tuple[str, str], remark: str
) -> None:
    commits = {"base": "a" * 40, "head": "b" * 40}
    repo = SimpleNamespace(get_hash_from_name=commits.__getitem__)
    monkeypatch.setattr("asv.repo.get_repo", lambda _: repo)
    (tmp_path / "machine").mkdir()
    for commit, ms, artifact in zip(commits.values(), (20.0, 10.0), artifacts, strict=True):
        records = [a_record(wall_ms=[99.0] * 10, artifact="earlier"), a_record(wall_ms=[ms] * 10, artifact=artifact)]
        RecordFile(tmp_path / f"machine/{commit[:8]}-py3.11.jsonl").append(*records)
    conf = SimpleNamespace(results_dir=str(tmp_path))
    assert REMARKS["Compare"](conf, "base", "head", machine=None).startswith(remark)
    assert "`adreno-bench compare BASE HEAD --latency`" in REMARKS["Compare"](conf=conf, hash_1="base", hash_2="head")
