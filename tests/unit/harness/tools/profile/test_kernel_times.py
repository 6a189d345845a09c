"""What kernels took at each commit of a history: kept beside its records, laid side by side, and shown on pages."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from history_results import Folder, both
from page_figures import figures_of, trace_of

from harness.base.outcome import Outcome
from harness.compile.compiler.tir import OperatorWork
from harness.judge.history.events import events
from harness.judge.history.results import load
from harness.judge.history.section import HistoryView, load_sections
from harness.judge.report.site import PAGES, write_site
from harness.judge.report.summary import lines
from harness.tools.profile import kernel_times
from harness.tools.profile.kernel_pages import comparisons, pages_of
from harness.tools.profile.kernel_rows import MOST_GROUPS, rows_between, rows_of
from harness.tools.profile.kernel_times import load_kernels
from harness.tools.profile.measure import append_profile
from harness.tools.profile.roofline import bound_of
from harness.tools.shared.kernels import profile as profile_module
from harness.tools.shared.kernels.profile import Operator, Peaks, Profile, Roof, hash_of, hashes_of

CASE = "tiny-texture-float32-untuned"
ARTIFACT = "a" * 24
PEAKS = Peaks(copy_gb_s=100, float32_gflop_s=1000)
ROOF = Roof(gb_s=100, gflop_s=1000)


def an_operator(function: str, ms: float, source: str = "s", size: int = 8, **facts: Any) -> Operator:
    work = OperatorWork(function, [[size], [size]], 64_000_000, 1_000_000_000, 1_000_000_000)
    known = {"kernels": (f"{function}_kernel",), "launches": 1, "threads": 64, "work": work, **facts}
    return Operator(function=function, ms=ms, source=source, **known)


def a_profile(*operators: Operator, artifact: str = ARTIFACT, **facts: Any) -> Profile:
    ms = sum(one.ms for one in operators)
    known = {"case": CASE, "identity_key": "k", "gpu": "G", "tvm": "0.27", "peaks": PEAKS, "span_ms": ms, **facts}
    return Profile(artifact=artifact, operators=operators, kernels_ms=ms, wall_ms=2 * ms, **known)


def commit(folder: Folder, ms: float, *profiles: Profile, artifact: str = ARTIFACT) -> Path:
    """A commit whose cases take so many ms, with these profiles beside its records."""
    file = folder.commit(both(CASE, ms, ms), artifact=artifact)
    for profile in profiles:
        append_profile(
            profile_module.kernels_file(file.with_suffix(".jsonl")), profile.model_copy(update={"artifact": artifact})
        )
    return file


def slowed(folder: Folder) -> None:
    """Eight commits, and eight with another build whose convolution takes longer, of which nobody watched the first."""
    for number in range(16):
        late, ms = number > 7, 10 + 0.01 * (number % 3)
        conv = an_operator("fused_conv2d1", 8.0 if late else 4.0, source="new" if late else "old")
        pool = an_operator("fused_softmax", 1.0, size=4)
        rest = an_operator("fused_relu" if late else "fused_add", 0.5)
        watched = [] if number == 0 else [a_profile(conv, pool, rest)]
        commit(folder, 2 * ms if late else ms, *watched, artifact=("b" if late else "a") * 24)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


def test_a_profile_comes_back_from_the_file_beside_the_records(tmp_path: Path) -> None:
    file = profile_module.kernels_file(tmp_path / "0123abcd-virtualenv-py3.11.jsonl")
    mine, shipped = a_profile(an_operator("fused_a", 1.0)), a_profile(an_operator("fused_a", 2.0), as_shipped=True)
    append_profile(file, mine)
    append_profile(file, shipped)
    assert file.name == "0123abcd-virtualenv-py3.11.kernels.gz"
    assert list(profile_module.read_profiles(file, lambda _: True)) == [mine, shipped]
    assert list(profile_module.read_profiles(file, lambda head: head.as_shipped)) == [shipped]
    with gzip.open(file) as lines:
        assert json.loads(lines.readline()) == mine.model_dump(mode="json", by_alias=True)  # as `--json` prints it


def test_forty_operators_are_kept_in_a_few_kilobytes(tmp_path: Path) -> None:
    file = tmp_path / "p.kernels.gz"
    append_profile(
        file, a_profile(*(an_operator(f"fused_conv2d{n}", n / 7, size=n, source=f"{n:016x}") for n in range(40)))
    )
    assert file.stat().st_size < 4_000


BAD = {"text": b"{", "no gzip": b"no gzip", "torn": gzip.compress(b"{}\n")[:-4], "foreign": gzip.compress(b"[1]\n")}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_torn_or_foreign_file_is_named_and_the_rest_is_shown(folder: Folder, content: bytes) -> None:
    commit(folder, 10.0, a_profile(an_operator("fused_a", 1.0)))
    bad = profile_module.kernels_file(commit(folder, 10.0).with_suffix(".jsonl"))
    bad.write_bytes(content)
    history = load(folder.path)
    (kernels,) = load_kernels(folder.path, history, []).values()
    assert list(kernels.profiles) == folder.commits[:1]
    assert [line.partition(":")[0] for line in history.skipped] == [str(bad)]


def test_what_is_packed_to_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "big").write_bytes(gzip.compress(b" " * 2_000_000))
    monkeypatch.setattr(profile_module, "LARGEST_FILE_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="more than 1 MB"):
        list(profile_module.read_profiles(tmp_path / "big", lambda _: True))


def test_only_the_build_that_was_right_at_that_commit_is_told_of(folder: Folder) -> None:
    right, other = a_profile(an_operator("fused_a", 2.0)), a_profile(an_operator("fused_a", 1.0))
    file = profile_module.kernels_file(commit(folder, 10.0, other, right).with_suffix(".jsonl"))
    append_profile(file, a_profile(an_operator("fused_b", 3.0), artifact="of an earlier build"))
    append_profile(file, a_profile(an_operator("fused_b", 3.0), case="foreign"))
    wrong = folder.commit(both(CASE, Outcome.WRONG_RESULT, 10.0), artifact=ARTIFACT)
    append_profile(profile_module.kernels_file(wrong.with_suffix(".jsonl")), right)
    (kernels,) = load_kernels(folder.path, load(folder.path), []).values()
    assert (kernels.series.quirks, kernels.profiles) == ("workarounds", {folder.commits[0]: right})


def test_of_a_long_history_the_newest_commits_and_both_sides_of_a_step_are_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_times, "NEWEST", 5)
    slowed(folder)
    for _ in range(5):
        commit(folder, 20.0, a_profile(an_operator("fused_conv2d1", 8.0)), artifact="b" * 24)
    history = load(folder.path)
    moved = events(history)
    (kernels,) = load_kernels(folder.path, history, moved).values()
    assert list(kernels.times_ms) == folder.commits[-5:]
    assert list(kernels.profiles) == [folder.commits[place] for place in (7, 8, -2, -1)]


def site(folder: Folder, into: Path) -> Mapping[str, str]:
    into.mkdir()
    write_site(load(folder.path), into, "graphs.html", results=folder.path)
    return {file.name: file.read_text(encoding="utf-8") for file in into.glob("*.html")}


@pytest.mark.parametrize("markdown", [True, False])
def test_the_summary_names_the_operator_behind_a_step(folder: Folder, markdown: bool) -> None:
    slowed(folder)
    history = load(folder.path)
    sections = load_sections(HistoryView(folder.path, history, events(history), summary=True))
    told = list(lines(history, markdown=markdown, sections=sections))
    (place,) = (place for place, line in enumerate(told) if "slower" in line and "with workarounds" in line)
    assert told[place + 1].startswith("  conv2d to 8: 8 ms against 4, 100% of the difference")


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The site of a case that one of its kernels made slower; its own page last."""
    root = tmp_path_factory.mktemp("slower")
    slowed(folder := Folder(root / "results"))
    pages = site(folder, root / "html")
    return dict(sorted(pages.items(), key=lambda page: page[0].startswith("kernels-")))


