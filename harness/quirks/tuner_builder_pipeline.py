"""The tuner's builder takes the generic TIR pipeline and writes kernels with unusable images."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.compiler.compat import opencl_source
from harness.compiler.tuner import without_intrinsics
from harness.failures import InvalidKernel
from harness.paths.kernels import check_images
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import texture_target
from harness.quirks.tuner_sample import PATHS, designs, into_image


def probe(*applied: Quirk) -> ProbeAnswer:
    """Build a function that writes an image as the tuner's builder does, and look at its source."""
    with without_intrinsics():
        from tvm.s_tir.meta_schedule.builder import local_builder

        target = texture_target()
        built = local_builder.default_build(_bound(target), target, None)
    try:
        check_images(opencl_source(SimpleNamespace(mod=built)))
    except InvalidKernel as invalid:
        return ProbeAnswer(Presence.PRESENT, invalid.message)
    return ProbeAnswer(Presence.ABSENT, "the image kernels are accessed as they are declared")


def _bound(target: Any) -> Any:
    """A function that writes an image, with a schedule."""
    return designs(into_image(), target)[0].mod


QUIRK = Quirk(
    id="tuner-builder-pipeline",
    title="MetaSchedule's builder leaves out the texture passes, so that each candidate with an image fails to build",
    upstream="python/tvm/s_tir/meta_schedule/builder/local_builder.py, default_build",
    since="0.25",
    paths=PATHS,
    probe=probe,
    workaround="candidates are built by the path that builds the network, passes and workarounds included "
    "(harness/build/candidate.py)",
)
"""No edit: the builder is not used."""
