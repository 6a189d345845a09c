"""Reports of known defects for TVM's issue tracker: one file a defect, in TVM's own template.

A file of `reports/` holds facts between two lines of `---`, then a program in Python. A fact is a line, which indented
lines continue. `expected`, `actual`, `cause` and `fix` are sections of the template (`report_parts/report.txt`). A
defect of one path affects that path's target, unless `affects` names others.

The program is `reproduce.py`: it imports TVM and numpy alone, and says whether the defect is `present`. The verdict is
added at its end, which prints `defect present` or `defect absent` and exits with 1 or 0. `# include <NAME>` stands for
a file of `report_parts/`. What its programs need is a docstring at the beginning of such a file, which becomes part of
the program's own.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path

from device_runner.files import scratch_folder, write_whole
from device_runner.names import load
from harness.base.process import run_to_end
from harness.base.tables import counted, markdown_table
from harness.base.tool import tools
from harness.compile.compiler.releases import RELEASES
from harness.compile.quirks import QUIRKS, require_known
from harness.compile.quirks.base import Quirk
from harness.tools.shared.markdown import unpadded_markdown
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

TIMEOUT_S = 120.0
"""A reproducer takes 3 to 10 s, most of it for importing TVM."""
SCRIPT, REPORT, TABLE = "reproduce.py", "report.md", "README.md"
NO_REPORT = "no report yet"
_FACTS = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENVIRONMENT = "### Environment\n"
_INCLUDE = re.compile(r"^# include <(\w+)>\n", re.MULTILINE)
_WITH_PACKAGE = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
_ENDS = {(1, "defect present"): Presence.PRESENT, (0, "defect absent"): Presence.ABSENT}
"""Presence by exit code and last line. Anything else is a failure of the reproducer."""


MAIN = "5d4dc87213 of 2026-08-22"
"""Newest stored commit of TVM's main branch that was built. It is older than 0.27.0.post1."""
_LEGEND = f"""Made by `adreno-bench quirks --report all`. A release's column says what the program of the report found,
`main` what it found with {MAIN}, built from source. `unchanged`: there, the program could not be run, and the
files that it judges are those of 0.26.0. `networks`: [networks of the zoo](quirk-hits.md) in which the workaround
changes what is built. [Bisections](quirk-bisections.md) have the first bad commits. `none found`: nothing in a stored
copy of TVM's issues and pull requests."""


class Severity(str, Enum):
    """What a defect does to its users, the worst first."""

    WRONG = "silent wrong result"
    DEVICE = "fails on the device"
    COMPILER = "does not compile"
    COST = "costs time"
    MINOR = "minor"

    @property
    def plural(self) -> str:
        """The same of several defects."""
        return {
            Severity.WRONG: "silent wrong results",
            Severity.DEVICE: "fail on the device",
            Severity.COMPILER: "do not compile",
            Severity.COST: "cost time",
            Severity.MINOR: "minor",
        }[self]


@dataclass(frozen=True)
class QuirkReport:
    """One defect, as TVM's maintainers read it."""

    title: str
    severity: Severity
    first_bad: str
    """First commit with the defect, or `not bisected`."""
    main: str
    """State on TVM's main branch at `MAIN`, empty if it was not run."""
    upstream: str
    """Issue, pull request or commit of TVM that deals with it, or `none found`."""
    text: str
    """The report, in TVM's template, without the releases."""
    networks: str = ""
    """Number of networks of the zoo that it hits; empty if they were not counted."""

    @property
    def script(self) -> str:
        """Source of `reproduce.py`."""
        blocks = _PYTHON.findall(self.text)
        assert len(blocks) == 1, "a report has one block of Python"
        return str(blocks[0])

    def page(self, states: Mapping[str, ProbeAnswer]) -> str:
        """Return the report with what `reproduce.py` found, by release of TVM."""
        rows = [(release, answer.state.value, answer.seen) for release, answer in states.items()]
        tried = markdown_table(rows, ("apache-tvm", "defect", "what the program saw"))
        facts = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}. {_pinned(states)}\n\n"
        facts += f"First bad commit: {self.first_bad}. Known upstream: {self.upstream}."
        facts += f" Main ({MAIN}): {self.main}." if self.main else " Not run on main."
        return f"# [Bug] {self.title}\n\n" + self.text.replace(_ENVIRONMENT, f"{_ENVIRONMENT}\n{tried}\n\n{facts}\n", 1)


def _pinned(releases: Iterable[str]) -> str:
    """Return how to install the newest release: apache-tvm 0.27.0.post1 crashes with newer releases of tvm-ffi."""
    tried = [RELEASES[name] for name in releases if name in RELEASES]
    return f"`pip install {' '.join(tried[-1].pins)} numpy`." if tried else ""


def reported_quirks(ids: Collection[str] = ()) -> list[Quirk]:
    """Return the quirks of these ids, of the main job and of tools; without ids every one. Raises UsageError."""
    others = (quirk for tool in tools() if tool.quirks for quirk in load(tool.quirks))
    quirks = (*QUIRKS, *others)
    require_known(ids, quirks)
    return [quirk for quirk in quirks if not ids or quirk.id in ids]