def test_the_page_of_a_case_says_which_kernels_made_it_slower(slower: Mapping[str, str]) -> None:
    page = list(slower.values())[-1]
    newest, step = page.index("(0000000f)</h2>"), page.index("slower: +")
    assert newest < step
    rows = re.findall(r"<tr>\n<td.*?</tr>", page[step:], re.DOTALL)
    cells = [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)] for row in rows]
    assert cells[0] == ["conv2d to 8", "4 ms", "8 ms", "+4 ms", "84.2 %", "1 | 1", "changed", "12.5% of GFLOP/s"]
    assert {row[0]: (row[1], row[2], row[6]) for row in cells} == {
        "conv2d to 8": ("4 ms", "8 ms", "changed"),
        "relu to 8": ("-", "0.5 ms", "new"),
        "add to 8": ("0.5 ms", "-", "gone"),
        "softmax to 4": ("1 ms", "1 ms", "same"),
    }
    assert "conv2d to 8: 8 ms against 4, 100% of the difference" in page[step:]


def test_what_moved_names_the_kernels_and_leads_to_their_page(slower: Mapping[str, str]) -> None:
    *_, name = slower
    assert len(slower) == len(PAGES) + len(["kernels.html", name])
    for page in ("index.html", "moved.html", "kernels.html"):
        assert f'href="{name}"' in slower[page]
    assert "conv2d to 8: 8 ms against 4" in slower["moved.html"]


