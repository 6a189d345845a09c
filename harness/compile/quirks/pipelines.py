"""Pipelines of TIR passes for Adreno that no build of TVM's own can use."""

from __future__ import annotations

from harness.compile.quirks.base import Quirk

QUIRKS = (
    Quirk(
        "tir-pipeline-tuple",
        "the Adreno TIR pipeline lacks the host and device passes, so every build with it raises TypeError",
        upstream="python/tvm/s_tir/backend/adreno/pipeline.py; the triple came with apache/tvm #19581",
        workaround="register the pipeline's passes together with the finalising passes that all targets share",
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
        essential=True,  # and the paths always build with the Adreno passes, so there is no edit
    ),
)
