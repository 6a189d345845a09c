"""Draw the pictures of README and docs: pages that `history publish` and `report` write, opened in a browser.

python -m benchmarks.pictures

`docs/images/page.png` shows a made-up history: three models, one wrong, one slower. `findings.png` and `report-run.png`
show the results that docs/evidence/findings.md describes, and `llm-context.png` a run of llama_tiny on the virtual
phone; the other reports, kernels and the roofline are made up. Needs a browser (`make browser`). A test compares
`SOURCES` with the templates: change these, and draw the pictures again.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from msgspec import structs

from benchmarks.browser import Page, browser
from benchmarks.synthetic_history import DAY_MS
from benchmarks.synthetic_profile import profile_of
from benchmarks.synthetic_suite import WRONG as WRONG_CASE
from benchmarks.synthetic_suite import suite
from harness.base.case import Case, Precision
from harness.base.outcome import Outcome
from harness.base.request import WITH_WORKAROUNDS
from harness.judge.compare import KernelChange, compare_sides
from harness.judge.history.results import History, Point, Series, load
from harness.judge.report.comparison import ComparisonExport, export_comparison
from harness.judge.report.sections import BuildKey, BuildLines, PageFiles, load_details
from harness.judge.report.site import write_site
from harness.judge.report.suite_page import write_report
from harness.judge.sides import sides_of
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record, RecordFile
from harness.tools.profile.figures import plot_roofline
from harness.tools.profile.measure import append_profile
from harness.tools.shared.kernels.profile import ENDING

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
EXAMPLE = ROOT / "docs" / "example" / "results"
CONTEXT_RUN = ROOT / "benchmarks" / "sessions" / "llm-context.jsonl"
"""Records of `adreno-bench llm run` with tests tg@d0 to tg@d1535 on the virtual phone."""
NEWEST = "d5e96de2"
"""The last commit of that history: TVM 0.27.0.post1."""
LLM = ROOT / "harness" / "tools" / "llm"
SOURCES = IMAGES / "sources.sha256"
"""Hash of what draws the pages, as it was when the pictures were drawn."""
MACHINE, FIRST_MS = "example phone, made-up numbers", 1_790_000_000_000
COMMITS, WRONG_SINCE, SLOWER_SINCE = 40, 30, 28
LATENCIES_MS = {"mobilenet_v1": (18.4, 11.2, 8.9), "resnet18": (41.0, 24.6, 15.3), "squeezenet1_1": (12.7, 9.1, 7.4)}
"""Of a made-up phone, on each of PATHS."""
PATHS = ("opencl", "texture", "clml")
KERNELS = (
    KernelChange("conv2d 512x512x1x1 to 512x14x14", 4.21, 5.62, (5, 5), "changed"),
    KernelChange("conv2d 1024x1024x1x1 to 1024x7x7", 1.93, 2.09, (1, 1), "changed"),
    KernelChange("conv2d 512x1x3x3 to 512x14x14", 2.47, 2.46, (5, 5), "same"),
    KernelChange("mean to 1024x1x1", 0.02, 0.02, (1, 1), "same"),
)
"""Made up, of the case that is slower."""
ARTIFACTS = {False: "a" * 24, True: "b" * 24}
"""Builds of the made-up history, before and after the step of the case that is slower."""
SLOWED = {"conv2d1_add_relu": 1.9, "conv2d2_add_relu": 1.4}
"""Its operators that take longer since then."""
WATCHED_SINCE = SLOWER_SINCE - 8
WRONG = "output 0 is off by 14.5 at [0, 888]: -9.81404 instead of 4.68917 (tolerance 0.0139)"


def example() -> History:
    """Return a made-up history in which one case is wrong and one is slower."""
    rng = random.Random(1)
    hashes = [f"{rng.getrandbits(160):040x}" for _ in range(COMMITS)]
    series = [
        Series(
            MACHINE,
            Case(model, path, Precision.FLOAT32),
            WITH_WORKAROUNDS,
            list(_points(hashes, ms, (model, path), rng)),
        )
        for model, latencies in LATENCIES_MS.items()
        for path, ms in zip(PATHS, latencies, strict=True)
    ]
    machine = {"machine": MACHINE, "soc": "made up", "gpu": "made up"}
    return History({MACHINE: machine}, series, {MACHINE: hashes})


def _points(hashes: list[str], ms: float, case: tuple[str, str], rng: random.Random) -> Iterator[Point]:
    for number, commit in enumerate(hashes):
        date_ms = FIRST_MS + number * DAY_MS
        if case == ("resnet18", "texture") and number >= WRONG_SINCE:
            yield Point(commit, date_ms, Outcome.WRONG_RESULT, WRONG, tvm="0.27.0")
            continue
        slower = case == ("mobilenet_v1", "opencl") and number >= SLOWER_SINCE
        wall_ms = ms * (1.18 if slower else 1.0) * rng.gauss(1, 0.008)
        bounds_ms = wall_ms * 0.99, wall_ms * 1.01
        yield Point(commit, date_ms, Outcome.OK, "", wall_ms, *bounds_ms, tvm="0.27.0", artifact=ARTIFACTS[slower])


def watch_kernels(history: History, results: Path) -> None:
    """Write profiles of the case that is slower beside the results of its commits."""
    record = next(one for one in suite(1) if one.case == "mobilenet_v1-opencl-float32-untuned")
    series = next(one for one in history.series if one.case.id == record.case)
    for number, point in list(enumerate(series.points))[WATCHED_SINCE:]:
        slower = SLOWED if number >= SLOWER_SINCE else {}
        profile = profile_of(record.model_copy(update={"artifact": point.artifact, "tvm": point.tvm}), slower, number)
        append_profile(results / series.machine / f"{point.commit[:8]}-example{ENDING}", profile)


FOOTER_TOP = "Math.ceil(document.querySelector('footer').getBoundingClientRect().top)"
DRAWN = "[...document.querySelectorAll('.figure')].slice(0, %d).every((figure) => figure.querySelector('.trace'))"


def draw(page: Page, file: Path, to: str, width_px: int, height_px: int | None = None) -> None:
    """Write the picture of a page, whole or its first pixels."""
    page.open(file, width_px, 400)
    page.open(file, width_px, height_px or page.ask(FOOTER_TOP))
    page.wait_for(DRAWN % (1 if height_px else 1000))
    page.picture(IMAGES / to)


def digest() -> str:
    """Hash of the templates and drawings."""
    report, profile = ROOT / "harness/judge/report", ROOT / "harness/tools/profile"
    drawings = [report / "figures.py", report / "strips.py", profile / "figures.py", profile / "labels.py"]
    folders = [report / "templates", profile / "templates", LLM / "templates"]
    files = sorted([*drawings, LLM / "context.py", *(file for folder in folders for file in folder.iterdir())])
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(file.name.encode() + b"\0" + file.read_bytes())
    return hashed.hexdigest()


def draw_part(page: Page, file: Path, to: str, width_px: int, element: str) -> None:
    """Write the picture of one element of a page."""
    page.open(file, width_px, 800)
    page.ask(f"{element}.scrollIntoView()")  # what is far below is not laid out before
    page.open(file, width_px, page.ask(f"Math.ceil({element}.getBoundingClientRect().height) + 24"))
    page.ask(f"{element}.scrollIntoView()")
    page.picture(IMAGES / to)


def first_wrong_of(records: Sequence[Record]) -> BuildLines:
    """Made up, of what is wrong."""
    first = "The first operator whose output is off is Conv conv_4, number 5 of 69."
    wrong = {BuildKey.of(record) for record in records if record.outcome is Outcome.WRONG_RESULT}
    return lambda build: (first, "Conv conv_4 reads maxpool_3 1x64x56x56.") if build in wrong else ()


NO_FILES = PageFiles((), ())


def report_of(
    file: Path, records: Sequence[Record], comparison: ComparisonExport | None = None, files: PageFiles = NO_FILES
) -> Path:
    """Write the page of some records."""

    def series(record: Record) -> tuple[str, str, bool]:
        return record.identity_key, record.case, record.as_shipped

    builds = [list(group) for _, group in groupby(sorted(records, key=series), key=series)]
    details = load_details(files, {record.artifact for record in records})
    write_report(file, builds, comparison, (), [first_wrong_of(records)] if comparison else [], details)
    return file


def draw_reports(page: Page, folder: Path) -> None:
    """Draw a run as a fresh clone has it, a wrong case, a gate that found something, and a suite on three phones."""
    (kept,) = EXAMPLE.glob(f"*/{NEWEST}*.jsonl")
    page_px = 1100
    draw(page, report_of(folder / "run.html", RecordFile(kept).load().records), "report-run.png", page_px, 1120)
    few = suite(3, session_count=6)
    slower = suite(3, session_count=6, slower=1.09)
    result = compare_sides(sides_of(few), sides_of(slower))
    explained = [
        structs.replace(one, kernels=KERNELS) if one.verdict is Verdict.SLOWER else one for one in result.cases
    ]
    gate = report_of(folder / "gate.html", slower, export_comparison(replace(result, cases=explained)))
    draw(page, gate, "report-gate.png", page_px, 760)
    wrong = f"document.querySelector('article[id$=\"{'-'.join(WRONG_CASE)}-float32-untuned\"]')"
    draw_part(page, gate, "report-wrong.png", page_px, wrong)
    draw(page, report_of(folder / "suite.html", suite(7, 3)), "report-suite.png", page_px, 1500)
    decodes = RecordFile(CONTEXT_RUN).load().records
    curve = report_of(folder / "context.html", decodes, files=PageFiles((CONTEXT_RUN,), ()))
    draw_part(page, curve, "llm-context.png", page_px, "document.querySelector('.context')")


def draw_roofline(page: Page, file: Path) -> None:
    """Draw a made-up case on two paths below what its device can do."""
    records = (one for one in suite(2, bad=False) if one.model == "resnet18" and one.case.endswith("float32-untuned"))
    profiles = {record.path: profile_of(record) for record in records}
    plot_roofline([profiles["texture"], profiles["opencl"]], file)
    draw(page, file, "roofline.png", 1000, 760)


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary, browser(Path(temporary, "home")) as page:
        page.call("Emulation.setScrollbarsHidden", hidden=True)
        made_up, findings = Path(temporary, "example"), Path(temporary, "findings")
        made_up.mkdir()
        findings.mkdir()
        watch_kernels(history := example(), made_up)
        write_site(history, made_up, "graphs.html", made_up)
        write_site(load(EXAMPLE), findings, "graphs.html", EXAMPLE)
        draw(page, made_up / "index.html", "page.png", 980)
        draw(page, made_up / "charts.html", "charts.png", 980, 780)
        (kernels,) = made_up.glob("kernels-*.html")
        draw(page, kernels, "history-kernels.png", 1100, 1060)
        draw(page, findings / "index.html", "findings.png", 1280)
        draw_roofline(page, Path(temporary, "roofline.html"))
        draw_reports(page, Path(temporary))
    SOURCES.write_text(f"{digest()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
