"""Reports for TVM's issue tracker: each stands alone, and its program agrees with the quirk's probe."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import reproducers
from defects import PROBES
from typer.testing import CliRunner

from harness.cli import app
from harness.compile.compiler.releases import tvm_version
from harness.compile.quirks import Quirk
from harness.tools.upstream.probe_answer import Presence
from harness.tools.upstream.report import (
    SCRIPT,
    TABLE,
    report_of,
    reported_quirks,
    reproduce,
)

pytestmark = pytest.mark.rest

QUIRKS = reported_quirks()
REPORTS = {quirk.id: report for quirk in QUIRKS if (report := report_of(quirk))}


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[int, str]]:
    return reproducers.answers({name: report.script for name, report in REPORTS.items()})


@pytest.mark.long
@pytest.mark.parametrize("quirk", [q for q in QUIRKS if q.id in REPORTS], ids=lambda quirk: quirk.id)
def test_a_program_agrees_with_the_probe(quirk: Quirk, answers: dict[str, tuple[int, str]]) -> None:
    present = PROBES[quirk.id]().state is Presence.PRESENT
    assert answers[quirk.id] == ((1, "defect present") if present else (0, "defect absent"))


def test_the_command_writes_what_a_stranger_can_run(tmp_path: Path) -> None:
    name = "vectorized-alloc"
    done = CliRunner().invoke(app, ["quirks", "--report", name, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert row["releases"][tvm_version()]["state"] == "present"
    assert (
        reproduce((tmp_path / "out" / name / SCRIPT).read_text("utf-8"), Path(sys.executable)).state.value == "present"
    )
    assert f"`{name}`" in (tmp_path / "out" / TABLE).read_text("utf-8")
