"""Operator cases: what is generated, what is run and what is kept, and the table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from fake_device import ANSWER, FakeDevice, things
from onnx import helper
from typer.testing import CliRunner

from device_runner.failures import DeviceCrash, DeviceLost, Failure, Hang, RigFailure
from harness.base.case import Precision
from harness.base.failures import CompileFailure, CompilerCrash, MisreadOperator, NoOutsideAnswer, UsageError
from harness.base.outcome import Outcome, Owner
from harness.base.plan import Job
from harness.cli import app
from harness.compile.artifacts.artifact import JUDGE, LEEWAY, Answers, Artifact, save_arrays
from harness.compile.artifacts.pool import Builder
from harness.compile.models.preparation.constants import FOLDABLE
from harness.compile.oracle.leeway import Measured, save_leeway
from harness.tools.ops import cells, networks, run
from harness.tools.ops.catalogue import (
    INPUTS,
    MODEL,
    OUTPUTS,
    PREPARED,
    SETS,
    Catalogue,
    OperatorCase,
    catalogue,
    choose,
)
from harness.tools.ops.cells import Cell, CellStore, CellVerdict
from harness.tools.ops.networks import OperatorNetwork
from harness.tools.ops.page import Coverage
from harness.tools.ops.run import CellResult, Operators
from harness.tools.ops.sweep_table import ENTRIES
from harness.tools.shared.revisions import Revision


@pytest.fixture
def small_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    wanted = [entry for entry in ENTRIES if entry.name in ("maxpool_2x2", "log", "split_channels")]
    monkeypatch.setattr(networks, "ENTRIES", wanted)
    return catalogue("sweep", tmp_path)


@pytest.mark.parametrize(("globs", "lines"), [((), 1), (("Log",), 0)])
def test_a_run_of_all_operators_says_first_how_many_there_are(
    small_sweep: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, globs: tuple[str, ...], lines: int
) -> None:
    said: list[str] = []
    monkeypatch.setattr(run, "opening", lambda *_: "opens")
    monkeypatch.setattr(run, "Builder", Mock(side_effect=DeviceLost("gone")))
    with pytest.raises(DeviceLost):
        list(
            run.operators(
                ["sweep"], globs, ["opencl"], [True, False], Precision.FLOAT32, "virtual", tmp_path, said.append
            )
        )
    all_of_them = "3 operators in 5 cases, 10 builds; `adreno-bench ops --op 'conv*'` runs some"
    assert said == [*[all_of_them][:lines], "opens"]


def test_what_can_read_an_image_comes_alone_and_after_a_convolution(small_sweep: Catalogue) -> None:
    names = [case.name for case in small_sweep.cases]
    assert names == ["maxpool_2x2", "maxpool_2x2_after_conv", "log", "split_channels", "split_channels_after_conv"]
    model = onnx.load(small_sweep.file(small_sweep.cases[1], MODEL))
    assert [node.op_type for node in model.graph.node] == ["Conv", "MaxPool"]
    onnx.checker.check_model(model)


def test_the_expected_outputs_are_those_of_the_operator(small_sweep: Catalogue) -> None:
    case = small_sweep.cases[0]
    (x,) = small_sweep.arrays(case, INPUTS).values()
    (y,) = small_sweep.arrays(case, OUTPUTS).values()
    np.testing.assert_array_equal(y, x.reshape(1, 16, 7, 2, 7, 2).max((3, 5)))


def test_in_half_precision_every_tensor_is_rounded_and_the_sums_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("conv_large", "argmax_channels", "resize_nearest")
    monkeypatch.setattr(networks, "ENTRIES", [entry for entry in ENTRIES if entry.name in wanted])
    half = catalogue("sweep-float16", tmp_path)
    names = [case.name for case in half.cases if case.dtype == "float16"]
    assert sorted(names) == sorted([*wanted, "conv_large_after_conv", "resize_nearest_after_conv"])
    assert half.left_out == {"a rounding decides what is right": 1}
    case = next(case for case in half.cases if case.name == "conv_large")
    model = onnx.load(half.file(case, MODEL))
    onnx.checker.check_model(model, full_check=True)
    (x,), (y,) = (half.arrays(case, kind).values() for kind in (INPUTS, OUTPUTS))
    weight = onnx.numpy_helper.to_array(model.graph.initializer[0])
    assert {array.dtype for array in (x, y, weight)} == {np.dtype(np.float16)}
    exact = (x[0, :, 19:22, 29:32].astype(np.float64) * weight.astype(np.float64)).sum((1, 2, 3))
    np.testing.assert_allclose(y[0, :, 20, 30].astype(np.float64), exact, rtol=2**-11, atol=1e-4)


def test_a_set_is_generated_once(small_sweep: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "ENTRIES", [])
    assert catalogue("sweep", tmp_path) == small_sweep


def test_a_case_is_built_as_run_prepares_it_and_as_shipped_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.ones((1, 2, 3), np.float32)
    nodes = {
        "negative": helper.make_node("LogSoftmax", ["x"], ["y"], axis=-1),
        "plain": helper.make_node("Relu", ["x"], ["y"]),
    }
    made = [OperatorNetwork(name, node.op_type, _model(node, x), {"x": x}, {"y": x}) for name, node in nodes.items()]
    monkeypatch.setitem(SETS, "sweep", lambda _left_out: iter(made))
    cases = catalogue("sweep", tmp_path)
    identity, modes = FakeDevice().identity, (False, True)
    built = list(cells.cells(cases, cases.cases, ["opencl"], identity, precision=Precision.FLOAT32, modes=modes))
    files = [Path(cell.compile.payload["request"]["model_file"]) for cell in built]
    assert [file.name for file in files] == [PREPARED, MODEL, PREPARED, MODEL]
    assert [onnx.load(file).graph.node[0].attribute[0].i for file in files[:2]] == [2, -1]
    assert files[2].read_bytes() == files[3].read_bytes()


def _model(node: onnx.NodeProto, x: np.ndarray) -> bytes:
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", x.shape), ("y", x.shape))
    ]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def test_no_expected_output_leans_on_batch_norms_of_old_operator_sets() -> None:
    # onnx 1.23 mixes the batch's own statistics into those of operator sets 9 to 13.
    assert networks.OPSET >= 14
    assert "BatchNormalization" not in FOLDABLE


def test_names_of_the_sweep_differ_and_each_is_about_one_operator() -> None:
    names = [entry.name for entry in ENTRIES]
    assert sorted(names) == sorted(set(names))


def test_operators_are_chosen_by_their_name_or_that_of_a_case(small_sweep: Catalogue) -> None:
    assert {case.operator for case in choose(small_sweep.cases, ["maxpool"])} == {"MaxPool"}
    assert [case.name for case in choose(small_sweep.cases, ["split_*_after*"])] == ["split_channels_after_conv"]
    with pytest.raises(UsageError, match="no operator matches 'maxpol'"):
        choose(small_sweep.cases, ["maxpol"])


def node_test(node: Any, inputs: dict[str, Any], output: Any, name: str = "test_It_1") -> Any:
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in {**inputs, node.output[0]: output}.items()
    ]
    graph = helper.make_graph([node], "g", values[:-1], values[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    return SimpleNamespace(name=name, model=model, data_sets=[(list(inputs.values()), [output])])


ROW = np.ones((2, 3), np.float32)
RANGE = {name: np.array(value, np.float32) for name, value in (("start", 0), ("limit", 3), ("delta", 1))}


def taken(monkeypatch: pytest.MonkeyPatch, *tests: Any) -> tuple[list[OperatorNetwork], dict[str, int]]:
    from onnx.backend.test import loader

    monkeypatch.setattr(loader, "load_model_tests", lambda kind: list(tests))
    left_out: dict[str, int] = {}
    return list(networks.node_tests(left_out)), left_out


def test_what_decides_the_result_of_a_node_test_becomes_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Reshape", ["data", "shape"], ["y"])
    shape = np.array([3, 2], np.int64)
    ((network,), _) = taken(monkeypatch, node_test(node, {"data": ROW, "shape": shape}, ROW.reshape(3, 2)))
    model = onnx.load_model_from_string(network.model)
    onnx.checker.check_model(model)
    assert (network.name, [*network.inputs]) == ("it_1", ["data"])
    assert [value.name for value in model.graph.input] == ["data"]
    assert [onnx.numpy_helper.to_array(one).tolist() for one in model.graph.initializer] == [[3, 2]]


def test_node_tests_that_cannot_be_run_are_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    odd = node_test(relu, {"x": ROW}, ROW)
    odd.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    tests = [
        odd,
        node_test(relu, {"x": ROW}, ROW, "test_relu_expanded"),
        node_test(relu, {"x": ROW}, ROW * np.inf),
        node_test(relu, {"x": ROW[:0]}, ROW[:0]),
        node_test(helper.make_node("Range", [*RANGE], ["y"]), RANGE, np.arange(3.0, dtype=np.float32)),
    ]
    networks, left_out = taken(monkeypatch, *tests)
    assert networks == []
    assert left_out == {
        "an operator expanded into others": 1,
        "NaN or infinity": 1,
        "empty tensors": 1,
        "no tensors of static shape": 1,
        "without an input": 1,
    }


class Ready:
    """Has everything built, and asked."""

    def __init__(self, made: Artifact | Failure, folder: Path) -> None:
        self.made = made
        self.asked: list[str] = []
        self._folder = folder
        self._answers: dict[str, Answers | Failure] = dict.fromkeys(("oracle", "witness"), NoOutsideAnswer("nobody"))

    def judge(self, kind: str, answer: Any, rounding: float = 0.0) -> None:
        """What the oracle or the witness answers."""
        place = self._folder / kind
        place.mkdir()
        save_arrays(place / INPUTS, [ANSWER])
        save_arrays(place / OUTPUTS, [answer])
        save_leeway(place / LEEWAY, [Measured(rounding={"float32": rounding})])
        (place / JUDGE).write_text(json.dumps(f"the {kind}"))
        self._answers[kind] = Answers(place, reused=True)

    def build(self, jobs: Iterable[Job]) -> dict[str, Artifact | Answers | Failure]:
        wanted = list(jobs)
        self.asked += [job.kind for job in wanted]
        return {job.key: self._answers.get(job.kind, self.made) for job in wanted}


@dataclasses.dataclass
class Rig:
    folder: Path
    device: FakeDevice
    builder: Ready

    def run(self, count: int = 1) -> list[CellResult]:
        case = OperatorCase("relu", "Relu", "float32", "sweep", "m", "m", "d")
        made = Catalogue(self.folder, (case,), {})
        (self.folder / "relu").mkdir(exist_ok=True)
        np.savez(self.folder / "relu" / INPUTS, x=ANSWER)
        np.savez(self.folder / "relu" / OUTPUTS, y=ANSWER)
        cells = [
            Cell(dataclasses.replace(case, data_sha256=f"{number}"), "opencl", Precision.FLOAT32, False, JOB, *JUDGES)
            for number in range(count)
        ]
        builder = cast(Builder, self.builder)
        with Operators(self.device, builder, CellStore(self.folder), lambda _: None) as operators:
            return list(operators.run(made, cells))


JOB = Job("compile", "c-relu", "relu", {})
JUDGES = (Job("oracle", "o-relu", "oracle of relu", {}), Job("witness", "w-relu", "LLVM's answer of relu", {}))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = next(thing for thing in things(tmp_path / "built").values() if isinstance(thing, Artifact))
    return Rig(tmp_path, FakeDevice(), Ready(made, tmp_path))


def verdicts(found: list[CellResult]) -> list[CellVerdict]:
    return [one.verdict for one in found]


def test_many_operators_run_in_one_session(rig: Rig) -> None:
    assert verdicts(rig.run(5)) == [CellVerdict.RIGHT] * 5
    assert rig.device.steps.count("session") == 1


def test_what_was_run_is_not_run_again(rig: Rig) -> None:
    first = rig.run(2)
    rig.device.steps.clear()
    assert rig.run(2) == first
    assert rig.device.steps == []


def test_a_wrong_answer_counts_if_a_fresh_process_gives_it_too(rig: Rig) -> None:
    rig.device.error = 1.0
    found = rig.run(2)
    assert verdicts(found) == [CellVerdict.WRONG] * 2
    assert "output 0 is off by 1" in found[0].result.message
    assert rig.device.steps == ["session", "load", "run", "load", "run", "closed", "session", "load", "run", "closed"]


def test_a_wrong_answer_counts_at_once_if_what_was_right_before_still_is(rig: Rig) -> None:
    errors = iter([0.0, 1.0, 0.0, 1.0, 0.5, 2.0])
    met = rig.device.met

    def meeting(step: str) -> None:
        if step == "run":
            rig.device.error = next(errors)
        met(step)

    rig.device.met = meeting  # type: ignore[method-assign]
    assert verdicts(rig.run(3)) == [CellVerdict.RIGHT, CellVerdict.WRONG, CellVerdict.WRONG]
    closed = rig.device.steps.index("closed")
    assert rig.device.steps[:closed].count("run") == 5, "right, wrong, still right, wrong, no longer right"
    assert rig.device.steps[closed:].count("run") == 1, "so the last one counts as a fresh process has it"


@pytest.mark.parametrize(
    ("llvm", "owner"), [(ANSWER + 1, Owner.IMPORTER), (ANSWER, Owner.PATH), (ANSWER + 2, Owner.PATH)]
)
def test_an_answer_that_is_neither_the_judges_nor_the_cases_own_is_wrong_and_llvm_says_whose_it_is(
    rig: Rig, llvm: Any, owner: Owner
) -> None:
    rig.builder.judge("oracle", ANSWER)
    rig.builder.judge("witness", llvm)
    rig.device.error = 1.0
    (found,) = rig.run()
    assert (found.verdict, found.result.owner, found.result.judge) == (CellVerdict.WRONG, owner, "the oracle")
    assert (found.plain["owner"], found.plain["judge"]) == (owner.value, "the oracle")


def test_a_right_answer_is_the_judges_whatever_came_with_the_case_and_llvm_is_not_asked(rig: Rig) -> None:
    rig.builder.judge("oracle", ANSWER + 1)
    rig.device.error = 1.0
    (found,) = rig.run()
    assert (found.verdict, found.result.message) == (CellVerdict.RIGHT, "")
    assert "witness" not in rig.builder.asked


def test_an_answer_that_is_the_cases_own_and_not_the_judges_is_right_and_it_is_said(rig: Rig) -> None:
    rig.builder.judge("oracle", ANSWER + 1)
    rig.builder.judge("witness", ANSWER)
    (found,) = rig.run()
    assert found.verdict is CellVerdict.RIGHT
    assert found.result.message.startswith("the oracle disagrees with the case's own answer: output 0 is off by 1")


def test_what_rounding_does_to_a_case_is_allowed_as_for_a_network(rig: Rig) -> None:
    rig.builder.judge("oracle", ANSWER, rounding=1e-3)
    rig.device.error = 1.5e-2
    (found,) = rig.run()
    assert found.verdict is CellVerdict.RIGHT, "8e-3 of a peak of 3"
    assert found.result.max_rel_err == pytest.approx(1.5e-2 / 3, rel=1e-3)


def test_after_a_crash_the_next_operator_gets_a_fresh_process(rig: Rig) -> None:
    rig.device.fails["run"] = DeviceCrash("the process on the device died of SIGSEGV")
    assert verdicts(rig.run(2)) == [CellVerdict.CRASH] * 2
    assert rig.device.steps.count("session") == 2


def test_a_lost_device_is_no_verdict(rig: Rig) -> None:
    rig.device.fails["run"] = DeviceLost("it is gone")
    with pytest.raises(DeviceLost):
        rig.run()
    del rig.device.fails["run"]
    assert verdicts(rig.run()) == [CellVerdict.RIGHT]


def test_a_deadline_that_passed_is_tried_again(rig: Rig) -> None:
    rig.device.fails["run"] = Hang("it did not end within 60 s")
    assert verdicts(rig.run()) == [CellVerdict.CRASH]
    del rig.device.fails["run"]
    assert verdicts(rig.run()) == [CellVerdict.RIGHT]


def test_what_the_importer_would_misread_is_the_importers(rig: Rig) -> None:
    rig.builder.made = MisreadOperator("TVM's ONNX importer misreads Resize 'y'")
    (found,) = rig.run()
    assert (found.verdict, found.result.owner) == (CellVerdict.NOT_BUILT, Owner.IMPORTER)


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [(CompileFailure("Divide by zero"), CellVerdict.NOT_BUILT), (CompilerCrash("it died"), CellVerdict.CRASH)],
)
def test_what_does_not_build_is_not_run(rig: Rig, failure: Failure, verdict: CellVerdict) -> None:
    rig.builder.made = failure
    assert verdicts(rig.run()) == [verdict]
    assert rig.device.steps == []


def cell(operator: str, path: str, verdict: CellVerdict, message: str = "", **more: Any) -> dict[str, Any]:
    named = {"name": operator.lower(), "operator": operator, "dtype": "float32", "tvm": "0.27", "as_shipped": False}
    return {**named, "path": path, "verdict": verdict.value, "outcome": Outcome.OK.value, "message": message, **more}


CELLS = [
    cell("Conv", "opencl", CellVerdict.RIGHT),
    cell("Conv", "opencl", CellVerdict.RIGHT, name="other"),
    cell("Conv", "texture", CellVerdict.WRONG, "output 0 is off by 3"),
    cell("Conv", "texture", CellVerdict.NOT_OFFLOADED, name="other"),
    cell("Relu", "texture", CellVerdict.NOT_BUILT, "Divide by zero 1"),
    cell("Add", "texture", CellVerdict.NOT_BUILT, "Divide by zero 2"),
]


def test_the_table_counts_verdicts_by_operator_and_path() -> None:
    (grid,) = Coverage(CELLS).grids()
    assert grid.headers == ("operator", "dtype", "opencl, with workarounds", "texture, with workarounds")
    assert grid.rows == [
        ("Add", "float32", "-", "■1"),
        ("Conv", "float32", "✓2", "=1 ✗1"),
        ("Relu", "float32", "-", "■1"),
        ("all", "", "✓2", "=1 ✗1 ■2"),
    ]


def test_what_is_said_alike_of_several_operators_is_said_once() -> None:
    found = Coverage(CELLS).findings()
    assert [(row[0], row[2], row[3]) for row in found] == [
        ("wrong", "1", "conv"),
        ("does not build", "2", "Relu, Add"),
    ]


def test_releases_of_tvm_stand_side_by_side_in_a_table_for_each_path() -> None:
    others = [cell("Conv", "opencl", CellVerdict.CRASH, tvm="0.25", as_shipped=shipped) for shipped in (True, False)]
    opencl, texture = Coverage([*CELLS, *others]).grids()
    assert (opencl.title, texture.title) == ("Path opencl", "Path texture")
    assert opencl.headers[2:] == ("0.27, with workarounds", "0.25, with workarounds", "0.25, as shipped")
    assert opencl.rows[-1] == ("all", "", "✓2", "†1", "†1")
    assert texture.headers[2:] == ("0.27, with workarounds",)


def test_what_several_releases_have_in_common_is_said_once() -> None:
    relu = [
        cell("Relu", "texture", CellVerdict.NOT_BUILT, f"no layout {n}", tvm=tvm) for n, tvm in enumerate(("1", "2"))
    ]
    add = cell("Add", "texture", CellVerdict.NOT_BUILT, "no schedule", tvm="2")
    coverage = Coverage([*relu, add])
    assert coverage.finding_headers[2:4] == ("TVM", "cases")
    assert [(row[2], row[3], row[4]) for row in coverage.findings()] == [("all", "1", "relu"), ("2", "1", "add")]


def test_nothing_in_a_message_is_taken_for_markup() -> None:
    text = Coverage([cell("Conv", "opencl", CellVerdict.CRASH, "a|b <c> `d` *e*")]).markdown({"TVM": "0.27"})
    assert "TVM 0.27. Made by" in text
    assert r"a\|b \<c\> \`d\` \*e\*" in text


def test_the_page_shows_what_the_table_shows_and_obeys_nothing_in_it(tmp_path: Path) -> None:
    kept, page = tmp_path / "cells.json", tmp_path / "operators.html"
    crash = cell("Conv", "opencl", CellVerdict.CRASH, "<script>") | {"name": "third"}
    kept.write_text(json.dumps([{"device": "virtual", **one} for one in (*CELLS, crash)]))
    CliRunner().invoke(app, ["ops", "--from", str(kept), "--html", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "✓2 †1" in text
    assert "What is not right" in text
    assert "TVM 0.27" in text
    assert "<script" not in text


def test_another_release_is_asked_the_same_in_its_own_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[list[str]] = []

    class Line:
        said = json.dumps(CELLS)

        @classmethod
        def of(cls, found: Revision, *_: object) -> Line:
            assert found.name == "0.26.0"
            return cls()

        def call(self, words: list[str], _deadline_s: float) -> tuple[int, str, str]:
            heard.append(words)
            return 3, self.said, "the last line"

    monkeypatch.setattr(cells, "CommandLine", Line)
    monkeypatch.setattr("harness.tools.ops.cells.revision", lambda word, *_: SimpleNamespace(name=word))
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    asked = ["--op", "conv*", "--path", "clml", "--mode", "as-shipped", "--device", "local"]
    done = CliRunner().invoke(app, ["ops", "--release", "0.26.0", *asked, "--json"])
    assert json.loads(done.stdout) == CELLS
    command, as_json, *words = heard[0]
    assert (command, as_json) == ("ops", "--json")
    assert {*asked} <= {*words}
    Line.said = ""
    with pytest.raises(RigFailure, match=r"0\.26\.0 ended with code 3: the last line"):
        cells.cells_of("0.26.0", [], tmp_path, tmp_path, lambda _: None)
