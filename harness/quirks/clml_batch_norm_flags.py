"""A batch norm without centring or scaling is centred and scaled."""

from __future__ import annotations

from typing import Any

from harness.compiler.compat import type_of
from harness.compiler.passes import Passes, insert_before
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.clml_sample import batch_norm, network, parts


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a batch norm without scaling, and look whether that is still all that says so."""
    mod = network(lambda emit, x: emit(batch_norm(emit, x, scale=False)))
    state = Presence.PRESENT if "scale=False" in parts(mod, applied).script() else Presence.ABSENT
    return ProbeAnswer(state, f"offloaded with {'an unused gamma' if state is Presence.PRESENT else 'a gamma of one'}")


def spell_out_flags(passes: Passes) -> Passes:
    """Before batch norms are folded or offloaded: a gamma that is not used becomes one, a beta zero."""
    import tvm

    spell_out = tvm.transform.module_pass(_spell_out, opt_level=0, name="adreno_bench.SpellOutBatchNormFlags")
    return insert_before(passes, "FoldBatchnormToConv2D", spell_out)


def _spell_out(mod: Any, _ctx: Any) -> Any:
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class SpellOut(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            attrs = call.attrs
            if getattr(call.op, "name", "") != "relax.nn.batch_norm" or (attrs.center and attrs.scale):
                return call
            data, gamma, beta, mean, variance = call.args
            gamma = gamma if attrs.scale else _filled(gamma, 1)
            beta = beta if attrs.center else _filled(beta, 0)
            options = {key: getattr(attrs, key) for key in ("epsilon", "momentum", "training")}
            return relax.op.nn.batch_norm(data, gamma, beta, mean, variance, axis=attrs.axis, **options)

    rewriter = SpellOut(mod)
    for variable, function in mod.functions_items():
        if isinstance(function, relax.Function):
            rewriter.builder_.update_func(variable, rewriter.visit_expr(function))
    return rewriter.builder_.get()


def _filled(like: Any, value: float) -> Any:
    import numpy as np
    from tvm import relax

    from harness.compiler.compat import dtype_of
    from harness.paths.clml.codegen import shape_of

    kind = type_of(like)
    return relax.const(np.full(shape_of(kind), value, dtype_of(kind)), dtype_of(kind))


QUIRK = Quirk(
    id="clml-batch-norm-flags",
    title="center=False and scale=False are ignored when a batch norm is folded into a convolution or offloaded",
    upstream="python/tvm/relax/transform/fold_batch_norm_to_conv2d_for_inference.py; clml_runtime.cc: "
    "CreateBatchNormLayer",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="a beta that is not used is made zero, a gamma one, before TVM looks at them",
    edits=Edits(relax=spell_out_flags),
)
