"""The pages and the summary of a history."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from history_results import Folder, both
from page_figures import figures_of

from harness.base.outcome import CaseState, Outcome
from harness.judge.history.events import change, events
from harness.judge.history.results import History, load
from harness.judge.history.runs import Project
from harness.judge.report import site as site_module
from harness.judge.report import words
from harness.judge.report.figures import MARKS, latencies
from harness.judge.report.page import FILTER, PLOTLY, SCRIPT
from harness.judge.report.points import POINTS
from harness.judge.report.site import PAGES, publish, write_site
from harness.judge.report.summary import lines
from harness.judge.verdict import Verdict

WRONG, OTHER = "tiny-texture-float32-untuned", "other-opencl-float32-untuned"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = Folder(tmp_path / "results")
    for tvm, shipped in (("0.25.0", 10.0), ("0.26.0", Outcome.WRONG_RESULT), ("0.27.0", Outcome.WRONG_RESULT)):
        folder.commit({**both(WRONG, 10.0, shipped), **both(OTHER, 5.0, Outcome.COMPILE_ERROR)}, tvm=tvm)
    return folder.path


@pytest.fixture
def site(results: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "html"
    folder.mkdir()
    (folder / "graphs.html").touch()
    assert write_site(load(results), folder, "graphs.html") == len(PAGES)
    return folder


def test_publishing_says_how_many_steps_of_asv_and_pages_of_ours_are_done(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asv(project: Project, arguments: Sequence[str], output: Callable[[str], None]) -> int:
        output("[ 25.00%] · Loading results")
        project.html.mkdir()
        commits = {commit: number for number, commit in enumerate(next(iter(load(results).commits.values())))}
        numbers = {number: commit for commit, number in commits.items()}
        (project.html / "index.json").write_text(json.dumps({"revision_to_hash": numbers}))
        for name in ("index.html", "regressions.xml"):
            (project.html / name).touch()
        return 0

    monkeypatch.setattr(site_module, "asv", asv)
    (results / "benchmarks.json").write_text("{}")
    said: list[str] = []
    publish(Project(tmp_path / "asv.conf.json", results, tmp_path / "html", tmp_path / "env"), step=said.append)
    assert said[:3] == [
        "asv has done [ 25.00%] · Loading results",
        "reading the results",
        f"our pages: 0 of {len(PAGES) + 1}",
    ]
    assert re.fullmatch(rf"our pages: {len(PAGES)} of {len(PAGES) + 1}, about \d+ s left", said[-1])


class Links(HTMLParser):
    """Everything that a page refers to, the ids it has, and its text."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "action"):
                self.links.append(value or "")
            if name == "id":
                self.ids.add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_links_stay_on_the_site_and_lead_somewhere(site: Path) -> None:
    pages = {name: Links(site / name) for name in PAGES}
    for page in pages.values():
        for link in page.links:
            if link.startswith("data:,"):
                continue
            target, _, anchor = link.partition("#")
            assert (site / target).exists(), link
            assert target == "graphs.html" or not anchor or anchor in pages[target].ids, link


def test_every_page_links_to_the_docs_that_are_named(results: Path, tmp_path: Path) -> None:
    for docs, links in (("docs/index.html", 1), ("", 0)):
        write_site(load(results), tmp_path, "graphs.html", docs=docs)
        assert [Links(tmp_path / name).links.count("docs/index.html") for name in PAGES] == [links] * len(PAGES)


def test_every_page_says_what_the_device_is_and_what_of_it_is_emulated(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    folder.commit(both(OTHER, 5.0, 5.0))
    history = load(folder.path)
    emulated = {name: {**machine, "gpu": "PoCL", "emulated": "soc, gpu"} for name, machine in history.machines.items()}
    write_site(replace(history, machines=emulated), tmp_path, "graphs.html")
    for name in PAGES:
        text = Links(tmp_path / name).text
        assert "Not a phone" in text, name
        assert "PoCL" in text, name


def test_pages_load_nothing_from_elsewhere_and_only_the_charts_and_the_filter_run_a_script(site: Path) -> None:
    for name in PAGES:
        text = (site / name).read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org)", text), name
        figures = [PLOTLY, SCRIPT]
        scripts = {"charts.html": figures, "index.html": [FILTER]}.get(name, [])
        assert [link for link in Links(site / name).links if link.endswith(".js")] == scripts
        assert len(re.findall('<script(?! type="application/json")', text)) == len(scripts)
        assert "<strong>adreno-bench</strong>" in text
        assert ("<svg" in text) == (name == "index.html")
    packed = re.search(r'atob\("([^"]+)"\)', (site / PLOTLY).read_text(encoding="utf-8"))
    assert packed
    assert b"MIT license" in gzip.decompress(base64.b64decode(packed[1]))[:500]


