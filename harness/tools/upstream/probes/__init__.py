"""Probes of the known defects of TVM: each asks the installed TVM whether it has one.

A probe builds the smallest network that shows the defect. It takes the quirks whose workarounds are applied, none for
TVM as it is. It is cheap, but it may raise or crash, so `harness.tools.upstream.quirk_probes` runs it in a process of
its own.
"""

from __future__ import annotations

from harness.tools.upstream.probes import (
    clml,
    constants,
    fusions,
    importer,
    kernel_names,
    layouts,
    misreadings,
    pipelines,
    schedules,
    texels,
)
from harness.tools.upstream.probes.sample import Probe

PROBES: dict[str, Probe] = {
    **pipelines.PROBES,
    **misreadings.PROBES,
    **importer.PROBES,
    **constants.PROBES,
    **layouts.PROBES,
    **kernel_names.PROBES,
    **schedules.PROBES,
    **fusions.PROBES,
    **texels.PROBES,
    **clml.PROBES,
}
"""The probe of each quirk, by its id."""
