"""The code generator reproduces what TVM's own C++ generator emits, for every recorded case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import clml_golden
import pytest
from defects.clml import conv
from defects.sample import network

from harness.compile.paths.clml.codegen import Partition, partition

pytestmark = pytest.mark.rest

CASES = sorted(clml_golden.CASES)


@pytest.fixture
def generated() -> Iterator[list[Partition]]:
    """What our generator makes of every partition that TVM hands over while this test runs."""
    import tvm_ffi

    made: list[Partition] = []

    def generate(functions: Any, _options: Any, names: Any) -> list[Any]:
        made.extend(partition(function, names) for function in functions)
        return []

    before = tvm_ffi.get_global_func("relax.ext.openclml", allow_missing=True)
    tvm_ffi.register_global_func("relax.ext.openclml", generate, override=True)
    yield made
    if before is None:
        tvm_ffi.registry.remove_global_func("relax.ext.openclml")
    else:
        tvm_ffi.register_global_func("relax.ext.openclml", before, override=True)


def serialised(part: Partition) -> bytes:
    """The bytes of TVM's module of kind `clml` with this content."""

    def text(value: str) -> bytes:
        return len(value.encode()).to_bytes(8, "little") + value.encode()

    names = b"".join(text(name) for name in part.constants)
    return text(part.symbol) + text(part.graph) + len(part.constants).to_bytes(8, "little") + names


def test_the_golden_cases_are_here() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("case", CASES)
def test_reproduces(case: str, generated: list[Partition]) -> None:
    from tvm.relax.backend.adreno.clml import OpenCLMLOffLoad

    facts = clml_golden.facts(case)
    mod = clml_golden.build(case)
    if "error" in facts:
        with pytest.raises(Exception, match=r".") as error:  # whatever TVM raised must be raised again
            OpenCLMLOffLoad()(mod)
        said = f"{error.typename}: {error.value}".replace("ir.GenericConst", "relax.expr.Constant")  # renamed in 0.27
        assert said.startswith(facts["error"])
        return
    OpenCLMLOffLoad()(mod)
    expected = clml_golden.modules(case)
    assert [p.symbol for p in generated] == [m["symbol"] for m in expected]
    for ours, theirs in zip(generated, expected, strict=True):
        assert json.loads(ours.graph) == theirs["graph"]
        assert list(ours.constants) == theirs["const_names"]
        assert serialised(ours).hex() == theirs["bytes_hex"]


def emit(generated: list[Partition], mod: Any) -> dict[str, Any]:
    from tvm.relax.backend.adreno.clml import OpenCLMLOffLoad

    OpenCLMLOffLoad()(mod)
    graph: dict[str, Any] = json.loads(generated[-1].graph)
    return graph


def test_a_convolution_used_twice_has_two_outputs(generated: list[Partition]) -> None:
    from tvm import relax

    def body(emit: Any, x: Any) -> Any:
        convolved = emit(conv(x))
        return relax.Tuple([convolved, emit(relax.op.nn.relu(convolved))])

    graph = emit(generated, network(body))
    assert graph["heads"] == [[2, 0, 0], [2, 1, 0]]
    assert graph["node_row_ptr"] == [0, 1, 2, 4]
    assert graph["nodes"][2]["attrs"]["num_outputs"] == 2


def test_number_formats_are_written_as_text(generated: list[Partition]) -> None:
    graph = emit(generated, network(lambda emit, x: emit(conv(x, out_dtype="float32"))))
    assert graph["nodes"][2]["attrs"]["out_dtype"] == "float32"


def test_names_are_escaped_as_tvm_does(generated: list[Partition]) -> None:
    from tvm import relax

    emit(generated, network(lambda emit, x: emit(relax.op.nn.relu(x)), name='layer/1 "a"'))
    assert r'"name":"layer\/1 \"a\""' in generated[0].graph
