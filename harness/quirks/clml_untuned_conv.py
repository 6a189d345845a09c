"""Convolutions without activation never use the tuning cache."""

from __future__ import annotations

import re

from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.clml_sample import runtime_source

_CREATE = re.compile(r"CLML_CALL\(clCreateMLOpConvolutionForwardQCOM,(.*?)\);", re.DOTALL)


def probe(*_applied: Quirk) -> ProbeAnswer:
    """Look what TVM's runtime passes for the tuning cache."""
    calls = _CREATE.findall(runtime_source())
    if not calls:
        return ProbeAnswer(Presence.CANNOT_TELL, "this TVM does not ship the source of its CLML runtime")
    passed = calls[0].rpartition(",")[2].strip()
    return ProbeAnswer(
        Presence.PRESENT if passed == "nullptr" else Presence.ABSENT, f"the tuning cache is given as {passed}"
    )


QUIRK = Quirk(
    id="clml-untuned-conv",
    title="convolutions without activation and batch norm are created without the tuning cache, tuned or not",
    upstream="clml_runtime.cc: CreateConvolution2DLayer, clCreateMLOpConvolutionForwardQCOM(…, nullptr)",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="none; the offload report counts them, so that a tuned run is not taken for more than it is",
)
