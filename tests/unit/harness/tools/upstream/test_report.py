"""Reports for TVM's issue tracker: each stands alone, and its program agrees with the quirk's probe."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from places import ROOT
from typer.testing import CliRunner
from waiting import FENCE_S

from harness.cli import app
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer
from harness.tools.upstream.report import (
    SCRIPT,
    QuirkReport,
    Severity,
    report_of,
    report_table,
    reported_quirks,
    reproduce,
    write_report,
)

QUIRKS = reported_quirks()
REPORTS = {quirk.id: report for quirk in QUIRKS if (report := report_of(quirk))}
WITHOUT = [quirk for quirk in QUIRKS if quirk.id not in REPORTS]
ALLOWED = {"re", "sys", "types", "pathlib", "numpy", "tvm"}
OF_THE_IMPORTER = {"onnx"}
SECTIONS = ["Expected behavior", "Actual behavior", "Environment", "Steps to reproduce", "Cause", "Direction of a fix"]
SMALL = QuirkReport(
    "title", Severity.WRONG, "not bisected", "", "not reported", "### Environment\n\n```python\nx = 1\n```\n"
)

every_report = pytest.mark.parametrize("name", REPORTS)


def imports(script: str) -> set[str]:
    nodes = [*ast.walk(ast.parse(script))]
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[0] for name in (*named, *(n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)))}


@every_report
def test_a_program_needs_tvm_and_numpy_alone(name: str) -> None:
    script = REPORTS[name].script
    allowed = ALLOWED | (OF_THE_IMPORTER if name.startswith(("misread-", "roi-align-", "squeeze-")) else set())
    assert imports(script) - allowed == set()
    assert len(script.splitlines()) <= 60
    assert max(map(len, script.splitlines())) <= 120
    assert "\nNeeds apache-tvm" in script


@every_report
def test_a_report_has_the_sections_of_the_template_and_says_nothing_of_us(name: str) -> None:
    report = REPORTS[name]
    assert re.findall(r"^### (.*)$", report.text, re.MULTILINE) == [*SECTIONS, "Triage"]
    assert "# include <" not in report.text
    assert not re.search(r"adreno.bench|harness|quirk", f"{report.title}{report.text}", re.IGNORECASE)
    assert all((report.title, report.upstream, report.first_bad))


def test_a_fact_of_several_paragraphs_is_a_section_of_them() -> None:
    actual = REPORTS["vectorized-alloc"].text.partition("### Actual behavior\n\n")[2].partition("\n\n### ")[0]
    assert re.fullmatch(r"The buffer [^\n]+\n\nThe Adreno [^\n]+\n\n```c\nfloat [^`]+;\n```", actual)


def test_every_file_is_of_a_quirk() -> None:
    files = {file.stem for tool in ("upstream", "llm") for file in (ROOT / f"harness/tools/{tool}/reports").iterdir()}
    assert files == set(REPORTS)


def test_the_published_table_has_every_quirk_with_what_its_report_says() -> None:
    page = (ROOT / "docs/data/quirk-reports.md").read_text("utf-8")
    rows = {
        cells[0]: cells for line in page.splitlines() if (cells := [cell.strip() for cell in line.split("|")[1:-1]])
    }
    for quirk in QUIRKS:
        row, report = rows[f"`{quirk.id}`"], REPORTS[quirk.id]
        facts = (report.severity.value, report.networks, report.main, report.first_bad, report.upstream)
        assert (*row[1:3], *row[-3:]) == facts


@pytest.mark.parametrize(
    ("script", "state", "seen"),
    [
        ("import sys; print('four'); print('defect present'); sys.exit(1)", Presence.PRESENT, "four"),
        ("print('defect absent')", Presence.ABSENT, ""),
        ("print('defect present')", Presence.CANNOT_TELL, "exit code 0: defect present"),
        ("raise ValueError('no')", Presence.CANNOT_TELL, "exit code 1: ValueError: no"),
        ("import harness", Presence.CANNOT_TELL, "exit code 1: ModuleNotFoundError: No module named 'harness'"),
    ],
)
def test_exit_code_and_last_line_must_agree(
    script: str, state: Presence, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "empty").mkdir()
    assert reproduce(script, _without_packages(tmp_path), FENCE_S) == ProbeAnswer(state, seen)


def test_a_program_that_does_not_end_cannot_tell(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = reproduce("import time; time.sleep(600)", _without_packages(tmp_path), 1.0)
    assert answer == ProbeAnswer(Presence.CANNOT_TELL, "it did not end within 1 s")


def _without_packages(folder: Path) -> Path:
    """A Python that finds no package of this environment."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return python


def test_the_worst_come_first_and_what_has_no_report_last() -> None:
    rows = [(QUIRKS[0], None), (QUIRKS[1], SMALL), (QUIRKS[2], SMALL)]
    states = {"1.0": {QUIRKS[1].id: ProbeAnswer(Presence.PRESENT, "seen")}}
    page = report_table(rows, states)
    assert "2 silent wrong results, 1 no report yet. Made by" in page
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert [re.findall(r"`(.*?)`", line)[0] for line in lines] == [QUIRKS[1].id, QUIRKS[2].id, QUIRKS[0].id]
    assert "| present |" in lines[0]
    assert "no report yet" in lines[2]


def test_a_bisected_commit_has_its_transcript() -> None:
    pages = (ROOT / "docs" / place for place in ("data/quirk-bisections.md", "how-to/bisect.md"))
    words = {word for page in pages for word in page.read_text("utf-8").split()}
    found = {name: report.first_bad for name, report in REPORTS.items() if "bisection" in report.first_bad}
    assert len(found) >= 5
    assert {name for name, commit in found.items() if commit.split()[0] not in words} == set()


def test_what_was_seen_stands_under_environment(tmp_path: Path) -> None:
    write_report(SMALL, {"1.0": ProbeAnswer(Presence.PRESENT, "seen")}, tmp_path)
    text = (tmp_path / "report.md").read_text("utf-8")
    assert text.startswith("# [Bug] title\n\n### Environment\n\n| apache-tvm")
    assert re.search(r"\| 1\.0 +\| present +\| seen +\|", text)
    assert (tmp_path / SCRIPT).read_text("utf-8") == "x = 1\n"


def test_a_report_names_the_tvm_ffi_that_its_release_works_with(tmp_path: Path) -> None:
    write_report(SMALL, {"0.27.0.post1": ProbeAnswer(Presence.PRESENT, "seen")}, tmp_path)
    said = "`pip install apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 numpy`"
    assert said in (tmp_path / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--report", "vectorised-alloc"], "did you mean 'vectorized-alloc'"),
        (["--out", "x"], "--out has no effect without --report"),
        *([(["--report", WITHOUT[0].id], f"{WITHOUT[0].id}: no report yet")] if WITHOUT else []),
    ],
)
def test_what_cannot_be_written_is_said(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["quirks", *words])
    assert said in done.output + str(done.exception)
