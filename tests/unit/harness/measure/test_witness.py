"""The second witness: when LLVM is asked, and what its answer means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from fake_device import ANSWER, FakeDevice, Things, a_plan, things
from onnx import TensorProto, helper

from device_runner.failures import Failure
from harness.base.case import Precision
from harness.base.failures import CompileFailure, OracleNotFinite
from harness.base.outcome import Outcome, Owner
from harness.base.plan import Job, Plan
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import OUTPUTS, Answers, Artifact, save_arrays, save_values
from harness.compile.artifacts.pool import Builder
from harness.compile.oracle.leeway import Leeway
from harness.judge.remarks import remarks
from harness.measure.context import Run
from harness.measure.correctness import Truth
from harness.measure.facts import WitnessReport
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.measure.witness import compare_with_witness

PLAN = a_plan()
PLAN = replace(PLAN, oracle=replace(PLAN.oracle, otherwise=Job("witness", "w-tiny", "LLVM's answer of tiny", {})))
OTHER = ANSWER + 1


class LLVM(Builder):
    """Has an answer, perhaps from before, and counts how often it is asked for a new one."""

    def __init__(self, folder: Path, answer: np.ndarray[tuple[int, ...], np.dtype[np.float32]], *, known: bool) -> None:
        super().__init__(folder, Limits())
        (folder / "llvm").mkdir()
        save_arrays(folder / "llvm" / OUTPUTS, [answer])
        self._found = Answers(folder / "llvm", reused=True)
        self._known = known
        self.asked = 0
        self.values: dict[str, Answers] = {}
        """Of every tensor inside the network, by the kind of job that computes them."""
        self.half: dict[str, Answers | Failure] = {}
        """In half precision, by precision."""

    def build(self, jobs: Iterable[Job]) -> dict[str, Artifact | Answers | Failure]:
        wanted = list(jobs)
        self.asked += sum(job.kind == "witness" for job in wanted)
        return {job.key: self._answer(job) for job in wanted}

    def _answer(self, job: Job) -> Answers | Failure:
        nothing = CompileFailure("it cannot be built")
        if job.kind != "witness":
            return self.values.get(job.kind, nothing)
        precision = job.payload.get("request", {}).get("precision")
        return self.half.get(precision, nothing) if precision else self._found

    def find(self, job: Job) -> Answers | None:
        return self._found if self._known else None


def record_of(folder: Path, truth: object, llvm: LLVM | None, unchecked: str = "", plan: Plan = PLAN) -> Record:
    """Of a device that answers `ANSWER`."""
    built: Things = things(folder / "built")
    save_arrays(folder / "built" / OUTPUTS, [np.asarray(truth)])
    built["o-tiny"] = Answers(folder / "built", reused=True, unchecked=unchecked)
    run = Run(FakeDevice(), TuningStore(folder), timed=False, builder=llvm)
    return run_case(plan, built, run, SilentProgress()).record


@pytest.mark.parametrize(
    ("truth", "llvm", "owner"),
    [(ANSWER, OTHER, Owner.NOBODY), (OTHER, ANSWER, Owner.IMPORTER), (OTHER, OTHER, Owner.PATH)],
)
def test_llvm_is_asked_only_where_the_answer_is_wrong(
    tmp_path: Path, truth: object, llvm: object, owner: Owner
) -> None:
    witness = LLVM(tmp_path, np.asarray(llvm), known=False)
    record = record_of(tmp_path, truth, witness)
    assert record.owner is owner
    assert witness.asked == (owner is not Owner.NOBODY)
    assert (record.part(WitnessReport) is None) is (owner is Owner.NOBODY)


def test_without_a_builder_nobody_is_asked(tmp_path: Path) -> None:
    record = record_of(tmp_path, OTHER, None)
    assert (record.outcome, record.part(WitnessReport)) == (Outcome.WRONG_RESULT, None)


NODES = [
    helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
    helper.make_node("Resize", ["a", "", "scales"], ["b"], name="shrink"),
    helper.make_node("Relu", ["b"], ["y"], name="last"),
]
ENDS = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 4, 4]) for name in ("x", "w", "y")}
SCALES = helper.make_tensor_value_info("scales", TensorProto.FLOAT, [4])


@pytest.mark.parametrize(
    ("off", "blamed"), [("by", "Resize 'shrink'"), ("y", "Relu 'last'"), ("aby", "Conv 'conv'"), ("", "")]
)
def test_the_first_operator_that_the_importer_gets_wrong_is_named(tmp_path: Path, off: str, blamed: str) -> None:
    file = tmp_path / "net.onnx"
    graph = helper.make_graph(NODES, "g", [ENDS["x"], ENDS["w"], SCALES], [ENDS["y"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), file)
    llvm = LLVM(tmp_path, ANSWER, known=False)
    for kind, wrong in (("values", ""), ("llvm-values", off)):
        (tmp_path / kind).mkdir()
        save_values(tmp_path / kind, {name: OTHER + (name in wrong) for name in "aby"})
        llvm.values[kind] = Answers(tmp_path / kind, reused=False)
    oracle = replace(PLAN.oracle, payload={"request": {"model_file": str(file)}})
    record = record_of(tmp_path, OTHER, llvm, plan=replace(PLAN, oracle=oracle))
    assert record.owner is Owner.IMPORTER, record.evidence
    report = record.part(WitnessReport)
    assert report
    assert report.first == blamed
    assert ("and the first operator that is off is" in record.message, blamed in record.message) == (bool(blamed), True)


def test_llvm_that_was_asked_before_and_is_off_is_remarked_on_a_right_answer(tmp_path: Path) -> None:
    witness = LLVM(tmp_path, OTHER, known=True)
    record = record_of(tmp_path, ANSWER, witness)
    assert (record.outcome, witness.asked) == (Outcome.OK, 0)
    assert "LLVM off" in [remark.word for remark in remarks(record)]


def test_llvm_that_is_the_judge_is_no_witness_and_the_record_says_that_nobody_checked(tmp_path: Path) -> None:
    witness = LLVM(tmp_path, ANSWER, known=True)
    record = record_of(tmp_path, OTHER, witness, unchecked="onnxruntime: no kernel for Foo")
    assert (record.outcome, record.owner, record.part(WitnessReport)) == (Outcome.WRONG_RESULT, Owner.PATH, None)
    assert [remark.why for remark in remarks(record) if remark.word == "unchecked"] != []
    assert record.unchecked == "onnxruntime: no kernel for Foo"


def test_a_record_of_before_has_the_outcomes_usual_owner(tmp_path: Path) -> None:
    record = record_of(tmp_path, OTHER, LLVM(tmp_path, ANSWER, known=False))
    fields = {**record.model_dump(mode="json", by_alias=True)}
    for name in ("owner", "judge", "unchecked", "parts"):
        del fields[name]
    assert Record.model_validate(fields).owner is Owner.PATH
    assert Record.model_validate_json(record.line()).owner is Owner.IMPORTER


@pytest.mark.parametrize(("in_double", "owner"), [(OTHER, Owner.PATH), (ANSWER, Owner.IMPORTER)])
def test_the_importer_is_not_to_blame_for_what_double_precision_mends(
    tmp_path: Path, in_double: np.ndarray[tuple[int, ...], np.dtype[np.float32]], owner: Owner
) -> None:
    llvm = LLVM(tmp_path, ANSWER, known=False)
    (tmp_path / "double").mkdir()
    save_arrays(tmp_path / "double" / OUTPUTS, [in_double.astype(np.float64)])
    llvm.values["llvm-double"] = Answers(tmp_path / "double", reused=True)
    record = record_of(tmp_path, OTHER, llvm)
    assert record.outcome is Outcome.WRONG_RESULT
    assert record.owner is owner
    assert ("both round so" in record.message) is (owner is Owner.PATH)


def answers_of(folder: Path, name: str, answer: object) -> Answers:
    (folder / name).mkdir()
    save_arrays(folder / name / OUTPUTS, [np.asarray(answer)])
    return Answers(folder / name, reused=True)


@pytest.mark.parametrize(
    ("precision", "half", "wide", "hinted"),
    [
        (Precision.FLOAT16, ANSWER, OTHER, True),
        (Precision.FLOAT16, "not finite", OTHER, True),
        (Precision.FLOAT16, OTHER, OTHER, False),
        (Precision.FLOAT16, ANSWER, ANSWER, False),
        (Precision.FLOAT16, "not built", OTHER, False),
        (Precision.FLOAT16, ANSWER, "not built", False),
        (Precision.FLOAT16_ACC32, ANSWER, OTHER, False),
        (Precision.FLOAT32, ANSWER, OTHER, False),
    ],
)
def test_wider_sums_are_hinted_at_where_they_alone_make_llvm_right(
    tmp_path: Path, precision: Precision, half: object, wide: object, hinted: bool
) -> None:
    llvm = LLVM(tmp_path, OTHER, known=False)
    failures = {"not finite": OracleNotFinite("infinite"), "not built": CompileFailure("it cannot be built")}
    for name, answer in (("float16", half), ("float16_acc32", wide)):
        llvm.half[name] = failures[answer] if isinstance(answer, str) else answers_of(tmp_path, name, answer)
    plan = a_plan(precision=precision)
    witness = Job("witness", "w-tiny", "LLVM's answer of tiny", {"request": {}})
    plan = replace(plan, oracle=replace(plan.oracle, otherwise=witness))
    record = record_of(tmp_path, OTHER, llvm, plan=plan)
    assert (record.outcome, record.owner) == (Outcome.WRONG_RESULT, Owner.PATH)
    assert ("--precision float16_acc32" in record.hint) is hinted
    assert ("right with its sums in float32" in record.message) is hinted


def test_a_witness_off_by_what_the_judge_itself_is_off_by_is_right(tmp_path: Path) -> None:
    judge = np.full((1, 100), 127.336, np.float32)
    serial = judge - np.float32(0.003)
    save_arrays(tmp_path / OUTPUTS, [serial])
    truth = Truth([], [judge], 1e-5, [Leeway(own=np.full((1, 100), 0.003, np.float32))])
    report = compare_with_witness([np.zeros_like(judge)], truth, Answers(tmp_path, reused=False))
    assert report.with_judge
    assert not replace(report, with_path=True).blames_importer
