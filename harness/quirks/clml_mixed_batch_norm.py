"""Mixed precision keeps batch norms in float32, between convolutions of float16."""

from __future__ import annotations

from typing import Any

from harness.cases.case import Precision
from harness.paths.workaround import Edits, edit_model
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.clml_sample import batch_norm, conv, network, offloaded


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition convolution, batch norm and activation in mixed precision."""
    import tvm
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.nn.relu(emit(batch_norm(emit, emit(conv(x)))))))
    convert = [relax.transform.ToMixedPrecision("float16"), relax.transform.FoldConstant()]
    found = offloaded(tvm.transform.Sequential(convert)(edit_model(mod, applied)), applied)
    state = Presence.ABSENT if set(found) == {"openclml.relu.bias.nn.conv2d"} else Presence.PRESENT
    return ProbeAnswer(state, f"one block becomes {', '.join(found) or 'nothing'}")


def fold_first(mod: Any) -> Any:
    """Fold batch norms into the convolutions before them, as TVM's offload does later, while all is float32."""
    import tvm
    from tvm import relax

    return tvm.transform.Sequential(
        [relax.transform.Normalize(), relax.transform.FoldBatchnormToConv2D(), relax.transform.FoldConstant()]
    )(mod)


QUIRK = Quirk(
    id="clml-mixed-batch-norm",
    title="batch norms stay in float32 when a network is converted, so each block is cut into parts with casts between "
    "them; a batch norm that is in float16 already stops FoldBatchnormToConv2D (TypeError)",
    upstream="relax.transform.ToMixedPrecision; "
    "python/tvm/relax/transform/fold_batch_norm_to_conv2d_for_inference.py adds a float32 epsilon",
    since="0.25",
    paths=("clml",),
    precisions=(Precision.FLOAT16, Precision.FLOAT16_ACC32),
    probe=probe,
    workaround="batch norms are folded into convolutions before the network is converted",
    edits=Edits(model=fold_first),
)
