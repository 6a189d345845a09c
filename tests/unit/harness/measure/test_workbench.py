"""Opening a request on a device: what happens meanwhile, and what is undone."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things
from fake_schedules import ORIGIN, a_schedule
from waiting import LONG_S

from device_runner import registry
from device_runner.device import Identity
from device_runner.failures import DeviceLost
from device_runner.runtimes import host
from harness.base.case import Case, Tuning
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Job
from harness.base.suite import Suite
from harness.compile.schedules.database import Schedules
from harness.measure.progress import SilentProgress
from harness.measure.records.record import RecordFile
from harness.measure.workbench import Request, open_suite, open_to_build, open_workbench, opening


class FakeBuilder:
    """Notes what it is asked for, and takes as long as it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.called, self.closed = threading.Event(), threading.Event()

    def __enter__(self) -> FakeBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()

    def build(self, jobs: Iterable[Job]) -> dict[str, Any]:
        self.asked += [job.title for job in jobs]
        self.called.set()
        self.closed.wait(LONG_S)
        return {}


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> FakeBuilder:
    made = FakeBuilder()
    monkeypatch.setattr(Request, "builder", lambda self, progress: made)
    return made


@pytest.fixture
def request_tiny(tmp_path: Path) -> Request:
    paths = ["opencl", "texture"]
    return Request(Suite(models=["tiny"], paths=paths), [Case("tiny", path) for path in paths], tmp_path)


def opened_by(monkeypatch: pytest.MonkeyPatch, wait: threading.Event | None) -> None:
    """A device that takes until then to be opened, and is lost if it takes for ever."""

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[FakeDevice]:
        if wait and not wait.wait(LONG_S):
            raise DeviceLost("nobody asked the oracle meanwhile")
        yield FakeDevice()

    monkeypatch.setattr(registry, "open_device", opened)


def test_on_a_new_machine_the_oracle_is_asked_while_the_runtimes_are_compiled(
    monkeypatch: pytest.MonkeyPatch, builder: FakeBuilder, request_tiny: Request
) -> None:
    monkeypatch.setattr(host, "are_compiled", lambda cache: False)
    opened_by(monkeypatch, builder.called)
    with open_workbench(request_tiny, "virtual", SilentProgress()) as bench:
        assert builder.asked == ["oracle of tiny"]
        assert {plan.oracle.key for plan in bench.plans} == {job.key for job in request_tiny.oracles()}
    assert builder.closed.is_set()


@pytest.mark.parametrize(("name", "compiled"), [("virtual", True), ("a phone", False)])
def test_otherwise_nothing_is_built_before_the_device_is_ours(
    monkeypatch: pytest.MonkeyPatch, builder: FakeBuilder, request_tiny: Request, name: str, compiled: bool
) -> None:
    monkeypatch.setattr(host, "are_compiled", lambda cache: compiled)
    opened_by(monkeypatch, None)
    with open_workbench(request_tiny, name, SilentProgress()):
        assert not builder.asked


def test_a_suite_on_one_device_of_this_host_starts_no_process(
    monkeypatch: pytest.MonkeyPatch, request_tiny: Request, tmp_path: Path
) -> None:
    built = things(tmp_path)

    class Ready(FakeBuilder):
        def build(self, jobs: Iterable[Job]) -> dict[str, Any]:
            return {job.key: built[job.key] for job in jobs}

    opened_by(monkeypatch, None)
    monkeypatch.setattr(Request, "builder", lambda self, progress: Ready())
    file = RecordFile(tmp_path / "records.jsonl")
    with open_suite(request_tiny, ["a phone"], lambda *_: [a_plan()], file, SilentProgress()) as suite:
        (record,) = suite.run()
        assert multiprocessing.active_children() == []
    assert record.outcome is Outcome.OK
    assert file.load().records == [record]
    assert suite.failures == {}


def test_what_is_built_ends_with_a_device_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, builder: FakeBuilder, request_tiny: Request
) -> None:
    monkeypatch.setattr(host, "are_compiled", lambda cache: False)

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[FakeDevice]:
        assert builder.called.wait(LONG_S)
        raise DeviceLost("it is gone")
        yield

    monkeypatch.setattr(registry, "open_device", opened)
    with (
        pytest.raises(DeviceLost, match="it is gone"),
        open_workbench(request_tiny, "virtual", SilentProgress()),
    ):
        pass
    assert builder.closed.is_set()