def report_of(quirk: Quirk) -> QuirkReport | None:
    """Return the report of a quirk, None if it has none yet."""
    folder = files("harness.tools.upstream")
    packages = [tool.quirks.partition(":")[0].rpartition(".")[0] for tool in tools() if tool.quirks]
    places = (place / "reports" / f"{quirk.id}.md" for place in (folder, *map(files, packages)))
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return None

    def part(name: str) -> str:
        return (folder / "report_parts" / f"{name}.txt").read_text(encoding="utf-8")

    text = file.read_text(encoding="utf-8")
    head = _FACTS.match(text)
    assert head, f"{quirk.id}.md begins with facts between two lines of ---"
    facts = {"affects": f"`qcom/adreno-opencl-{quirk.paths[0]}`", **_facts(head[1])}
    (program,) = _PYTHON.findall(text, head.end())
    while _INCLUDE.search(program):  # a part may include another
        program = _INCLUDE.sub(lambda include: part(include[1]), program)
    program = program.replace('"""\n\n"""', "\n\n") + part("verdict")
    triage = "\n".join(f"* {label}" for label in ("needs-triage", "type: bug", facts.get("label")) if label)
    return QuirkReport(
        facts["title"],
        Severity(facts["severity"]),
        facts.get("first bad", "not bisected"),
        facts.get("main", ""),
        facts.get("upstream", "none found"),
        part("report").format(program=program, triage=triage, **facts),
        facts.get("networks", ""),
    )


def _facts(head: str) -> dict[str, str]:
    """Return the facts of a report by name."""
    facts: dict[str, str] = {}
    for line in head.splitlines():
        if line.startswith("  ") or not line:
            facts[next(reversed(facts))] += f"\n{line[2:]}"
        else:
            name, _, fact = line.partition(": ")
            facts[name] = fact
    return facts


def reproduce(script: str, python: Path, timeout_s: float = TIMEOUT_S, *, package: Path | None = None) -> ProbeAnswer:
    """Run a `reproduce.py` with this interpreter's TVM, or that in the folder `package`, in a folder of its own."""
    with scratch_folder() as folder:
        file = folder / SCRIPT
        file.write_text(script, encoding="utf-8")
        try:
            run = [str(python), "-I", *(["-c", _WITH_PACKAGE, str(package)] if package else []), str(file)]
            done = run_to_end(run, timeout_s, cwd=folder)
        except subprocess.TimeoutExpired:
            return ProbeAnswer(Presence.CANNOT_TELL, f"it did not end within {timeout_s:.0f} s")
    answer = answer_of(done.returncode, done.stdout, done.stderr)
    return ProbeAnswer(answer.state, answer.seen.replace(str(package), "TVM") if package else answer.seen)


def answer_of(code: int, printed: str, complaint: str = "") -> ProbeAnswer:
    """Return what the program of a report found, by its exit code, what it printed, and what it complained of."""
    lines = printed.strip().splitlines() or [""]
    state = _ENDS.get((code, lines[-1]), Presence.CANNOT_TELL)
    if state is Presence.CANNOT_TELL:
        return ProbeAnswer(state, f"exit code {code}: {(complaint.strip().splitlines() or lines)[-1]}")
    return ProbeAnswer(state, lines[-2].strip() if len(lines) > 1 else "")


def write_report(report: QuirkReport, states: Mapping[str, ProbeAnswer], folder: Path) -> None:
    """Write `reproduce.py` and `report.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / SCRIPT, report.script)
    write_whole(folder / REPORT, report.page(states))


def report_table(
    reports: Sequence[tuple[Quirk, QuirkReport | None]], states: Mapping[str, Mapping[str, ProbeAnswer]]
) -> str:
    """Return a page in Markdown with all quirks in a table, the worst first.

    Args:
        reports: Each quirk and its report.
        states: What `reproduce.py` found, by release and id.
    """
    ranks = list(Severity)

    def rank(pair: tuple[Quirk, QuirkReport | None]) -> int:
        return ranks.index(pair[1].severity) if pair[1] else len(ranks)

    rows = []
    for quirk, report in sorted(reports, key=rank):
        tried = [answers[quirk.id].state.value if quirk.id in answers else "" for answers in states.values()]
        fields = (report.main, report.first_bad, report.upstream) if report else ("", "", "")
        what = (report.severity.value, report.networks) if report else (NO_REPORT, "")
        rows.append((f"`{quirk.id}`", *what, *tried, *fields))
    numbers = Counter(report.severity if report else None for _, report in reports)
    texts = [counted(numbers[severity], severity.value, severity.plural) for severity in ranks if numbers[severity]]
    count = ", ".join([*texts, *([f"{numbers[None]} {NO_REPORT}"] if numbers[None] else [])])
    headers = ("quirk", "severity", "networks", *states, "main", "first bad commit", "upstream")
    table = unpadded_markdown(rows, headers)
    return "\n\n".join(("# Defects of TVM", f"{count}. {_LEGEND}", table)) + "\n"
