"""Whose fault it is that a compilation raised."""

from __future__ import annotations

import pytest

from device_runner.failures import RigFailure
from harness.base.failures import CompileFailure
from harness.compile.artifacts.compile import quote, stepping
from harness.compile.compiler import passes
from harness.compile.compiler.compat import LateModule
from harness.compile.compiler.passes import own_pass, replace_last


def test_a_name_of_tvms_that_our_code_asks_for_in_vain_is_not_the_compilers_fault() -> None:
    lacks = (
        r"TVM \S+ lacks what compile/compiler/passes.py, _bare_name asks of it: 'object' object has no attribute 'info'"
    )
    with pytest.raises(RigFailure, match=lacks), stepping("build"):
        replace_last([object()], "LowerTIRx", None)


@pytest.mark.parametrize("name", ["types", "no_such_module"])
def test_the_code_is_named_that_asks_a_module_in_vain_which_comes_late(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "tvm", LateModule(name))
    lacks = "lacks what compile/compiler/passes.py, own_pass asks of it: (module|No module)"
    with pytest.raises(RigFailure, match=lacks), stepping("build"):
        own_pass("Name", lambda mod: mod)


def test_a_name_that_tvm_itself_misses_is_the_compilers_fault() -> None:
    with pytest.raises(CompileFailure, match="TVM failed to build the model: AttributeError: "), stepping("build"):
        raise AttributeError("module 'tvm' has no attribute 'missing'")


def test_an_error_of_another_kind_is_the_compilers_fault_wherever_it_comes_from() -> None:
    with pytest.raises(CompileFailure, match="TVM failed to lower the model: TypeError: "), stepping("lower"):
        replace_last(None, "LowerTIRx", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("\n  one\ntwo", "one"),
        ("", ""),
        (
            "ScheduleError: in 'compute-inline'.\nThe IR is:\nfor i in range(4):\n"
            "Error message: It requires all the consumer(s) of block 'c' to be seen",
            "It requires all the consumer(s) of block 'c' to be seen",
        ),
        (
            'unknown intrinsic ir.Op(span=None, ty=ir.Type(span=None), name="tirx.texture2d_store", arguments=())',
            "unknown intrinsic tirx.texture2d_store",
        ),
    ],
)
def test_the_line_that_says_what_is_wrong_is_quoted(error: str, line: str) -> None:
    assert quote(ValueError(error)) == line
