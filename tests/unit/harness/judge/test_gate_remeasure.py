"""A baseline's build, run again to compare with: what its records say, and what they are not taken for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fake_device import ANSWER, FakeDevice, a_plan, things
from fake_records import a_record, blessing_of, sessions

from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.compile.artifacts.artifact import INPUTS, OTHER_OUTPUTS, OUTPUTS, Answers, Artifact, save_arrays
from harness.compile.artifacts.pool import Builder
from harness.judge.baseline import Baseline
from harness.judge.compare import Comparison
from harness.judge.confirm import explainer
from harness.judge.gate import Gate, Remeasure
from harness.judge.noise import learn
from harness.judge.sides import SeriesKey, latest_build, sides_of
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record, RecordFile, Releases
from harness.measure.tuning import TuningStore
from harness.tools.shared.kernels.profile import kernels_file, read_profiles

CASE = "tiny-opencl-float32-untuned"
OLD = Releases(tvm="0.25.0.post1", ffi="0.1.9")


class BuiltAlready(Builder):
    def __init__(self, built: Any, old: Any = None) -> None:
        self._built, self.old = built, old

    def artifact(self, key: str) -> Any:
        return self.old

    def build(self, jobs: Any) -> Any:
        return {job.key: self._built[job.key] for job in jobs}

    def find(self, job: Any) -> Any:
        return self._built.get(job.key)


def test_a_record_says_which_releases_compiled_the_build_and_which_ran_it(tmp_path: Path) -> None:
    device, built, file = FakeDevice(), things(tmp_path), RecordFile(tmp_path / "records.jsonl")
    old = built["c-tiny"]
    assert isinstance(old, Artifact)
    key = device.identity.key
    blessing = blessing_of([a_record(identity=device.identity, artifact="c-tiny", tvm=OLD.tvm, ffi=OLD.ffi)])
    assert blessing.baseline
    run = Run(device, TuningStore(tmp_path))
    again = Remeasure([a_plan()], [blessing.baseline], run, BuiltAlready(built, old), tmp_path, file, SilentProgress())
    measure = again.measurer(Comparison(SeriesKey(key, CASE), None, None, Verdict.INCONCLUSIVE))
    assert callable(measure)
    base, head = measure(Arm.BASE), measure(Arm.HEAD)
    assert base.tvm == head.tvm != OLD.tvm, "one runtime ran both"
    assert (base.compiled_with, head.compiled_with) == (OLD, None)
    assert (base.compilers, head.compilers) == (OLD, Releases(tvm=head.tvm, ffi=head.ffi))
    assert file.load().records == [base, head]


def test_the_build_of_a_baseline_that_stands_in_is_measured_on_the_handset_that_is_there(tmp_path: Path) -> None:
    device, built, file = FakeDevice(), things(tmp_path), RecordFile(tmp_path / "records.jsonl")
    blessing = blessing_of([a_record(artifact="c-tiny")])
    assert blessing.baseline
    run = Run(device, TuningStore(tmp_path))
    builder = BuiltAlready(built, built["c-tiny"])
    again = Remeasure([a_plan()], [blessing.baseline], run, builder, tmp_path, file, SilentProgress())
    here = SeriesKey(device.identity.key, CASE)
    measure = again.measurer(Comparison(here, blessing.baseline.side, None, Verdict.INCONCLUSIVE))
    assert callable(measure)
    assert measure(Arm.BASE).identity_key == device.identity.key != blessing.baseline.identity_key


@pytest.mark.parametrize("kept", [True, False])
def test_the_build_of_another_network_is_judged_by_its_own_right_answers(tmp_path: Path, *, kept: bool) -> None:
    device, file = FakeDevice(), RecordFile(tmp_path / "records.jsonl")
    built = things(tmp_path)
    truth = cast(Answers, built["o-tiny"])
    (tmp_path / "new").mkdir()
    save_arrays(tmp_path / "new" / INPUTS, [ANSWER])
    save_arrays(tmp_path / "new" / OUTPUTS, [ANSWER + 1])  # what the device answers is wrong for the new network
    save_arrays(tmp_path / "new" / OTHER_OUTPUTS, [ANSWER])
    answers = {"o-tiny": Answers(tmp_path / "new", reused=True), **({"o-old": truth} if kept else {})}
    old = a_record(identity=device.identity, artifact="c-tiny", network="old", truth="o-old")
    blessing = blessing_of([old])
    assert blessing.baseline
    plan = replace(a_plan(), oracle=replace(a_plan().oracle, payload={"network": "new"}))
    builder = BuiltAlready({**built, **answers}, built["c-tiny"])
    run = Run(device, TuningStore(tmp_path))
    again = Remeasure([plan], [blessing.baseline], run, builder, tmp_path, file, SilentProgress())
    measure = again.measurer(Comparison(SeriesKey(device.identity.key, CASE), None, None, Verdict.INCONCLUSIVE))
    if not kept:
        assert isinstance(measure, str)
        assert measure.startswith("tiny is another network than the blessed one")
        assert file.load().records == []
        return
    assert callable(measure)
    assert measure(Arm.BASE).outcome is Outcome.OK
    assert measure(Arm.HEAD).outcome is Outcome.WRONG_RESULT


def test_the_kernels_of_both_builds_are_watched_and_kept_beside_the_records(tmp_path: Path) -> None:
    device, built, file = FakeDevice(), things(tmp_path), RecordFile(tmp_path / "records.jsonl")
    old = replace(cast(Artifact, built["c-tiny"]), key="c-old")
    blessing = blessing_of([a_record(identity=device.identity, artifact="c-old", tvm=OLD.tvm, ffi=OLD.ffi)])
    assert blessing.baseline
    run = Run(device, TuningStore(tmp_path))
    builder = BuiltAlready(built, old)
    again = Remeasure([a_plan()], [blessing.baseline], run, builder, tmp_path, file, SilentProgress())
    asked = Comparison(SeriesKey(device.identity.key, CASE), None, None, Verdict.INCONCLUSIVE)
    explain = explainer("gate", again)
    assert explain
    (kernel,) = explain(asked)
    assert (kernel.operator, kernel.base_ms, kernel.head_ms) == ("conv2d", 1.5, 1.5)
    base, head = read_profiles(kernels_file(file.path), lambda _: True)
    assert (base.artifact, base.tvm, head.artifact) == ("c-old", OLD.tvm, "c-tiny")
    assert device.steps.count("session") == 2
    assert not file.load().records
    builder.old = None
    with pytest.raises(UsageError, match="the baseline's build c-old is not in this store"):
        explain(asked)


def a_gated_case() -> list[Record]:
    """A slower build, and the baseline's in turns with it: A B B A."""
    head = sessions(13, 3, seed=1, artifact="b" * 24)
    base = sessions(10, 2, seed=2, compiled_with=OLD)
    return [head[0], base[0], head[1], head[2], base[1]]


