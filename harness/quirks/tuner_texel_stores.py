"""The tuner's rules store single numbers where an image takes whole texels."""

from __future__ import annotations

from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import texture_target
from harness.quirks.tuner_sample import PATHS, designs, into_image


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look whether any of the rules' designs for a function that writes an image stores a vector."""
    made = designs(into_image(), texture_target())
    if any("T.vectorized" in design.mod.script() for design in made):
        return ProbeAnswer(Presence.ABSENT, "the lanes of a texel are stored as one vector")
    return ProbeAnswer(Presence.PRESENT, f"none of {len(made)} designs stores a vector into the image")


QUIRK = Quirk(
    id="tuner-texel-stores",
    title="MetaSchedule's rules store single numbers into images: each such candidate is wrong, and kept if it is fast",
    upstream="src/s_tir/meta_schedule/schedule_rule/schedule_rule.cc, DefaultCUDA, which OpenCL targets get as well",
    since="0.25",
    paths=PATHS,
    probe=probe,
    workaround="convolutions in NCHW4c have a schedule of ours (harness/schedules/texel_conv.py), and what else writes "
    "an image has no candidates; each candidate is judged against LLVM before it is timed",
)
"""No edit: it is a space of the tuner's own."""
