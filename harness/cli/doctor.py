"""`adreno-bench doctor`: explain this machine."""

from __future__ import annotations

import typer

from harness.cli.options import AsJson
from harness.outcome import ExitCode


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(as_json: AsJson = False) -> None:
    """Check what a run needs, by doing it, and say how to mend what is missing."""
    import dataclasses
    import json

    from harness.artifact import cache_root
    from harness.cli.screen import out
    from harness.doctor import State, examine

    findings = []
    for finding in examine(cache_root()):
        findings.append(finding)
        if not as_json:
            out(f"{finding.state.value:8}{finding.what:16}{finding.seen}")
            if finding.fix:
                out(f"{'':24}fix: {finding.fix}")
    if as_json:
        out(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    if any(finding.state is State.MISSING for finding in findings):
        raise typer.Exit(ExitCode.RIG_FAILURE)
