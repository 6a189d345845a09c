"""What docs/evidence/findings.md says is what its kept results say, read by the code of today."""

from places import ROOT

from harness.judge.history.events import events
from harness.judge.history.results import load
from harness.judge.report.words import quirks_text
from harness.judge.verdict import Verdict

DOCS = ROOT / "docs"


def test_the_example_says_what_the_page_of_findings_says() -> None:
    history = load(DOCS / "example" / "results")
    assert not history.skipped
    told = {
        f"{event.verdict.value} {event.series.case.id} {event.series.quirks} {event.before.tvm} {event.after.tvm}"
        for event in events(history)
        if event.verdict in (Verdict.WRONG, Verdict.BROKEN)
    }
    assert told == {"wrong resnet18-texture-float32-untuned as-shipped 0.25.0.post1 0.26.0"}
    page = (DOCS / "evidence/findings.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    of_page = {
        (row[0], row[1], row[2]): row[3:] for row in rows if len(row) == 6 and row[1] in ("opencl", "texture", "clml")
    }
    words = {"ok": "right", "wrong-result": "wrong"}
    seen = {
        (series.case.model, series.case.path, quirks_text(series).replace("-", " ")): [
            words.get(outcome.value, outcome.value) for point in series.points if (outcome := point.outcome)
        ]
        for series in history.series
    }
    assert of_page == seen
