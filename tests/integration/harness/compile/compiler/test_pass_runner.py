"""A compiler's error names the pass, and the kernel or operator on which it came."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compile_requests import request_for
from defects.sample import concat, conv, lower, sum_of_stack

from harness.base.failures import CompileFailure
from harness.compile.artifacts.compile import compile_model
from harness.compile.compiler.pass_runner import StepFailed, culprit, run_passes, run_step
from harness.tools.zoo.graph_layers import ImageGraph


class Picky(Exception):
    """What a step raises."""


def refuses(text: str, message: str = "no") -> Callable[[Any], Any]:
    """A step that fails on modules in whose script the text is."""

    def step(mod: Any) -> Any:
        if text in mod.script():
            raise Picky(message)
        return mod

    return step


def test_an_operator_is_found_by_the_beginning_of_the_graph_that_fails() -> None:
    assert culprit(refuses("R.stack"), sum_of_stack(), Picky("no")) == "relax.stack of (2, 1, 8, 8, 8)"
    assert culprit(refuses("R.nn.conv2d"), conv(), Picky("no")) == "relax.nn.conv2d of (1, 8, 8, 8)"


def test_a_kernel_is_found_among_many() -> None:
    lowered = lower(concat(), ())
    assert culprit(refuses("def concatenate("), lowered, Picky("no")) == "concatenate"


def test_another_error_of_a_part_is_not_the_one_that_is_looked_for() -> None:
    assert culprit(refuses("R.stack", "another"), sum_of_stack(), Picky("no")) == ""


def test_a_search_that_takes_too_long_names_nothing() -> None:
    assert culprit(refuses("R.stack"), sum_of_stack(), Picky("no"), limit_s=0.0) == ""


def test_a_step_that_fails_on_the_whole_only_names_nothing() -> None:
    whole = sum_of_stack()

    def step(mod: Any) -> Any:
        if mod.same_as(whole):
            raise Picky("no")

    assert culprit(step, whole, Picky("no")) == ""


def test_the_step_inside_is_named_and_not_the_one_around_it() -> None:
    inner = refuses("R.stack")
    with pytest.raises(StepFailed, match="no") as caught:
        run_step("outer", lambda mod: run_step("inner", inner, mod), sum_of_stack())
    assert caught.value.place == "inner on relax.stack of (2, 1, 8, 8, 8)"
    assert isinstance(caught.value.error, Picky)


def test_each_step_is_told_before_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    from tvm import relax

    passes = [relax.transform.Normalize(), relax.transform.FoldConstant()]
    with caplog.at_level(logging.INFO, "harness.compile.compiler.pass_runner"):
        run_passes(passes, conv())
    assert caplog.messages == [str(one.info.name) for one in passes]


def test_a_case_ends_with_pass_and_operator_in_one_line(tmp_path: Path) -> None:
    net = ImageGraph("depthwise", (1, 4, 4, 4))
    (tmp_path / "model.onnx").write_bytes(net.finish((net.conv(net.input, 4, 1, groups=4), (1, 4, 4, 4))).to_bytes())
    with pytest.raises(CompileFailure, match="Divide by zero") as caught:
        compile_model(request_for(tmp_path / "model.onnx", "texture", as_shipped=True), tmp_path)
    where = "TVM failed to lower the model, in LegalizeOps on relax.nn.conv2d of (1, 1, 4, 4, 4): "
    assert caught.value.message.startswith(where)
