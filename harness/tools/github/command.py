"""`adreno-bench github`: one comment of a pull request, and annotations of its check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.base.failures import UsageError, reason_alone
from harness.base.terminal import tell
from harness.judge.report.screen import out, out_whole

AUTHOR = "github-actions[bot]"
"""Who writes with the token that a job is given."""
LARGEST_TEXT_BYTES = 4 << 20

github = typer.Typer(help="Tell a pull request what a job found: one comment, and annotations.", no_args_is_help=True)


@github.command()
def comment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Markdown, as `report --out FILE.md` writes it.")],
    name: Annotated[str, typer.Option(help="Name of the comment: each name has one, edited in place.")] = "report",
    author: Annotated[str, typer.Option(help="Account that the token is of: comments of others stay.")] = AUTHOR,
) -> None:
    """Write a file into one comment of the job's pull request, or replace the comment's text.

    GITHUB_TOKEN needs the permission `pull-requests: write`. Without a token or that permission, as in pull requests
    from forks, it says so and ends with 0: the job's summary has the same text.
    """
    from harness.tools.github.pull_request import Forbidden, job_pull_request

    try:
        if file.stat().st_size > LARGEST_TEXT_BYTES:
            raise UsageError(f"{file} is larger than {LARGEST_TEXT_BYTES >> 20} MB", hint="a comment has 60 kB")
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read {file}: {reason_alone(error)}", hint="`adreno-bench report --out FILE.md` writes it"
        ) from None
    there = job_pull_request()
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
    from harness.tools.github.annotations import annotation_lines

    for line in annotation_lines(read_comparison(file)):
        out_whole(line)
