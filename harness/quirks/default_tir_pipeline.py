"""`relax.build` takes the generic TIR pipeline for every target and writes kernels with unusable images."""

from __future__ import annotations

from harness.compiler.compat import opencl_source
from harness.failures import InvalidKernel
from harness.paths.kernels import check_images
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import conv, lower, texture_target


def probe(*applied: Quirk) -> ProbeAnswer:
    """Build an image kernel with the default argument and look at its source."""
    from tvm import relax

    executable = relax.build(lower(conv(), applied), texture_target(), relax_pipeline=None)
    try:
        check_images(opencl_source(executable))
    except InvalidKernel as invalid:
        return ProbeAnswer(Presence.PRESENT, invalid.message)
    return ProbeAnswer(Presence.ABSENT, "the image kernels are accessed as they are declared")


QUIRK = Quirk(
    id="default-tir-pipeline",
    title="relax.build's default tir_pipeline leaves out the texture passes and silently writes invalid image kernels",
    upstream='python/tvm/relax/vm_build.py: build(tir_pipeline="default") never asks for the target\'s own pipeline',
    since="0.25",
    paths=("texture",),
    essential=True,
    probe=probe,
    workaround="name the target's own pipeline; every built kernel is checked for images that are accessed as declared",
)
"""Its workaround is that the paths always build with the Adreno passes, so there is no edit."""