Rows = dict[str, dict[str, Any]]


def rows_of(figure: dict[str, Any]) -> Rows:
    """Of each series by its name: its latencies with the lengths of their bars, and what its marks say, by place."""
    rows: Rows = {}
    for row, name in enumerate(figure["layout"]["annotations"]):
        line, *_ = (trace for trace in figure["data"] if trace.get("legendgroup") == str(row))
        marks = [trace for trace in figure["data"] if trace["y"][:1] == [row + 0.72]]
        said = {
            place: f"{mark['hovertemplate']} {mark.get('text', [''] * len(mark['x']))[number]}"
            for mark in marks
            for number, place in enumerate(mark["x"])
        }
        rows[name["text"]] = {"x": line["x"], "ms": line["y"], "bars": line["error_y"], "marks": said}
    return rows


def charts_of(site: Path) -> list[Rows]:
    return [rows_of(figure) for figure in figures_of((site / "charts.html").read_text(encoding="utf-8"))]


def commits_of(site: Path) -> list[list[str]]:
    text = (site / "charts.html").read_text(encoding="utf-8")
    (told,) = re.findall(r'<script type="application/json" id="commits">(.*?)</script>', text)
    (commits,) = json.loads(told).values()
    return [list(one) for one in commits]


def test_a_chart_has_no_latency_where_the_answer_is_wrong_but_a_mark(site: Path) -> None:
    assert commits_of(site)[0] == ["0.25.0<br>00000000", "1970-01-02"]
    rows = charts_of(site)[1]
    shipped, best = rows["texture float32 untuned, as-shipped"], rows["texture float32 untuned, with workarounds"]
    assert shipped["ms"] == [10.0, None, None]
    assert ["✓ right" in shipped["marks"][0], "✗ wrong" in shipped["marks"][1]] == [True, True]
    assert "what went wrong with tiny" in shipped["marks"][1]
    assert (best["x"], best["ms"]) == ([0, 1, 2], [10.0] * 3)
    assert (best["bars"]["arrayminus"], best["bars"]["array"]) == ([0.1] * 3, [0.1] * 3)


def test_a_series_with_schedules_stands_beside_the_untuned_one_and_names_a_release_that_takes_none(
    tmp_path: Path,
) -> None:
    folder, scheduled = Folder(tmp_path / "results"), WRONG.replace("untuned", "scheduled")
    for tvm, came in (("0.25.0", 2.0), ("0.26.0", Outcome.INCONCLUSIVE), ("0.27.0", 2.0)):
        folder.commit({**both(WRONG, 10.0, 10.0), **both(scheduled, came, came)}, tvm=tvm)
    site = tmp_path / "html"
    site.mkdir()
    (site / "graphs.html").touch()
    write_site(load(folder.path), site, "graphs.html")
    (rows,) = charts_of(site)
    assert rows["texture float32 untuned, with workarounds"]["ms"] == [10.0] * 3
    beside = rows["texture float32 scheduled, with workarounds"]
    assert beside["ms"] == [2.0, None, 2.0]
    assert "not measured" in beside["marks"][1]
    assert commits_of(site)[1][0].startswith("0.26.0")


def test_the_charts_have_a_mark_for_every_state() -> None:
    assert set(MARKS) == set(CaseState)
    assert len({symbol for symbol, _ in MARKS.values()}) == len(CaseState)


def test_every_point_is_in_the_file_beside_the_charts(site: Path, results: Path) -> None:
    with (site / POINTS).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(series.points) for series in load(results).series)
    shipped = [row for row in rows if (row["case"], row["quirks"]) == (WRONG, "as-shipped")]
    assert [(row["wall_ms"], row["state"]) for row in shipped] == [("10", "right"), ("", "wrong"), ("", "wrong")]


def test_the_regressions_page_says_what_turned_wrong_where_with_both_numbers(site: Path) -> None:
    page = (site / "moved.html").read_text(encoding="utf-8")
    wrong = page[page.index('id="wrong"') : page.index("</table>")]
    assert "Wrong (1)" in wrong
    assert WRONG in wrong
    assert "TVM 0.25.0 (00000000)" in wrong
    assert "TVM 0.26.0 (00000001)" in wrong
    assert "1e-07 (right up to 0.001)" in wrong
    assert "0.5 (right up to 0.001)" in wrong


def test_the_front_page_has_the_newest_state_of_every_series_without_colour(site: Path) -> None:
    text = Links(site / "index.html").text
    assert text.count("✓ right") == 2 + 1  # the legend has one
    assert text.count("✗ wrong") == 1 + 1
    assert text.count("■ broken") == 1 + 1
    assert "10 ms" in text
    assert "with workarounds" in text
    assert "workarounds" not in text.replace("with workarounds", ""), "asv's own name of the state"
    assert "Never compare its times with a phone's" not in text  # asv's own machine entry tells of no emulation


