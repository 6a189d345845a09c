"""Asks the installed TVM which known defects it has: by the program of each report, in a fork of its own.

TVM may crash. The answers of a release stay in the store.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from device_runner.failures import Failure
from device_runner.store import key_of
from harness.base.plan import Job
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.pool import Builder, Watcher
from harness.compile.compiler.releases import versions
from harness.compile.quirks import Quirk
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer
from harness.tools.upstream.report import NO_REPORT, SCRIPT, answer_of, report_of

LIMITS = Limits(build_s=120.0, build_memory_gb=8.0)
"""A program takes a second, or a few if it compiles a network; one that takes two minutes hangs."""
ANSWER = "answer.json"


def probe(job: dict[str, Any], out: Path) -> None:
    """Run the program of a report in this process, and leave its answer in a folder. Worker only."""
    program, printed, code = out / SCRIPT, io.StringIO(), 0
    program.write_text(job["script"], encoding="utf-8")
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(program), run_name="__main__")
    except SystemExit as end:
        code = int(end.code or 0)
    (out / ANSWER).write_text(json.dumps(asdict(answer_of(code, printed.getvalue()))), encoding="utf-8")


@contextlib.contextmanager
def probe_answers(
    quirks: Sequence[Quirk], cache: Path, watch: Watcher, limits: Limits = LIMITS
) -> Iterator[Iterator[ProbeAnswer]]:
    """Yield the answers in the order of the quirks, each as soon as it is there. Nothing that TVM does raises."""
    reports = [(quirk, report_of(quirk)) for quirk in quirks]
    with Builder(cache, limits, watch=watch) as builder:
        futures = [builder.begin(_job(quirk.id, report.script)) if report else None for quirk, report in reports]
        yield (
            _answer(future.result()) if future else ProbeAnswer(Presence.CANNOT_TELL, NO_REPORT) for future in futures
        )


def _job(quirk: str, script: str) -> Job:
    """Return the job that asks the installed TVM whether it has a known defect."""
    return Job("probe", key_of({"probe": script, **versions()}), f"probe of {quirk}", {"script": script})


def _answer(result: Answers | Artifact | Failure) -> ProbeAnswer:
    if isinstance(result, Failure):
        return ProbeAnswer(Presence.CANNOT_TELL, result.message)
    assert isinstance(result, Answers)
    return msgspec.json.decode((result.folder / ANSWER).read_bytes(), type=ProbeAnswer)
