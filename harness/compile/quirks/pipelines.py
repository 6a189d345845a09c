"""Pipelines of TIR passes for Adreno that no build of TVM's own can use."""

from __future__ import annotations

from harness.base.failures import InvalidKernel
from harness.compile.compiler.compat import opencl_source
from harness.compile.paths.base import Workaround
from harness.compile.paths.kernels import check_images
from harness.compile.quirks.base import ProbeAnswer, Quirk
from harness.compile.quirks.sample import conv, lower, texture_target


def _default_pipeline(*_applied: Workaround) -> ProbeAnswer:
    """Ask for the target's default pipeline, as `tirx.build` does."""
    from tvm import tirx

    pipeline = tirx.get_default_tir_pipeline(texture_target())
    if isinstance(pipeline, tuple):
        return ProbeAnswer.of(False, f"the pipeline is a tuple of {len(pipeline)}")
    return ProbeAnswer.of(True, f"the pipeline is one {type(pipeline).__name__}, the build unpacks three")


def _built_by_default(*applied: Workaround) -> ProbeAnswer:
    """Build an image kernel with the default argument and look at its source."""
    from tvm import relax

    return accesses_images(relax.build(lower(conv(), applied), texture_target(), relax_pipeline=None))


def accesses_images(executable: object) -> ProbeAnswer:
    """PRESENT if a built kernel does not access its images as it declares them."""
    try:
        check_images(opencl_source(executable))
    except InvalidKernel as invalid:
        return ProbeAnswer.of(True, invalid.message)
    return ProbeAnswer.of(False, "the image kernels are accessed as they are declared")


QUIRKS = (
    Quirk(
        "tir-pipeline-tuple",
        "the Adreno TIR pipeline lacks the host and device passes, so every build with it raises TypeError",
        upstream="python/tvm/s_tir/backend/adreno/pipeline.py; the triple came with apache/tvm #19581",
        workaround="register the pipeline's passes together with the finalising passes that all targets share",
        paths=("opencl", "texture", "clml"),
        probe=_default_pipeline,
        essential=True,  # and `harness.compile.compiler.passes.tir_pipeline` registers passes so, so there is no edit
    ),
    Quirk(
        "default-tir-pipeline",
        "relax.build's default tir_pipeline leaves out the texture passes and silently writes invalid image kernels",
        upstream='python/tvm/relax/vm_build.py: build(tir_pipeline="default") never asks for the target\'s own '
        "pipeline",
        workaround="name the target's own pipeline; every built kernel is checked for images that are accessed as "
        "declared",
        paths=("texture",),
        probe=_built_by_default,
        essential=True,  # and the paths always build with the Adreno passes, so there is no edit
    ),
)
