"""Probes of the known defects of TVM: each asks the installed TVM whether it has one.

A probe builds the smallest network that shows the defect. It takes the quirks whose workarounds are applied, none for
TVM as it is. The programs of the reports find the same without workarounds.
"""

from __future__ import annotations

from defects import (
    clml,
    constants,
    fusions,
    importer,
    kernel_source,
    layouts,
    llm,
    misreadings,
    pipelines,
    schedules,
    texels,
    tuner,
)
from defects.sample import Probe

PROBES: dict[str, Probe] = {
    **pipelines.PROBES,
    **misreadings.PROBES,
    **importer.PROBES,
    **constants.PROBES,
    **layouts.PROBES,
    **kernel_source.PROBES,
    **schedules.PROBES,
    **fusions.PROBES,
    **texels.PROBES,
    **clml.PROBES,
    **tuner.PROBES,
    **llm.PROBES,
}
"""The probe of each quirk, by its id."""
