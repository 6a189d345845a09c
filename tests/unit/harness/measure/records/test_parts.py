"""The parts of a record: what tools add, what is kept of a tool that is not installed, and records of before."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things
from fake_records import virtual_record

from device_runner.device import PeakMemory
from device_runner.names import load
from harness.base import tool
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.measure.context import Run
from harness.measure.facts import Batches, Reference, Sampling, WitnessReport
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.parts import CORE, part_name
from harness.measure.records.record import NotARecord, Record, parse
from harness.measure.tuning import TuningStore
from harness.tools.isa.code import CaseCode, MachineCode
from harness.tools.labelled.part import Score, TopOne
from harness.tools.sustain.part import Sustained

OUTSIDE = '''
from dataclasses import dataclass
from harness.base.tool import Tool

TOOL = Tool("sums", probes=("sums_tool:make_probe",), record_parts={"sums": "sums_tool:Sums"})


@dataclass(frozen=True)
class Sums:
    """Sum of each output."""
    values: list[float]


class SumProbe:
    step = ""
    timed = False

    def __init__(self, work):
        self.work = work

    def __call__(self, program, session, facts):
        yield Sums([float(output.sum()) for output in self.work.truth.expected])


def make_probe(work, prepared, run, step):
    return SumProbe(work)
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of a tool in a folder of somebody else."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sums_tool.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path / "theirs")
    monkeypatch.setenv(tool.VARIABLE, "sums_tool")
    tool.tools.cache_clear()
    yield
    sys.modules.pop("sums_tool", None)
    tool.tools.cache_clear()


def record_of(folder: Path) -> Record:
    run = Run(FakeDevice(), TuningStore(folder / "tunings"))
    return run_case(a_plan(), things(folder / "built"), run, SilentProgress()).record


@pytest.mark.usefixtures("outside")
def test_a_tool_outside_of_the_package_adds_a_probe_and_a_part(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    assert record.outcome is Outcome.OK
    sums = record.part(sys.modules["sums_tool"].Sums)
    assert sums is not None
    assert record.parts["sums"] == {"values": sums.values}
    assert record.wall_ms, "the probes of the main job still measure"


def test_a_part_of_a_tool_that_is_not_installed_is_kept_as_it_is() -> None:
    line = virtual_record(parts={"theirs": {"a": [1, "NaN", None], "b": {}}}).line()
    assert parse(line.encode()).line() == line
    assert json.loads(line)["parts"] == {"theirs": {"a": [1, "NaN", None], "b": {}}}


@pytest.mark.parametrize(
    "part",
    [
        Sampling([2.0], warmed_up=True, inferences=9),
        Reference("k", [1.0], [float("inf")]),
        Batches(8, [1.0], [2.0], None),
        PeakMemory(1, None),
        WitnessReport("TVM", with_judge=True, with_path=False),
        TopOne(9, 8, 8, 9, 5),
        Score("mAP", 0.4, 0.41, 9, 0.4059),
        Sustained(asked_s=5, columns={"at_s": [0.0, None]}),
        CaseCode((MachineCode("a630", "Mesa", ()),)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_part_reads_back_as_it_was(part: object) -> None:
    record = virtual_record(parts=[part])
    assert parse(record.line().encode()).part(type(part)) == part
    assert record.part(type(part)) == part


def test_no_two_parts_share_a_name() -> None:
    names = [*CORE.values(), *(name for name, _ in tool.places("record_parts"))]
    assert len(names) == len(set(names))
    assert all(part_name(load(place)) == name for name, place in tool.places("record_parts"))


def test_a_damaged_part_of_the_main_job_makes_no_record_and_one_of_a_tool_is_refused_when_asked_for() -> None:
    line = virtual_record(parts={"theirs": 1}).line()
    with pytest.raises(NotARecord, match=r"parts\.reference\.ms"):
        parse(line.replace('"theirs":1', '"reference":{"kernel":"k","ms":3,"slowed_ms":[]}').encode())
    record = parse(line.replace('"theirs":1', '"sustained":{"asked_s":"long"}').encode())
    with pytest.raises(UsageError, match=r"tiny-opencl-float32-untuned cannot be read \(sustained\.asked_s"):
        record.part(Sustained)


def old_record(**fields: Any) -> Record:
    """What is read of a line of schema 1 with these fields."""
    now = json.loads(virtual_record().line())
    del now["parts"], now["standalone"], now["owner"]
    return parse(json.dumps({**now, "schema": 1, **fields}).encode())


def test_fields_of_schema_1_become_parts() -> None:
    top_one = {"inputs": 9, "right": 8, "oracle_right": 8, "alike": 9, "least": 5}
    record = old_record(
        ramp_ms=[3.0],
        settled=True,
        reference="k",
        reference_ms=[1.0],
        slowed_ms=[1.3],
        batch=3,
        batched_ms=[1.0],
        synced_ms=[2.0],
        launches=7,
        peak_memory_bytes=5,
        peak_gpu_memory_bytes=None,
        top_one=top_one,
        witness=None,
        offload=None,
        sustained=None,
        isa=[],
    )
    assert record.part(Sampling) == Sampling([3.0], warmed_up=True)
    assert record.reference == Reference("k", [1.0], [1.3])
    assert record.part(Batches) == Batches(3, [1.0], [2.0], 7)
    assert record.part(PeakMemory) == PeakMemory(5, None)
    assert record.part(TopOne) == TopOne(**top_one)
    assert set(record.parts) == {"sampling", "reference", "batches", "memory", "top_one"}
    assert record.standalone is False
    assert parse(record.line().encode()) == record


def test_what_stood_alone_in_schema_1_still_does() -> None:
    record = old_record(sustained={"asked_s": 5.0})
    assert (record.part(Sustained), record.standalone) == (Sustained(asked_s=5.0), True)
    code = {"gpu": "a630", "compiler": "Mesa", "kernels": []}
    identity = {**json.loads(virtual_record().line())["identity"], "kind": "compiler"}
    record = old_record(isa=[code], identity=identity)
    assert (record.part(CaseCode), record.standalone) == (CaseCode((MachineCode("a630", "Mesa", ()),)), True)


def test_a_record_of_schema_1_that_says_little_has_no_parts() -> None:
    record = old_record(warm_up_ms=[], warmed_up=None, reference="", reference_ms=[], slowed_ms=[], batch=None)
    assert record.parts == {}


def test_a_line_of_schema_1_may_lack_fields_that_came_later() -> None:
    assert old_record(ramp_ms=[3.0]).part(Sampling) == Sampling([3.0], warmed_up=None)
    assert old_record(reference="k", reference_ms=[1.0]).reference == Reference("k", [1.0], [])
