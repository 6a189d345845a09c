"""The layout pass takes a dropout's pair of results for a single tensor."""

from __future__ import annotations

from typing import Any

from harness.compiler.compat import rewrite_main
from harness.paths.workaround import Edits
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import dropout, lowers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower a convolution and a dropout."""
    return lowers(dropout(), applied, "a dropout")


def without_dropout(mod: Any) -> Any:
    """For inference, as TVM legalises it on every path: the first result is the input, the second a mask of ones."""
    from tvm import relax
    from tvm.relax.dpl import is_op, is_tuple_get_item, wildcard

    data = wildcard()
    result = is_tuple_get_item(is_op("relax.nn.dropout")(data))

    def replace(item: Any, matched: Any) -> Any:
        return matched[data] if item.index == 0 else relax.op.ones_like(matched[data])

    return rewrite_main(mod, result, replace)


QUIRK = Quirk(
    id="dropout-layout",
    title="a dropout has two results, the layout pass expects one: `Expected nested to match tuple`",
    upstream="src/relax/op/nn/nn.cc: relax.nn.dropout has InferLayoutUnaryEwise, which is of operators with one result",
    since="0.25",
    paths=("texture", "clml"),
    probe=probe,
    workaround="dropouts, which do nothing in inference, are taken out of the model",
    edits=Edits(model=without_dropout),
)