def test_a_baseline_that_was_run_again_is_not_the_latest_build(tmp_path: Path) -> None:
    records = a_gated_case()
    assert {record.artifact for record in latest_build(records)} == {"b" * 24}
    blessing = blessing_of(records)
    assert blessing.baseline
    assert (blessing.baseline.artifact, blessing.baseline.tvm) == ("b" * 24, records[0].tvm)
    before = blessing_of(sessions(10, 4))
    assert before.baseline
    held_to = Gate({before.key: before.baseline.side}, learn(), Rules(), 16)
    (comparison,) = held_to.compare(sides_of(records), lambda _: "nothing").cases
    assert comparison.verdict is Verdict.SLOWER


def test_a_case_is_run_with_the_settings_of_its_baseline(tmp_path: Path) -> None:
    blessing = blessing_of(sessions(10, settings={"chunk": 64}))
    assert blessing.baseline
    blessing.baseline.save(tmp_path)
    held_to = Gate.read(tmp_path, None, lambda _: True, Rules(), 16, as_shipped=False)
    identity = blessing.baseline.identity_key
    (plan,) = held_to.pinned([a_plan()], identity)
    (other,) = held_to.pinned([a_plan()], "another")
    assert (plan.settings, other.settings) == ({"chunk": 64}, {})


def test_what_compiled_it_is_what_baselines_and_comparisons_name() -> None:
    blessing = blessing_of(sessions(10, compiled_with=OLD))
    assert isinstance(blessing.baseline, Baseline)
    assert (blessing.baseline.tvm, blessing.baseline.ffi) == (OLD.tvm, OLD.ffi)
    (side,) = sides_of(sessions(10, compiled_with=OLD)).values()
    assert side.tvm == OLD.tvm


def test_records_written_before_are_read() -> None:
    plain = json.loads(a_record().line())
    del plain["compiled_with"]
    assert Record.model_validate(plain) == a_record()