def test_the_front_page_has_a_row_a_model_with_its_paths_side_by_side_and_what_is_bad_first(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    cases = {model: [f"{model}-{path}-float32-untuned" for path in ("opencl", "texture")] for model in ("a", "b", "c")}
    bad = {cases["b"][1]: Outcome.COMPILE_ERROR, cases["c"][0]: Outcome.WRONG_RESULT}
    folder.commit({(case, "workarounds"): bad.get(case, 10.0) for both in cases.values() for case in both})
    write_site(load(folder.path), tmp_path, "graphs.html")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    rows = page[page.index("<tbody>") : page.index("</tbody>")].split("<tr>")[1:]
    assert [re.findall(r'data-name="(\w+)"', row) for row in rows] == [["Model", "opencl", "texture"]] * 3
    assert [state in row for row, state in zip(rows, ("✗ wrong", "■ broken", "✓ right"), strict=True)] == [True] * 3


def test_text_from_others_is_no_markup(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    folder.commit(both("tiny<script>-texture-float32-untuned", 10.0, Outcome.WRONG_RESULT))
    write_site(load(folder.path), tmp_path, "graphs.html")
    assert "tiny<script>" not in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "tiny<script>" not in (tmp_path / "charts.html").read_text(encoding="utf-8")


def test_an_empty_history_is_still_a_site(tmp_path: Path) -> None:
    write_site(load(tmp_path), tmp_path, "graphs.html")
    assert "Nothing was measured yet" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_markdown_summary_leads_with_what_moved(results: Path) -> None:
    folder = Folder(results)
    folder.commits = ["x"] * 3
    folder.commit({**both(WRONG, 10.0, 10.0), **both(OTHER, 5.0, Outcome.COMPILE_ERROR)}, tvm="0.28.0")
    text = "\n".join(lines(load(results), markdown=True))
    assert "## virtual-G-" in text
    fixed = f"- **fixed** {WRONG} (as-shipped): wrong: 0.5 (right up to 0.001) → 10 ms, since TVM 0.28.0 (00000003)."
    assert fixed in text
    assert f"| {OTHER}" in text
    assert "- fixed tiny" in "\n".join(lines(load(results), markdown=False))


def test_summary_names_what_could_not_be_read(results: Path) -> None:
    next(results.glob("*/0*.json")).write_text("{")
    assert any("could not be read" in line for line in lines(load(results), markdown=True))


def test_summary_of_nothing_says_so(tmp_path: Path) -> None:
    assert list(lines(load(tmp_path), markdown=True)) == ["Nothing was measured."]


def test_a_build_that_did_not_change_got_no_slower_whatever_the_numbers_say(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for level_ms, artifact in [(10.0, "a"), (20.0, "a")]:
        for n in range(8):
            folder.commit(both(OTHER, level_ms + 0.01 * (n % 3), level_ms + 0.01 * (n % 2)), artifact=artifact * 24)
    assert events(load(folder.path)) == []
    for n in range(8):
        folder.commit(both(OTHER, 40.0 + 0.01 * (n % 3), 40.0 + 0.01 * (n % 2)), artifact="b" * 24)
    assert {event.verdict for event in events(load(folder.path))} == {Verdict.SLOWER}


def test_since_the_last_release_compares_releases_and_never_two_commits_of_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.commit(both(OTHER, 10.0, 10.0), tvm="0.27.0+g0000000000")
    folder.commit(both(OTHER, 20.0, 20.0), tvm="0.27.0+g1111111111")
    assert [change(series) for series in load(folder.path).series] == [None, None]
    folder.commit(both(OTHER, 30.0, 30.0), tvm="0.28.0")
    assert [change(series) for series in load(folder.path).series] == [pytest.approx(0.5)] * 2


def test_the_front_page_counts_states_and_what_happened_apart(site: Path) -> None:
    text = " ".join(Links(site / "index.html").text.split())
    assert "✓ 2 right ✗ 1 wrong ■ 1 broken" in text
    assert "In the whole history: 1 turned wrong." in text
    assert "✓ right 10 ms 0.0%" in text


def recorded(tmp_path: Path, case: str, **fields: Any) -> History:
    """A history of a case whose records have these fields in place of their own."""
    folder = Folder(tmp_path / "results")
    file = folder.commit(both(case, 10.0, 10.0)).with_suffix(".jsonl")
    changed = [{**json.loads(line), **fields} for line in file.read_text().splitlines()]
    file.write_text("".join(f"{json.dumps(record)}\n" for record in changed))
    return load(folder.path)


def test_a_path_that_did_nothing_of_its_own_is_marked_on_the_front_page(tmp_path: Path) -> None:
    write_site(recorded(tmp_path, WRONG, facts={"image_kernels": 0}), tmp_path, "graphs.html")
    text = Links(tmp_path / "index.html").text
    assert text.count("✓ right, as opencl") == 2
    assert text.count("path texture put no tensor into an image") == 2


def test_a_vacuous_answer_is_never_drawn_as_right(tmp_path: Path) -> None:
    reason = "output 0 of 1 is all zero"
    history = recorded(tmp_path, "tiny-opencl-float32-untuned", vacuous=[reason])
    (tmp_path / "site").mkdir()
    write_site(history, tmp_path / "site", "graphs.html")
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert text.count("◇ vacuous") == 2 + 1  # the legend has one
    assert text.count(reason) == 2
    assert text.count("✓ right") == 1
    assert any("◇ vacuous" in line for line in lines(history, markdown=True))


def test_a_right_answer_some_outputs_of_which_prove_nothing_is_right_and_says_so(tmp_path: Path) -> None:
    reason = "output 1 of 2 is all zero"
    history = recorded(tmp_path, "tiny-opencl-float32-untuned", partly_vacuous=[reason])
    write_site(history, tmp_path, "graphs.html")
    text = Links(tmp_path / "index.html").text
    assert (text.count("✓ right, partly vacuous"), text.count(reason)) == (2, 2)


def test_what_all_cases_share_is_said_once_and_what_is_empty_in_one_line(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    folder.commit({(case, "workarounds"): 10.0 for case in (WRONG, OTHER)})
    write_site(load(folder.path), tmp_path, "graphs.html")
    front = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert front.count("float32 untuned") == front.count("with workarounds") == 1
    assert words.SINCE_RELEASE not in front, "there is one release"
    moved = (tmp_path / "moved.html").read_text(encoding="utf-8")
    assert "Nothing turned wrong, broken, slower, faster or fixed." in moved
    assert "<h2" not in moved


def test_a_change_of_single_sessions_is_grey_and_has_its_interval(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    for tvm, ms in (("0.26.0", 10.0), ("0.27.0", 11.0)):
        folder.commit({(OTHER, "workarounds"): ms}, tvm=tvm)
    history = load(folder.path)
    write_site(history, tmp_path, "graphs.html")
    front = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<span class="quiet">\+10\.0% \(\+7\.8% to \+12\.2%\)</span>', front)
    assert f"Grey changes are {words.SINCE_RELEASE}." in front
    assert words.SINCE_RELEASE in lines(history, markdown=False)


def test_a_path_without_a_latency_has_its_marks_and_no_empty_plot(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    folder.commit({(OTHER, "workarounds"): 10.0, (WRONG, "workarounds"): Outcome.COMPILE_ERROR})
    write_site(load(folder.path), tmp_path, "graphs.html")
    figures = figures_of((tmp_path / "charts.html").read_text(encoding="utf-8"))
    assert [figure["layout"]["yaxis"]["visible"] for figure in figures] == [True, False]


def test_each_path_of_a_model_has_a_chart_of_its_own(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    cases = ["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]
    folder.commit({(case, "workarounds"): 10.0 for case in cases})
    write_site(load(folder.path), tmp_path, "graphs.html")
    charts = (tmp_path / "charts.html").read_text(encoding="utf-8")
    assert re.findall("<h3>(.*?)</h3>", charts) == ["opencl", "texture"]
    assert charts.count("<h2 id=") == 1


def test_the_summary_of_an_emulated_device_says_so_and_a_change_has_its_interval(results: Path) -> None:
    history = load(results)
    machine = next(iter(history.machines))
    history.machines[machine]["emulated"] = "gpu"
    told = list(lines(history, markdown=True))
    assert "Not a phone. Not the real thing here: gpu. Never compare its times with a phone's." in told
    rows = [line for line in told if WRONG in line and "with workarounds" in line]
    assert any(re.search(r"\d.*%.*\([+-]\d.* to [+-]\d.*%\)", row) for row in rows)


def test_as_shipped_and_with_workarounds_have_colours_of_their_own(results: Path) -> None:
    history = load(results)
    series = [one for one in history.series if one.case.id == WRONG]
    figure = latencies(series, history.commits[series[0].machine], {})
    assert len({line["line"]["color"] for line in figure.layout["shapes"]}) == 2


def test_a_change_that_no_step_explains_is_told_beside_nothing_moved(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    for tvm, ms in (("0.26.0", 10.0), ("0.27.0", 34.0)):
        folder.commit(both(WRONG, ms, ms), tvm=tvm)
    (tmp_path / "html").mkdir()
    write_site(load(folder.path), tmp_path / "html", "graphs.html")
    front = (tmp_path / "html" / "index.html").read_text("utf-8")
    assert "no step that lasted (since the last release one session of each differs by up to +240.0%" in front