def test_a_history_without_kernel_times_says_nothing_of_them(folder: Folder, tmp_path: Path) -> None:
    commit(folder, 10.0)
    pages = site(folder, tmp_path / "html")
    assert set(pages) == {*PAGES, "kernels.html"}
    assert "No kernels were watched in this history." in pages["kernels.html"]
    assert "kernels-" not in "".join(pages.values())


def test_the_charts_have_a_gap_where_an_operator_is_not(slower: Mapping[str, str]) -> None:
    page = list(slower.values())[-1]
    times, roofline = figures_of(page)
    conv, add = trace_of(times, "conv2d to 8"), trace_of(times, "add to 8")
    assert conv["y"] == [4.0] * 7 + [8.0] * 8
    assert add["y"] == [0.5] * 7 + [None] * 8
    assert conv["x"] == [f"{n:08x}" for n in range(1, 16)]
    operators = trace_of(roofline, CASE)
    assert [operators[key][0] for key in ("text", "x", "y")] == ["conv2d to 8", 15.625, 125.0]
    assert operators["customdata"][0] == "conv2d to 8<br>84.2 % of the time"
    roof = trace_of(roofline, "at best: 100 GB/s, 1,000 GFLOP/s in float32")
    assert (roof["x"][-1], roof["y"][-1]) == (20.0, 1000.0)


def test_text_of_a_profile_is_no_markup(folder: Folder, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    commit(folder, 10.0, a_profile(an_operator(evil, 2.0, source=evil)))
    commit(folder, 10.0, a_profile(an_operator(evil, 2.0), gpu=evil, tvm=evil))
    for text in site(folder, tmp_path / "html").values():
        assert "<img" not in text


def test_a_profile_of_before_has_no_source_to_compare() -> None:
    old = json.loads(a_profile(an_operator("fused_a", 1.0)).model_dump_json(by_alias=True))
    del old["as_shipped"], old["operators"][0]["source"]
    (row,) = rows_between(Profile.model_validate(old), a_profile(an_operator("fused_a", 1.0)), rebuilt=True)
    assert row.source == ""


def test_rows_beyond_those_that_are_shown_are_one() -> None:
    profile = a_profile(*(an_operator(f"op{'x' * n}", 1.0 + n, size=n + 1) for n in range(MOST_GROUPS + 3)))
    rows = rows_of(profile)
    assert [len(rows), rows[-1].label, rows[-1].launches] == [MOST_GROUPS + 1, "3 others", "3"]
    assert rows[0].now_ms == MOST_GROUPS + 3
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_a_step_is_told_once_though_it_is_the_newest_pair_too(folder: Folder) -> None:
    slowed(folder)
    history = load(folder.path)
    moved = events(history)
    (page,) = pages_of(load_kernels(folder.path, history, moved))
    assert [(bool(one.step), one.rebuilt) for one in comparisons(page, moved)] == [(False, False), (True, True)]


def test_the_last_change_of_the_build_is_taken_apart_though_it_is_no_step(folder: Folder) -> None:
    for artifact, ms in (("a", 1.0), ("b", 1.1), ("b", 1.1), ("b", 1.1)):
        commit(folder, 10.0, a_profile(an_operator("fused_a", ms)), artifact=artifact * 24)
    (page,) = pages_of(load_kernels(folder.path, load(folder.path), []))
    newest, changed = comparisons(page, [])
    assert [newest.now.commit, changed.now.commit] == [folder.commits[3], folder.commits[1]]
    assert [one.sentences for one in (newest, changed)] == [
        ["TVM 0.27.0 (00000003): 1.1 ms in 1 kernel, as long as TVM 0.27.0 (00000002) (1.1 ms in 1)."],
        ["TVM 0.27.0 (00000001): 1.1 ms in 1 kernel, 0.1 ms longer than TVM 0.27.0 (00000000) (1 ms in 1)."],
    ]


def test_what_limits_an_operator_is_what_it_is_nearest_to() -> None:
    needy = OperatorWork("f", [[1]], 50_000_000, 1_000, 1_000)
    assert bound_of([an_operator("f", 1.0, work=needy)], ROOF) == (0.5, "GB/s")
    assert bound_of([an_operator("f", 2.0)], ROOF) == (0.5, "GFLOP/s")
    assert bound_of([an_operator("f", 2.0, work=None)], ROOF) is None
    assert bound_of([an_operator("f", 2.0)], Roof()) is None
    assert bound_of([], ROOF) is None


def test_a_kernels_source_is_the_same_whatever_it_and_its_parameters_are_called() -> None:
    text = "__kernel void %s(__global float* %s, __global float* out) {\n  out[0] = %s[0] %s 1;\n}\n"
    one, renamed, other = (
        hashes_of(text % words) for words in (("a", "p", "p", "+"), ("b", "q", "q", "+"), ("a", "p", "p", "-"))
    )
    assert hash_of(["a"], one) == hash_of(["b"], renamed) != hash_of(["a"], other)
    assert hash_of(["a", "unknown"], one) == ""
