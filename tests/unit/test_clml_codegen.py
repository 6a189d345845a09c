"""The code generator reproduces what TVM's own C++ generator emits, for every recorded case."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.paths.clml.codegen import Partition, partition

GOLDEN = Path(__file__).parents[1] / "fixtures" / "clml"
CASES = sorted(file.stem for file in GOLDEN.glob("*.py"))


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


def test_the_golden_cases_are_here() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("case", CASES)
def test_reproduces(case: str, generated: list[Partition]) -> None:
    from tvm.relax.backend.adreno.clml import OpenCLMLOffLoad

    facts = json.loads((GOLDEN / f"{case}.partition.json").read_text())
    mod = runpy.run_path(str(GOLDEN / f"{case}.py"))["build"]()
    if "error" in facts:
        with pytest.raises(Exception, match=r".") as error:  # whatever TVM raised must be raised again
            OpenCLMLOffLoad()(mod)
        said = f"{error.typename}: {error.value}".replace("ir.GenericConst", "relax.expr.Constant")  # renamed in 0.27
        assert said.startswith(facts["error"])
        return
    OpenCLMLOffLoad()(mod)
    expected = json.loads((GOLDEN / f"{case}.json").read_text())
    assert [p.symbol for p in generated] == [m["symbol"] for m in expected]
    for ours, theirs in zip(generated, expected, strict=True):
        assert json.loads(ours.graph) == theirs["graph"]
        assert list(ours.constants) == theirs["const_names"]
        assert ours.graph.encode() in bytes.fromhex(theirs["bytes_hex"])
