"""Labelled data: how many inputs a path gets right, or what a person's function makes of its outputs."""

from harness.base.tool import CacheKind, Tool

TOOL = Tool(
    "labelled",
    labelled="harness.tools.labelled.data:open_data",
    probes=("harness.tools.labelled.probes:make_probe",),
    record_parts={"top_one": "harness.tools.labelled.part:TopOne", "score": "harness.tools.labelled.part:Score"},
    part_views={"top_one": "harness.tools.labelled.view:TOP_ONE", "score": "harness.tools.labelled.view:SCORE"},
    cache_kinds=(CacheKind("pictures", "labelled pictures as the inputs of a model"),),
)
