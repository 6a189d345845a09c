"""The picture of tokens a second over the tokens in the cache."""

from __future__ import annotations

from pathlib import Path

from fake_records import virtual_record

from harness.base.case import Case, Precision
from harness.base.outcome import Outcome
from harness.base.request import WITH_WORKAROUNDS
from harness.judge.history.results import History, Point, Series
from harness.judge.history.section import HistoryView
from harness.judge.report.sections import PageFiles
from harness.judge.report.site import write_site
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record, RecordFile
from harness.tools.llm import context
from harness.tools.llm.part import LlmPart

COMMITS = ["a" * 40, "b" * 40]


def record(test: str, depth: int, tokens_per_s: float | None, format: str = "float32") -> Record:
    name = f"llama_tiny_{test.replace('@', '_')}"
    part = LlmPart(
        model="llama_tiny",
        format=format,
        pipeline="mlc",
        test=test,
        parameters=1,
        tokens=1,
        depth=depth,
        tokens_per_s=tokens_per_s,
    )
    return virtual_record(case=f"{name}-opencl-float32-untuned", model=name, artifact="a", parts=parts_of(part))


def blocks(tmp_path: Path, *records: Record) -> list[str]:
    file = RecordFile(tmp_path / "records.jsonl")
    for entry in records:
        file.append(entry)
    details = context.read_details(PageFiles([file.path], []), ["a"])
    return [details.block(entry) for entry in records]


def test_the_curve_of_a_library_stands_below_its_smallest_depth(tmp_path: Path) -> None:
    deep, shallow, prompt = blocks(
        tmp_path, record("tg@d512", 512, 50.0), record("tg@d0", 0, 100.0), record("pp32", 0, 3000.0)
    )
    assert (deep, prompt) == ("", "")
    assert "M10 10.0L990 65.0" in shallow  # half as fast at the right end
    assert "50 tokens/s at 512" in shallow
    assert "512 tokens in the cache" in shallow


def test_a_depth_without_a_rate_and_another_library_are_not_on_the_curve(tmp_path: Path) -> None:
    wrong, other = record("tg@d512", 512, None), record("tg@d256", 256, 80.0, "q4f32_1")
    assert blocks(tmp_path, record("tg@d0", 0, 100.0), wrong, other) == ["", "", ""]


def series(depth: int, *wall_ms: float | None) -> Series:
    points = [
        Point(commit, 0, Outcome.OK if ms else Outcome.WRONG_RESULT, "", ms)
        for commit, ms in zip(COMMITS, wall_ms, strict=True)
    ]
    case = Case(f"llama_tiny_tg_d{depth}", "opencl", Precision.FLOAT32)
    return Series("phone", case, WITH_WORKAROUNDS, points)


def test_a_history_has_a_line_for_each_of_the_newest_commits(tmp_path: Path) -> None:
    history = History(
        {"phone": {"machine": "phone"}}, [series(0, 10.0, 5.0), series(512, 20.0, 10.0)], {"phone": COMMITS}
    )
    (page,) = context.section(HistoryView(tmp_path, history, ())).pages
    (curve,) = page.facts["curves"]
    assert curve.lines == {"aaaaaaaa": {0: 100.0, 512: 50.0}, "bbbbbbbb": {0: 200.0, 512: 100.0}}
    write_site(history, tmp_path, "graphs.html", tmp_path)
    text = (tmp_path / "context.html").read_text()
    assert "<h2>llama_tiny, opencl, workarounds, phone</h2>" in text
    assert "tokens/s, aaaaaaaa" in text
    assert text.count("tokens/s at ") == 2  # of the newest commit
    assert 'href="context.html"' in (tmp_path / "index.html").read_text()


def test_a_commit_with_one_depth_has_no_line_and_other_histories_no_page(tmp_path: Path) -> None:
    history = History({"phone": {}}, [series(0, 10.0, 5.0), series(512, 20.0, None)], {"phone": COMMITS})
    (page,) = context.section(HistoryView(tmp_path, history, ())).pages
    assert list(page.facts["curves"][0].lines) == ["aaaaaaaa"]
    assert not context.section(HistoryView(tmp_path, History({}, [], {}), ())).pages
