"""Modules of a program of one's own: what is compiled of them, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import relax_modules as nets

import adreno_bench as bench
from harness.base.case import Precision
from harness.base.failures import UnsupportedOperator, UsageError
from harness.compile.compiler.compat import tensor_type, type_of
from harness.compile.compiler.passes import adreno_relax_passes
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.quirks import QUIRKS, quirks_for


def lowered(path: str) -> Any:
    """The network after TVM's own passes for a path."""
    from tvm import transform

    target = PATHS[path].target(ImageLimits(), None)
    with target:
        return transform.Sequential(adreno_relax_passes(target))(nets.by_hand())


def two_functions() -> Any:
    mod = nets.by_hand()
    mod["other"] = nets.by_hand("other")["other"]
    return mod


def symbolic() -> Any:
    from tvm import tirx

    return nets.by_hand(batch=tirx.Var("batch", "int64"))


def without_shape(*, in_tuple: bool = False) -> Any:
    from tvm import relax
    from tvm.script import relax as script

    kind = script.Tuple(script.Tensor(dtype="float32", ndim=2)) if in_tuple else tensor_type(None, "float32")
    data = relax.Var("data", kind)
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        value = builder.emit(relax.TupleGetItem(data, 0)) if in_tuple else data
        builder.emit_func_output(builder.emit(relax.op.nn.relu(value)))
    return builder.get()


