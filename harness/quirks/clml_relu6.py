"""The pattern for `clip` never matches, so that every ReLU6 cuts the graph."""

from __future__ import annotations

from typing import Any

from harness.paths.clml.patterns import ClmlEdits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.clml_sample import network, offloaded

_COMPOSITE = "openclml.relax.nn.relu6"
"""The runtime goes by how a name ends, and `nn.relu6` is an activation of CLML's."""


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a ReLU6."""
    from tvm import relax

    found = offloaded(network(lambda emit, x: emit(relax.op.clip(x, 0, 6))), applied)
    state = Presence.ABSENT if found else Presence.PRESENT
    return ProbeAnswer(state, f"of clip(x, 0, 6) are offloaded: {', '.join(found) or 'nothing'}")


def patterns() -> list[Any]:
    """A clip with its three arguments; as one more operator, because the code generator drops a clip that is fused."""
    from tvm.relax.backend.adreno.clml import clml_pattern_table
    from tvm.relax.dpl.pattern import is_op, wildcard

    check_unary = next(check for name, _, _, check in clml_pattern_table() if name == "openclml.relax.nn.relu")
    data = wildcard()

    def check_relu6(context: Any) -> bool:
        low, high = (getattr(bound, "value", None) for bound in list(context.matched_expr.args)[1:])
        return (low, high) == (0, 6) and bool(check_unary(context))

    return [(_COMPOSITE, is_op("relax.clip")(data, wildcard(), wildcard()), {"lhs": data}, check_relu6)]


QUIRK = Quirk(
    id="clml-relu6",
    title="relax.clip has three arguments and its patterns one, so ReLU6 is never offloaded and networks fall apart",
    upstream="relax/backend/adreno/clml.py: is_op('relax.clip')(x); if it matched, codegen.cc would drop it and "
    "clml_runtime.cc would look for a name that is exactly `clip`",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="a pattern of ours offloads clip(x, 0, 6) as the activation relu6, which the runtime has",
    edits=ClmlEdits(patterns=patterns),
)
"""Other bounds stay on OpenCL: no composite's name can reach the runtime's clip."""
