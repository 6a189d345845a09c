"""Probes of pipelines of TIR passes."""

from __future__ import annotations

from defects.presence import presence
from defects.sample import Probe, conv, lower, texture_target
from harness.base.failures import InvalidKernel
from harness.compile.compiler.compat import opencl_source
from harness.compile.paths.base import Workaround
from harness.compile.paths.kernels import check_images
from harness.tools.upstream.probe_answer import ProbeAnswer


def _default_pipeline(*_applied: Workaround) -> ProbeAnswer:
    """Ask for the target's default pipeline, as `tirx.build` does."""
    from tvm import tirx

    pipeline = tirx.get_default_tir_pipeline(texture_target())
    if isinstance(pipeline, tuple):
        return presence(False, f"the pipeline is a tuple of {len(pipeline)}")
    return presence(True, f"the pipeline is one {type(pipeline).__name__}, the build unpacks three")


def _built_by_default(*applied: Workaround) -> ProbeAnswer:
    """Build an image kernel with the default argument and look at its source."""
    from tvm import relax

    return accesses_images(relax.build(lower(conv(), applied), texture_target(), relax_pipeline=None))


def accesses_images(executable: object) -> ProbeAnswer:
    """PRESENT if a built kernel does not access its images as it declares them."""
    try:
        check_images(opencl_source(executable))
    except InvalidKernel as invalid:
        return presence(True, invalid.message)
    return presence(False, "the image kernels are accessed as they are declared")


PROBES: dict[str, Probe] = {
    "tir-pipeline-tuple": _default_pipeline,
    "default-tir-pipeline": _built_by_default,
}