def number() -> Any:
    from tvm import relax
    from tvm.script import relax as script

    data, param = relax.Var("data", tensor_type(nets.INPUT.shape, "float32")), relax.Var("n", script.Prim("int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data, param]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(data)))
    return builder.get()


def with_part() -> Any:
    """The network as a private function, and a function that calls it."""
    from tvm import relax

    mod = nets.by_hand("part")
    mod["part"] = mod["part"].without_attr("global_symbol")
    data = relax.Var("data", tensor_type(nets.INPUT.shape, "float32"))
    builder = relax.BlockBuilder(mod)
    with builder.function("main", [data]):
        with builder.dataflow():
            result = builder.emit_output(relax.Call(mod.get_global_var("part"), [data]))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: "net.onnx", "a module is a tvm.IRModule, not 'net.onnx': adreno_bench.build compiles files"),
        (lambda: Path("net.onnx"), "a module is a tvm.IRModule, not 'net.onnx': adreno_bench.build compiles files"),
        (lambda: (nets.by_nn(), []), "not a tuple: it comes first in what `export_tvm` and `detach_params` return"),
        (lambda: nets.by_hand()["main"], "not a Function: tvm.relax.frontend makes one of a network"),
        (lambda: lowered("opencl"), "the module is lowered already: it has relax.vm.alloc_storage: compile it as it"),
        (
            lambda: lowered("texture"),
            r"the module is lowered already: it has tensors .* \(`vdevice`\): compile it as it",
        ),
        (two_functions, "the module has 2 functions to call, and the workarounds are for one: main, other: compile a"),
        (
            without_shape,
            r"the shape of an input is unknown: data: write it into the type: R.Tensor\(",
        ),
        (number, r"an input is a number, and not a tensor: n: write R.Tensor\(\(\), ...\) for its type, or"),
        (lambda: without_shape(in_tuple=True), r"the shape of an input is unknown: data: write it"),
        (symbolic, r'not fixed: batch: set it with mod = relax.transform.BindSymbolicVars\(\{"batch": 1\}\)\(mod\)'),
    ],
)
def test_what_cannot_be_compiled_is_one_line_with_what_to_do(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench.compile(make(), "texture")


def calling(operator: str) -> Any:
    """A module that calls a function of Python: one that TVM registers, or one of the program."""
    from tvm import relax

    data = relax.Var("data", tensor_type((1, 8), "float32"))
    builder = relax.BlockBuilder()
    calls = {
        "relax.unique": lambda: relax.op.unique(data, axis=None),
        "relax.nonzero": lambda: relax.op.nonzero(data),
        "my.postprocess": lambda: relax.call_dps_packed("my.postprocess", (data,), type_of(data)),
    }
    with builder.function("main", [data]):
        builder.emit_func_output(builder.emit(calls[operator]()))
    return builder.get()


@pytest.mark.parametrize("operator", ["relax.unique", "relax.nonzero", "my.postprocess"])
def test_what_python_computes_is_refused_as_build_refuses_it(operator: str) -> None:
    with pytest.raises(UnsupportedOperator, match=f"no device runs .* in Python: {operator}: compile the module up to"):
        bench.compile(calling(operator), "texture")


def test_a_module_without_a_function_to_call_is_refused() -> None:
    import tvm

    with pytest.raises(UsageError, match=r"no Relax function to call: tvm.relax.frontend imports"):
        bench.compile(tvm.IRModule({}), "opencl")


def test_the_hint_for_a_symbolic_shape_mends_it() -> None:
    from tvm import relax

    compiled = bench.compile(relax.transform.BindSymbolicVars({"batch": 1})(symbolic()), "texture")
    assert compiled.facts["texture_tensors"] > 0


def test_a_module_stays_as_it_is_and_compiles_again() -> None:
    import tvm

    mod = nets.by_hand(shift=1.0)  # TVM writes the place of that constant into the module that it is given
    before = tvm.ir.save_json(mod)
    kernels = [bench.compile(mod, "texture").facts["kernels"] for _ in range(2)]
    assert kernels[0] == kernels[1] > 0
    assert tvm.ir.save_json(mod) == before


def test_images_take_a_module_without_data_flow_and_one_of_several_functions() -> None:
    plain = bench.compile(nets.by_hand(), "texture").facts
    assert plain["texture_tensors"] > 0
    assert bench.compile(nets.by_hand(dataflow=False), "texture").facts == plain
    assert bench.compile(with_part(), "texture").facts == plain


def test_images_are_no_larger_than_those_of_the_device() -> None:
    assert bench.compile(nets.by_hand(), "texture").facts["image_side"] > 32
    assert bench.compile(nets.by_hand(), "texture", image_side=32).facts["image_side"] <= 32


def test_clml_takes_a_module_whole() -> None:
    facts = bench.compile(nets.by_nn(), "clml").facts
    assert facts["macs_offloaded"] == facts["macs"] > 0


def test_a_library_is_for_its_devices_and_names_what_was_worked_around(tmp_path: Path) -> None:
    compiled = bench.compile(nets.by_hand(), "texture")
    assert compiled.devices == 2
    assert "texture-conv-out-dtype" in compiled.effective_quirks
    assert set(compiled.effective_quirks) < set(compiled.quirks)
    assert compiled.export_library(tmp_path / "lib.so") == tmp_path / "lib.so"
    with pytest.raises(UsageError, match=r"is a folder: name a file in it: .*lib\.so"):
        compiled.export_library(tmp_path)
    with pytest.raises(UsageError, match=r"there is no folder .*none: make it first"):
        compiled.export_library(tmp_path / "none" / "lib.so")


def test_quirks_that_need_the_onnx_network_are_none_of_a_module() -> None:
    known = {quirk.id for quirk in quirks_for("opencl", Precision.FLOAT32, as_shipped=False)}
    names = set(bench.compile(nets.by_hand(), "opencl").quirks)
    readers = {quirk.id for quirk in QUIRKS if quirk.edits.network}
    assert known - names == readers & known | {"roi-align-half-pixel"}
    shipped = bench.compile(nets.by_hand(), "opencl", as_shipped=True).quirks
    assert set(shipped) == {quirk.id for quirk in quirks_for("opencl", Precision.FLOAT32, as_shipped=True)}


def test_half_precision_converts_the_module() -> None:
    assert bench.compile(nets.by_hand(), "texture").facts["half_kernels"] == 0
    assert bench.compile(nets.by_hand(), "texture", precision="float16").facts["half_kernels"] > 0


def test_half_precision_refuses_a_module_without_operators() -> None:
    from tvm import relax

    mod = relax.transform.LegalizeOps()(nets.by_hand())
    assert bench.compile(mod, "opencl").facts["kernels"] > 0
    with pytest.raises(UsageError, match=r"legalised already, and float16 converts operators: compile it as it was"):
        bench.compile(mod, "opencl", precision="float16")


def test_a_library_has_the_name_that_tvm_gives_it() -> None:
    import tvm

    function = nets.by_hand()["main"].with_attr("global_symbol", "forward")
    compiled = bench.compile(tvm.IRModule({tvm.ir.GlobalVar("part"): function}), "opencl")
    assert {"main", "forward"} <= set(re.findall(r"[a-z]+", compiled.executable.as_text()))
