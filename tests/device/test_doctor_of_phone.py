"""The doctor at the virtual phone, with a session on it; and the report for a bug that comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.tools.doctor.bundle import write_bundle
from harness.tools.doctor.device import PHONE_CHECKS, examine_device
from harness.tools.shared.finding import Condition

pytestmark = pytest.mark.device


def test_the_virtual_phone_is_fit(cache: Path, tmp_path: Path) -> None:
    findings = list(examine_device("virtual", cache))
    assert {finding.state for finding in findings} <= {Condition.OK, Condition.NOTE}
    whats = {finding.what for finding in findings}
    assert whats >= {*PHONE_CHECKS, "state", "runtime", "OpenCL library", "OpenCL", "extensions", "fp16", "images"}
    library = next(finding for finding in findings if finding.what == "OpenCL library")
    assert "OpenCL" in library.seen
    report = tmp_path / "report.txt"
    write_bundle(report, "virtual", findings, cache)
    text = report.read_text()
    for part in ("== findings", "ro.build.version.sdk 34", "Thermal Status: 0", "Current Battery Service state"):
        assert part in text
    assert str(Path.home()) not in text or str(Path.home()) == "/root"
