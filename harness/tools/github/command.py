"""`adreno-bench github`: one comment of a pull request, and annotations of its check: lines of output.

Source: docs.github.com, GitHub Actions, "Workflow commands": `::error title=TITLE::MESSAGE`, and how it is escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.base.failures import UsageError, reason_alone
from harness.base.tables import counted
from harness.base.terminal import tell
from harness.judge.report.screen import out, out_whole
from harness.judge.verdict import Verdict

if TYPE_CHECKING:
    from harness.judge.report.comparison import CaseComparison, ComparisonExport

AUTHOR = "github-actions[bot]"
"""Who writes with the token that a job is given."""
LARGEST_TEXT_BYTES = 4 << 20

github = typer.Typer(help="Report a job's results on its pull request: comment and annotations.", no_args_is_help=True)


@github.command()
def comment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Markdown, as `report --out FILE.md` writes it.")],
    name: Annotated[str, typer.Option(help="Name of the comment. Each name has one, edited in place.")] = "report",
    author: Annotated[str, typer.Option(help="Account of the token: comments by others stay.")] = AUTHOR,
) -> None:
    """Write a file into one comment of the job's pull request, or replace the text of that comment.

    GITHUB_TOKEN needs the permission `pull-requests: write`. Without a token or that permission, as in pull requests
    from forks, it prints that and exits with 0: the job's summary has the same text.
    """
    from harness.tools.github.pull_request import Forbidden, PullRequest

    try:
        if file.stat().st_size > LARGEST_TEXT_BYTES:
            raise UsageError(
                f"{file} is larger than {LARGEST_TEXT_BYTES >> 20} MB",
                hint="name a shorter one",
            )
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read {file}: {reason_alone(error)}", hint="`adreno-bench report --out FILE.md` writes it"
        ) from None
    there = PullRequest.of_job(os.environ)
    if isinstance(there, str):
        tell(f"no comment: {there}")
        return
    try:
        out(f"the comment is {there.put_comment(name, text, author)}")
    except Forbidden as refusal:
        tell(f"no comment: {refusal}; the job needs `permissions: pull-requests: write`, which forks do not have")


@github.command()
def annotate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Verdicts, as `compare --export-json` writes them.")],
) -> None:
    """Print annotations for GitHub Actions: an error for each wrong or broken case, a warning for each slower one.

    They need no token.
    """
    from harness.judge.report.comparison import read_comparison

    for line in annotation_lines(read_comparison(file)):
        out_whole(line)


MOST_OF_A_STEP = 10
"""Annotations of a kind that GitHub shows of one step."""
KINDS = {Verdict.WRONG: "error", Verdict.BROKEN: "error", Verdict.SLOWER: "warning", Verdict.FIXED: "notice"}


def annotation_lines(comparison: ComparisonExport) -> Iterator[str]:
    """Yield a line for each case that a reviewer should see, the worst first; a last one counts the others."""
    for kind in dict.fromkeys(KINDS.values()):
        cases = [case for case in comparison.worst_first if KINDS.get(case.verdict) == kind]
        room = MOST_OF_A_STEP if len(cases) <= MOST_OF_A_STEP else MOST_OF_A_STEP - 1
        yield from (_line(kind, _title(case), "; ".join(case.reasons) or case.case) for case in cases[:room])
        if rest := cases[room:]:
            yield _line(kind, f"adreno-bench: {counted(len(rest), 'other')}", ", ".join(case.case for case in rest))


def _title(case: CaseComparison) -> str:
    return f"adreno-bench: {case.case}{' as shipped' * case.as_shipped} is {case.verdict.value}"


def _line(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={_escape(title, ',:')}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    """Replace what would end a value: `%`, line ends, and for a property its separators."""
    for sign in f"%\r\n{more}":
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
