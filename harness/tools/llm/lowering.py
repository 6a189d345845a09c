"""The passes from the network to a library: with MLC's schedules, or as TVM's own default pipeline has them.

MLC (mlc-llm, compiler_pass/pipeline.py) puts dlight's rules for products before those for reductions. TVM's default
pipeline for Adreno (relax/backend/adreno/pipeline.py) has no rule for products: prefill's are reductions there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.compile.compiler.compat import dlight, dpl, relax, tirx, tvm
from harness.compile.compiler.passes import Passes, own_pass
from harness.compile.paths.base import Workaround, edit_model, edit_relax
from harness.tools.llm.network import CHUNK, LENGTH

MLC, DEFAULT = "mlc", "default"
PIPELINES = (MLC, DEFAULT)
NO_CSE = "disable_cse_tir"
"""End of the name of TVM's option that leaves common expressions alone, and an attribute of functions that need it."""


def target_of(host_triple: str | None) -> Any:
    """Return mlc-llm's target for Adreno, `android:adreno`."""
    host = {"kind": "llvm", "mtriple": host_triple} if host_triple else "llvm"
    return tvm.target.Target({"kind": "opencl", "device": "adreno", "max_threads_per_block": 512}, host=host)


def build_executable(
    mod: Any, target: Any, pipeline: str, workarounds: Sequence[Workaround], see: Callable[[Any], None]
) -> Any:
    """Compile a module with the workarounds. `see` is told it after its memory was planned, where the pipeline is ours.

    TVM's default pipeline is taken as it is, but for edits of the module.
    """
    mod = _with_limits(edit_model(mod, workarounds))
    options = {name: True for name in tvm.transform.PassContext.list_configs() if name.endswith(NO_CSE)}
    if pipeline == DEFAULT:
        marked = any(NO_CSE in (function.attrs or ()) for _, function in mod.functions_items())
        with target, tvm.transform.PassContext(config=options if marked else {}):
            return relax.build(mod, target=target)
    # mlc-llm leaves the elimination out, too (quirk `let-common-expression`).
    with target, tvm.transform.PassContext(config=options):
        passes = edit_relax(_mlc_passes(target, see), workarounds)
        return relax.build(mod, target=target, relax_pipeline=tvm.transform.Sequential(passes))


def _with_limits(mod: Any) -> Any:
    """Return a module whose memory plan knows the longest step."""
    limits = {"tir_var_upper_bound": {LENGTH: CHUNK}, "relax.memory_plan_dynamic_func_output": True}
    for name, function in mod.functions_items():
        if isinstance(function, relax.Function):
            mod[name] = function.with_attrs(limits)
    return mod


def _mlc_passes(target: Any, see: Callable[[Any], None]) -> Passes:
    from tvm.relax.backend import adreno

    def look(mod: Any) -> Any:
        see(mod)
        return mod

    steps, rules = relax.transform, dlight.gpu
    return [
        tirx.transform.BindTarget(target),
        steps.FuseTransposeMatmul(),
        steps.LegalizeOps(),
        steps.AnnotateTIROpPattern(),
        steps.FoldConstant(),
        steps.FuseOps(),
        steps.FuseTIR(),
        *(steps.FuseOpsByPattern([_unpacked_product(operands)]) for operands in range(_MOST_OPERANDS)),
        steps.FuseTIR(),
        steps.DeadCodeElimination(),
        dlight.ApplyDefaultSchedule(
            rules.Matmul(), rules.GEMV(), rules.Reduction(), rules.GeneralReduction(), rules.Fallback()
        ),
        tirx.transform.ForceNarrowIndexToInt32(),
        *adreno.dataflow_lower_passes(target),
        steps.StaticPlanBlockMemory(),
        own_pass("Look", look),
        steps.LowerAllocTensor(),
        steps.KillAfterLastUse(),
        steps.LowerRuntimeBuiltin(),
        steps.VMShapeLower(),
        steps.AttachGlobalSymbol(),
    ]


_MOST_OPERANDS = 4
"""Operands of what is fused behind a product: a bias, a residual, a gate."""


def _unpacked_product(operands: int) -> Any:
    """Return the pattern of a product, and of the unpacking of the 4-bit numbers that it reads."""

    def call(*arguments: Any) -> Any:
        operands = dpl.TuplePattern(list(arguments))
        return dpl.is_op("relax.call_tir")(dpl.GlobalVarPattern(), operands, add_constraint=False)

    weight = call(dpl.wildcard(), dpl.wildcard())
    product = call(dpl.wildcard(), weight, *(dpl.wildcard() for _ in range(operands)))

    def is_product_of_unpacked(context: Any) -> bool:
        def name(key: str) -> str:
            expression = context.annotated_expr[key]
            called = expression.args[0] if isinstance(expression, relax.Call) else None
            return str(called.name_hint) if isinstance(called, relax.GlobalVar) else ""

        return name("weight").startswith("dequantize") and "matmul" in name("product")

    return ("dequantize_matmul", product, {"weight": weight, "product": product}, is_product_of_unpacked)
