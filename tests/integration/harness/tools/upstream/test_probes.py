"""Whether the installed TVM is as the quirks say."""

from __future__ import annotations

import pytest
from defects import PROBES

from harness.compile.compiler.releases import tvm_version
from harness.compile.paths.base import NO_EDITS
from harness.compile.quirks import Quirk
from harness.tools.upstream.probe_answer import Presence
from harness.tools.upstream.report import reported_quirks

pytestmark = pytest.mark.rest

QUIRKS = reported_quirks()
FIXED = [q for q in QUIRKS if q.edits != NO_EDITS]


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.id)
def test_probe_agrees_with_the_releases(quirk: Quirk) -> None:
    affected = any(quirk.affects(tvm_version(), path, p) for path in quirk.paths for p in quirk.precisions)
    assert PROBES[quirk.id]().state is (Presence.PRESENT if affected else Presence.ABSENT)


@pytest.mark.parametrize("quirk", FIXED, ids=lambda quirk: quirk.id)
def test_workaround_removes_the_defect(quirk: Quirk) -> None:
    assert PROBES[quirk.id](quirk).state is Presence.ABSENT


def test_every_quirk_has_a_probe() -> None:
    assert set(PROBES) == {quirk.id for quirk in QUIRKS}
