"""Cases with tuned schedules: twins of those without, and only what really is another build counts as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things
from fake_schedules import ORIGIN, PHONE, a_schedule

from device_runner.device import Loadable
from device_runner.failures import Failure
from harness.base.case import Case, Precision, Tuning
from harness.base.failures import CompileFailure, UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Job
from harness.base.suite import Suite, choose, load_suite
from harness.cli.options import CaseOptions
from harness.compile.artifacts.artifact import KERNELS, Answers, Artifact
from harness.compile.artifacts.planner import check, plan_case
from harness.compile.compiler.releases import tvm_version
from harness.compile.schedules.database import Schedules, TaskLimits
from harness.judge.report.table import results_table
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.measure.work import schedule_complaint, schedule_summary
from harness.tools.shared.revision_options import case_ids, on_each_revision

KERNEL = "// Function: {0}\n__kernel void {0}(__global float* restrict x) {{\n  x[0] = {1};\n}}\n"
TUNED = Case("tiny", "opencl", Precision.FLOAT32, Tuning.SCHEDULED)
TOLD = {"took": ["conv"], "without": ["mean"], "refused": {"pool": "it does not fit"}}


def suite(folder: Path, text: str = 'models = ["tiny"]\npaths = ["opencl", "clml"]\n') -> Suite:
    (folder / "suite.toml").write_text(text)
    return load_suite(folder / "suite.toml")


def test_each_case_with_kernels_of_tvms_has_a_twin_with_the_schedules_of_the_file(tmp_path: Path) -> None:
    found = suite(tmp_path, 'models = ["tiny"]\npaths = ["opencl", "clml"]\nschedules = "s.jsonl"\n')
    ids = ["tiny-opencl-float32-untuned", "tiny-opencl-float32-scheduled", "tiny-clml-float32-untuned"]
    assert [case.id for case in found.cases] == ids
    assert found.schedules == tmp_path / "s.jsonl"
    assert [case.tuning for case in choose(found, ["*-scheduled_tuned"])] == [Tuning.SCHEDULED_TUNED]
    assert Case.parse(ids[1]).by_default.id == ids[0]


def test_without_a_file_there_is_no_such_case(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no case matches"):
        choose(suite(tmp_path), ["*-scheduled"])
    with pytest.raises(UsageError, match="tunings"):
        suite(tmp_path, 'models = ["tiny"]\npaths = ["opencl"]\ntunings = ["scheduled"]\n')


def test_a_file_for_another_kind_of_device_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    found = suite(tmp_path).model_copy(update={"schedules": file})
    Schedules(ORIGIN, (a_schedule(),)).write(file)
    check(found, [TUNED], tmp_path)
    smaller = replace(PHONE, image2d_max_width=8192)
    with pytest.raises(UsageError, match="image2d_max_width 16384"):
        plan_case(found, TUNED, smaller, tmp_path)


def test_the_file_is_part_of_the_key_and_the_build_without_it_is_planned_beside(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    origin = ORIGIN.model_copy(update={"tvm": tvm_version(), "limits": TaskLimits.of(PHONE)})
    found = suite(tmp_path).model_copy(update={"schedules": file})
    keys = set()
    for ms in (1.0, 2.0):
        Schedules(origin, (a_schedule(ms=ms),)).write(file)
        plan = plan_case(found, TUNED, PHONE, tmp_path)
        keys.add(plan.compile.key)
        assert plan.default_schedules
        assert plan.default_schedules.key == plan_case(found, TUNED.by_default, PHONE, tmp_path).compile.key
        assert plan.default_schedules in plan.jobs
    assert len(keys) == 2


def built(folder: Path, tuned: str, untuned: str, told: dict[str, Any] | None) -> dict[str, Any]:
    """Both builds of the case, with these numbers in the kernel of `conv`."""
    made: dict[str, Any] = things(folder)
    for key, number, schedules in (("c-tiny", tuned, told), ("u-tiny", untuned, None)):
        place = folder / key
        place.mkdir()
        (place / KERNELS).write_text(KERNEL.format("conv_kernel", number) + KERNEL.format("mean_kernel", "7"))
        artifact: Any = things(folder)["c-tiny"]
        compiled = replace(artifact.compiled, schedules=schedules)
        made[key] = replace(artifact, key=key, loadable=Loadable(place / "lib.so", "00", 1), compiled=compiled)
    return made


def record_of(folder: Path, made: dict[str, Artifact | Answers | Failure]) -> Record:
    job = Job("compile", "u-tiny", "tiny", {})
    plan = replace(a_plan(), case=TUNED, default_schedules=job, schedules="f00d")
    return run_case(plan, made, Run(FakeDevice(), TuningStore(folder)), SilentProgress()).record


def test_a_record_names_what_took_a_schedule_what_changed_and_what_fell_back(tmp_path: Path) -> None:
    record = record_of(tmp_path, built(tmp_path, "1", "2", TOLD))
    assert record.outcome is Outcome.OK
    assert record.schedules == {"sha256": "f00d", **TOLD, "changed": ["conv"]}
    assert "1 of 3 tasks took a schedule of the file, the kernels of 1 changed; 1 could not" in schedule_summary(
        record.schedules
    )


@pytest.mark.parametrize(
    ("tuned", "told", "says"),
    [
        ("2", TOLD, "their kernels are the same as without"),
        ("1", {"took": [], "without": [], "refused": {"conv": "it does not fit"}}, "it does not fit"),
    ],
)
def test_a_build_that_is_no_other_one_is_not_reported_as_tuned(
    tmp_path: Path, tuned: str, told: dict[str, Any] | None, says: str
) -> None:
    record = record_of(tmp_path, built(tmp_path, tuned, "2", told))
    assert record.outcome is Outcome.INCONCLUSIVE
    assert says in record.message
    assert not record.wall_ms


@pytest.mark.parametrize("told", [None, {"took": [], "without": ["conv"], "refused": {}}])
def test_a_network_that_the_file_has_nothing_for_is_a_plain_row_that_says_so(
    tmp_path: Path, told: dict[str, Any] | None
) -> None:
    record = record_of(tmp_path, built(tmp_path, "1", "1", told))
    assert record.outcome is Outcome.UNSUPPORTED
    assert record.message == "the file of schedules has none for this network on this path"


def test_a_file_without_schedules_for_a_path_is_told_before_anything_is_built(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    found = suite(tmp_path).model_copy(update={"schedules": file})
    Schedules(ORIGIN, (a_schedule(path="texture"),)).write(file)
    plan = plan_case(found, TUNED, PHONE, tmp_path)
    assert plan.unsupported.startswith("s.jsonl has no schedule for the path opencl")
    assert not plan.jobs


def test_schedules_of_another_release_are_told_of_in_each_case(tmp_path: Path) -> None:
    record = record_of(tmp_path, built(tmp_path, "1", "2", {**TOLD, "ported_from": "0.26.0"}))
    assert record.schedules
    said = schedule_summary(record.schedules)
    assert "took a schedule of the file, found with TVM 0.26.0, the kernels" in said
    assert "could not take" in said
    assert "could not take" not in schedule_summary({**record.schedules, "refused": {}})


def test_without_the_untuned_build_nothing_is_proved(tmp_path: Path) -> None:
    made = {**built(tmp_path, "1", "2", TOLD), "u-tiny": CompileFailure("TVM failed")}
    assert "to compare with, failed: TVM failed" in record_of(tmp_path, made).message


def test_the_table_says_how_many_times_as_fast_a_case_is_as_with_tvms_own_schedules(tmp_path: Path) -> None:
    tuned = record_of(tmp_path, built(tmp_path, "1", "2", TOLD))
    default = tuned.model_copy(
        update={"case": TUNED.by_default.id, "tuning": "untuned", "schedules": None, "wall_ms": [30.0] * 10}
    )
    lines = results_table([default, tuned.model_copy(update={"wall_ms": [10.0] * 10})]).splitlines()
    assert lines[0].endswith("times default")
    assert lines[3].split()[-1] == "3"
    assert "times default" not in results_table([default])


def test_revisions_are_compared_by_cases_with_the_schedules_that_were_given(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    suite(tmp_path)
    what = CaseOptions(tmp_path / "suite.toml", ["*-scheduled"], schedules=file)
    with pytest.raises(UsageError, match="there is no file of schedules"):
        _ = case_ids(what)
    Schedules(ORIGIN, (a_schedule(),)).write(file)
    assert case_ids(what) == ["tiny-opencl-float32-scheduled"]
    assert on_each_revision(what, "virtual").words[4:] == ["--schedules", str(file)]


def test_a_release_under_which_a_file_does_not_apply_is_named() -> None:
    told = {"took": [], "without": ["conv"], "refused": {}, "ported_from": "0.27.0.post1"}
    why = (
        "the file of schedules has none for this network on this path (found with TVM 0.27.0.post1, built with 0.26.0)"
    )
    assert schedule_complaint(told, None, "0.26.0") == why
