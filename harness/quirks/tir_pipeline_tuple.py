"""The Adreno TIR pipeline is not the triple that TVM's build unpacks."""

from __future__ import annotations

from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import texture_target


def probe(*_applied: Quirk) -> ProbeAnswer:
    """Ask for the target's default pipeline, as `tirx.build` does."""
    from tvm import tirx

    pipeline = tirx.get_default_tir_pipeline(texture_target())
    if isinstance(pipeline, tuple):
        return ProbeAnswer(Presence.ABSENT, f"the pipeline is a tuple of {len(pipeline)}")
    return ProbeAnswer(Presence.PRESENT, f"the pipeline is one {type(pipeline).__name__}, the build unpacks three")


QUIRK = Quirk(
    id="tir-pipeline-tuple",
    title="the Adreno TIR pipeline lacks the host and device passes, so every build with it raises TypeError",
    upstream="python/tvm/s_tir/backend/adreno/pipeline.py; the triple came with apache/tvm #19663",
    since="0.25",
    paths=("opencl", "texture", "clml"),
    essential=True,
    probe=probe,
    workaround="register the pipeline's passes together with the finalising passes that all targets share",
)
"""Its workaround is how `harness.compiler.passes.tir_pipeline` registers passes, so there is no edit."""
