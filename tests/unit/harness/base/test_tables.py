"""Tables and text on a terminal: no wider than it, and no word cut; whole where there is none."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base import tables
from harness.judge.report import verdicts
from harness.tools.shared.markdown import unpadded_markdown

HEADERS = ("case", "outcome", "wall ms", "why it is so")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 40)


def at(monkeypatch: pytest.MonkeyPatch, width: int | None) -> None:
    monkeypatch.setattr(tables, "terminal_width", lambda *_: width)


def words(text: str) -> list[str]:
    return [word for word in text.split() if word.strip("-")]


@pytest.mark.usefixtures("narrow")
def test_headers_are_broken_between_words_before_anything_is_left_out() -> None:
    text = tables.table([("a", "b", "c")], ("the case that ran", "its outcome at last", "latency, ms"))
    assert text.splitlines() == [
        "the   its      latency,",
        "case  outcome  ms",
        "that  at last",
        "ran",
        "----  -------  --------",
        "a     b        c",
    ]


@pytest.mark.usefixtures("narrow")
def test_the_least_important_column_goes_first_and_the_reader_is_told() -> None:
    rows = [("tiny-opencl-float32-untuned", "ok", "1.5", "-")]
    text = tables.table(rows, ("operator", *HEADERS[1:]), spare=("why it is so", "wall ms"))
    assert "no room for: why it is so, wall ms (a wider terminal," in " ".join(text.split())
    assert "tiny-opencl-float32-untuned  ok" in text


@pytest.mark.usefixtures("narrow")
def test_a_column_that_went_before_a_wide_one_comes_back_where_there_is_room() -> None:
    rows = [("tiny-opencl-float32", "3.0", "a source that is wide", "ok")]
    text = tables.table(rows, ("operator", "n", "source", "is"), spare=("n", "source"))
    assert text.splitlines()[0].split() == ["operator", "n", "is"]
    assert "no room for: source" in text


@pytest.mark.usefixtures("narrow")
def test_a_long_name_is_folded_before_a_number_is_left_out() -> None:
    rows = [("mobilenet_v3_small-texture-float16-untuned", "slower", "19.75", "8.9"), ("tiny-opencl", "ok", "1", "2")]
    text = tables.table(rows, ("case", "outcome", "base ms", "n"), spare=("n", "base ms"))
    assert text.splitlines() == [
        "case                 outcome  base   n",
        "                              ms",
        "-------------------  -------  -----  ---",
        "mobilenet_v3_small-  slower   19.75  8.9",
        "texture-float16-",
        "untuned",
        "tiny-opencl          ok       1      2",
    ]


def test_at_80_columns_the_times_of_a_gate_stay_however_long_the_case_is(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 80)
    name = "rapidocr_ch_ppocr_mobile_v2_cls_infer-texture-float16_acc32-tuned"
    row = (name, "inconclusive", "99.5%", "1234", "1250", "+1.3%", "+0.1% to +11.1%", "15.1%")
    text = tables.table([row], verdicts.HEADERS, spare=verdicts.SPARE)
    assert {"1234", "1250", "+1.3%"} <= set(text.split())
    width = text.splitlines()[2].index(" ")
    assert "".join(line[:width].strip() for line in text.splitlines()[3:]).startswith(name)


@pytest.mark.usefixtures("narrow")
def test_what_is_the_same_in_every_row_is_said_once() -> None:
    rows = [("tiny-opencl-float32-untuned", "float32", "1"), ("tiny-texture-float32-untuned", "float32", "2")]
    text = tables.table(rows, ("case", "precision", "wall ms"), alike=("precision",))
    assert text.splitlines()[-1] == "in every row: precision float32"
    assert "tiny-texture-float32-untuned  2" in text


def test_a_column_without_values_goes_first_and_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 32)
    rows = [("tiny-opencl", "ok", "-"), ("tiny-texture", "wrong-result", "-")]
    text = tables.table(rows, ("case", "base ms", "interval"), spare=("base ms", "interval"))
    assert text.splitlines()[0].split() == ["case", "base", "ms"]
    assert "no room for: interval" in text


@pytest.mark.usefixtures("narrow")
def test_what_has_no_room_beside_each_other_is_stacked() -> None:
    rows = [("tiny-opencl-float32-untuned", "kernel-build-error", "-", "the compiler refused it")]
    assert tables.table(rows, HEADERS).splitlines() == [
        "tiny-opencl-float32-untuned",
        "  outcome       kernel-build-error",
        "  why it is so  the compiler refused it",
    ]


def test_a_pipe_gets_every_column_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [("tiny-opencl-float32-untuned", "ok", "1.5", "a long story that goes on for more than forty columns")]
    header, _, row = tables.table(rows, HEADERS, spare=HEADERS, prose=HEADERS).splitlines()
    assert words(header) == words(" ".join(HEADERS))
    assert row.endswith(rows[0][-1])
    assert tables.folded(row) == row


@pytest.mark.usefixtures("narrow")
def test_a_line_in_columns_goes_on_below_its_last_one() -> None:
    line = "ok      compiler     apache-tvm 0.27 with a working pair of tvm-ffi"
    first, *rest = tables.folded(line).splitlines()
    assert first == "ok      compiler     apache-tvm 0.27"
    assert {len(part) - len(part.lstrip()) for part in rest} == {first.index("apache")}


CELLS = st.text(st.sampled_from("abc-./ "), max_size=60)


@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), min_size=1, max_size=5), width=st.integers(30, 100))
def test_no_word_is_lost_or_cut_however_narrow_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        at(patch, width)
        text = tables.folded(tables.table(rows, HEADERS, prose=("why it is so", "case")))
    shown = words(text)
    assert all(word in shown for row in rows for cell in row for word in words(cell))
    longest = max((len(word) for word in text.split()), default=0)
    assert all(len(line) <= max(width, longest) for line in text.splitlines())


def test_markdown_is_never_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 20)
    assert re.match(r"\| case +\| outcome +\| wall ms +\| why it is so +\|", tables.markdown_table([], HEADERS))


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [(1, ("case",), "1 case"), (2, ("case",), "2 cases"), (0, ("case",), "0 cases"), (1, ("is", "are"), "1 is")],
)
def test_a_number_has_a_noun_that_agrees(number: int, words: tuple[str, ...], text: str) -> None:
    assert tables.counted(number, *words) == text


def test_a_table_without_alignment_has_a_line_for_each_row() -> None:
    rows = unpadded_markdown([("1", "22"), ("333", "4")], ("a", "b"))
    assert rows.splitlines() == ["| a | b |", "| --- | --- |", "| 1 | 22 |", "| 333 | 4 |"]


def test_a_name_is_folded_behind_its_hyphens_and_underscores() -> None:
    assert tables._folded_name("squeezenet1_1-texture-float32", 12) == ["squeezenet1_", "1-texture-", "float32"]
    assert tables._folded_name("", 12) == [""]


@pytest.mark.usefixtures("narrow")
def test_a_line_in_columns_goes_on_below_its_last_one_unless_that_begins_too_far_right() -> None:
    stream = io.StringIO()
    columns = tables.folded("name  20 of all of the words that are here", stream).splitlines()
    assert columns == ["name  20 of all of the words that are", "      here"]
    late = tables.folded(f"{'a' * 26}  and a few words of text", stream).splitlines()
    assert late[1].startswith(" " * tables.GAP + "words")


@pytest.mark.parametrize(
    ("count_bytes", "text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (2_500_000, "2.5 MB"), (12e9, "12 GB")],
)
def test_sizes_have_the_largest_unit_below_them(count_bytes: float | None, text: str) -> None:
    assert tables.size(count_bytes) == text
