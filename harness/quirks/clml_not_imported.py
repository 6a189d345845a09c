"""TVM's pipeline uses a module that nothing imports."""

from __future__ import annotations

from harness.quirks.base import Presence, ProbeAnswer, Quirk


def probe(*_applied: Quirk) -> ProbeAnswer:
    """Read whether the Adreno backend imports its CLML module."""
    import inspect

    from tvm.relax.backend import adreno

    imported = "clml" in inspect.getsource(adreno)
    return ProbeAnswer(
        Presence.ABSENT if imported else Presence.PRESENT,
        f"relax/backend/adreno/__init__.py {'mentions' if imported else 'does not mention'} clml",
    )


QUIRK = Quirk(
    id="clml-not-imported",
    title="the pipeline of target qcom/adreno-opencl-clml raises AttributeError: relax.backend.adreno has no clml",
    upstream="relax/backend/adreno/__init__.py; pipeline.py: library_dispatch_passes",
    since="0.25",
    paths=("clml",),
    essential=True,
    probe=probe,
    workaround="the module is imported before the pipeline is asked for",
)
"""Its workaround is the import in `harness.paths.clml.register`, so there is no edit."""
