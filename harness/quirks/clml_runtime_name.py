"""TVM asks for its CLML runtime under a name that nothing registers."""

from __future__ import annotations

from harness.quirks.base import Presence, ProbeAnswer, Quirk


def probe(*_applied: Quirk) -> ProbeAnswer:
    """Read which name is asked for."""
    import inspect

    from tvm.relax.backend.adreno import clml

    source = inspect.getsource(clml.is_clml_runtime_enabled)
    state = Presence.PRESENT if "relax.op.is_openclml_runtime_enabled" in source else Presence.ABSENT
    return ProbeAnswer(state, f"is_clml_runtime_enabled() answers {clml.is_clml_runtime_enabled()}")


QUIRK = Quirk(
    id="clml-runtime-name",
    title="is_clml_runtime_enabled() asks for relax.op.is_openclml_runtime_enabled and so always answers False",
    upstream="relax/backend/adreno/clml.py: is_clml_runtime_enabled; codegen.cc registers "
    "relax.is_openclml_runtime_enabled",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="nothing here asks it; the loader of CLML modules and the device's extensions are looked up instead",
)