def test_what_is_built_without_a_device_is_for_the_image_limits_of_every_adreno(
    request_tiny: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device_runner.registry.open_device", lambda *_, **__: pytest.fail("opened a device"))
    monkeypatch.setattr("harness.measure.workbench.make_ready", lambda *_: None)
    with open_to_build(request_tiny, "none", SilentProgress()) as drawn:
        (plan, *_) = drawn.plans
    assert (drawn.identity.image2d_max_width, drawn.identity.image_max_array_layers) == (16384, 2048)
    assert plan.compile.key == request_tiny.plans(Identity("phone", "abc", abi="x86_64"))[0].compile.key


def test_devices_that_are_elsewhere_are_built_for_without_opening_one(
    request_tiny: Request, builder: FakeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device_runner.registry.open_device", None)
    phone = Identity("phone", "1a2b", abi="arm64-v8a")
    with open_to_build(request_tiny, "virtual", SilentProgress(), [phone, phone, Identity("virtual", "v")]) as drawn:
        triples = [plan.compile.payload["request"]["host_triple"] for plan in drawn.plans]
    assert triples == ["aarch64-linux-android"] * 2 + [None] * 2


@pytest.mark.parametrize(
    ("address", "said"),
    [("nonsense", "nonsense is not the address of a scheduler"), ("tcp://h:1", "--builders needs a store")],
)
def test_builders_that_cannot_be_asked(tmp_path: Path, address: str, said: str) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    with pytest.raises(UsageError, match=said):
        Request.read(suite, None, builders=address)


def test_builders_do_not_score_by_a_function_of_this_host(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text('models = [{ onnx = "n.onnx", labelled = "l.npz", score = "m:f" }]\npaths = ["opencl"]\n')
    with pytest.raises(UsageError, match="--builders does not go with `score`"):
        Request.read(suite, None, builders="tcp://h:1")


def test_the_environment_names_the_store_of_a_suite_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    assert Request.read(suite, None).suite.store is None
    monkeypatch.setenv("ADRENO_BENCH_STORE", "s3://bucket/prefix")
    assert Request.read(suite, None).suite.store == "s3://bucket/prefix"


def test_a_plan_has_the_options_that_named_its_model(request_tiny: Request) -> None:
    given = replace(request_tiny, models=" --model 'my tiny.onnx'")
    identity = Identity("phone", "abc", abi="x86_64")
    assert {plan.model_options for plan in given.plans(identity)} == {("--model", "my tiny.onnx")}
    assert {plan.model_options for plan in request_tiny.plans(identity)} == {()}


def test_a_plan_has_the_file_of_schedules_that_was_given_where_it_is_built_with_it(
    request_tiny: Request, tmp_path: Path
) -> None:
    file = tmp_path / "tuned.jsonl"
    Schedules(ORIGIN, (a_schedule(),)).write(file)
    suite = request_tiny.suite.model_copy(update={"schedules": file})
    given = replace(request_tiny, suite=suite, cases=suite.cases, schedules=file)
    options = {plan.case.tuning: plan.model_options for plan in given.plans(Identity("phone", "abc", abi="x86_64"))}
    assert options == {Tuning.UNTUNED: (), Tuning.SCHEDULED: ("--schedules", str(file))}


def test_what_repeats_a_case_names_a_suite_file_unless_it_has_the_usual_name(tmp_path: Path) -> None:
    for name, words in (("suite.toml", f" --suite {tmp_path / 'suite.toml'}"), ("adreno-bench.toml", "")):
        (tmp_path / name).write_text('models = ["tiny"]\npaths = ["opencl"]\n')
        assert Request.read(tmp_path / name, None).models == words


def test_only_the_first_opening_says_that_it_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Path] = []
    monkeypatch.setattr(host, "are_compiled", lambda cache: cache in compiled)
    assert opening(["virtual"], tmp_path) == f"opening virtual ({host.COMPILING})"
    assert opening(["R5CT30"], tmp_path) == "opening R5CT30"
    compiled.append(tmp_path)
    assert opening(["virtual", "virtual-2"], tmp_path) == "opening virtual, virtual-2"
