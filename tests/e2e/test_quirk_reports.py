"""The quirks' probes and the programs of their reports, with the other releases of TVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import reproducers

from harness.base.case import Precision
from harness.compile.compiler.releases import RELEASES, tvm_version
from harness.compile.quirks import QUIRKS, quirks_of
from harness.tools.shared.environment import InstallFailure
from harness.tools.shared.revisions import revision
from harness.tools.shared.toolchain import CommandLine
from harness.tools.upstream.probe_answer import Presence
from harness.tools.upstream.report import report_of

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]

OTHERS = [name for name in RELEASES if name != tvm_version()]
CONFIG = Path("asv.tvm.conf.json")
PROGRAMS = {quirk.id: report.script for quirk in QUIRKS if (report := report_of(quirk))}
ENDS = {(1, "defect present"): "present", (0, "defect absent"): "absent"}
"""What a program's exit code and last line say."""


@pytest.fixture(scope="module", params=OTHERS)
def line(request: pytest.FixtureRequest, cache: Path, sidecar_cache: Path) -> CommandLine:
    """The command line with another release, whose environment stays from run to run."""
    (sidecar_cache / "toolchains").mkdir(exist_ok=True)
    if not (cache / "toolchains").exists():
        (cache / "toolchains").symlink_to(sidecar_cache / "toolchains")
    try:
        return CommandLine.of(revision(request.param, CONFIG, cache), cache, print)
    except InstallFailure as failure:
        if "No matching distribution" in failure.evidence:
            pytest.skip(f"the release cannot be had here: {failure}")
        raise


@pytest.fixture(scope="module")
def probes(line: CommandLine) -> dict[str, str]:
    code, text, said = line.call(["quirks", "--json"], 1800.0)
    assert code == 0, said
    return {row["id"]: row["probe"] for row in json.loads(text)}


@pytest.fixture(scope="module")
def ends(line: CommandLine) -> dict[str, tuple[int, str]]:
    """Exit code and last line of each report's program, by quirk."""
    return reproducers.answers_of(line.python, PROGRAMS)


@pytest.mark.parametrize("name", [quirk.id for quirk in QUIRKS])
def test_probe_program_and_table_agree(
    name: str, line: CommandLine, probes: dict[str, str], ends: dict[str, tuple[int, str]]
) -> None:
    (quirk,) = quirks_of([name])
    affected = any(quirk.affects(line.revision.name, path, one) for path in quirk.paths for one in Precision)
    assert Presence(probes[name]) is (Presence.PRESENT if affected else Presence.ABSENT)
    if name in PROGRAMS:
        assert ENDS.get(ends[name], ends[name]) == probes[name]
