"""Transposed convolutions that stay on OpenCL have been converted to a layout that OpenCL's path cannot legalise."""

from __future__ import annotations

from harness.compiler.passes import Passes, insert_before
from harness.paths.workaround import Edits, edit_relax
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.clml_sample import conv_transpose, network, parts


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a transposed convolution of float64, which is not offloaded, and legalise it."""
    import tvm
    from tvm import relax

    mod = parts(network(lambda emit, x: emit(conv_transpose(x)), dtype="float64"), ())
    passes = edit_relax([relax.transform.LegalizeOps()], applied)
    left = "relax.nn.conv2d_transpose" if _left(tvm.transform.Sequential(passes)(mod)) else ""
    return ProbeAnswer(Presence.PRESENT if left else Presence.ABSENT, f"not legalised: {left or 'nothing'}")


def _left(mod: object) -> bool:
    return "nn.conv2d_transpose(" in str(mod)


def convert_back(passes: Passes) -> Passes:
    """After the offload, weights of what stays go to the one layout that TVM can legalise."""
    from tvm import relax

    layouts = {"relax.nn.conv2d_transpose": ["NCHW", "IOHW"]}
    return insert_before(passes, "LegalizeOps", relax.transform.ConvertLayout(layouts))


QUIRK = Quirk(
    id="clml-transpose-layout",
    title="weights of all transposed convolutions become OIHW for CLML; those that stay on OpenCL cannot be legalised",
    upstream="relax/backend/adreno/clml.py: OpenCLMLOffLoad converts before it matches; "
    "relax/transform/legalize_ops/nn.py: conv2d_transpose takes IOHW only",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="those that stay are converted back to IOHW",
    edits=Edits(relax=convert_back),
)
