"""Requests of commands that read networks alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.base.failures import UsageError

if TYPE_CHECKING:
    from harness.measure.workbench import Request


def without_programs(request: Request) -> Request:
    """Return the request for networks, for a command that reads nothing else. Raises UsageError if it has none."""
    from harness.base.model import ProgramModel

    programs = {model.name for model in request.suite.models if isinstance(model, ProgramModel)}
    cases = [case for case in request.cases if case.model not in programs]
    if not cases:
        names = ", ".join(dict.fromkeys(case.model for case in request.cases))
        raise UsageError(f"this command cannot read programs such as {names}", hint="choose a case of a network")
    return replace(request, cases=cases)
