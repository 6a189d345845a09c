"""What `adreno-bench build` says of a library."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_device import a_plan, things

from device_runner.device import Identity
from harness.base.case import Tuning
from harness.base.failures import CompileFailure, InputRefused, UsageError
from harness.base.plan import Job, Plan
from harness.cli.build import _plain, _refused, _table
from harness.compile.artifacts.artifact import Artifact
from harness.compile.artifacts.planner import host_triple
from harness.measure.progress import SilentProgress
from harness.measure.records.record import NO_DEVICE
from harness.measure.workbench import PlannedRequest, no_device, open_to_build

LARGE = {"pad": {"group": 64, "local_bytes": 74752}}


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        (no_device(), "pad needs 74752 bytes of local memory in a work-group, and an Adreno has 32768"),
        (Identity("phone", "abc", gpu="G", local_memory_bytes=40960), "and G has 40960"),
        (Identity("phone", "abc", gpu="G", local_memory_bytes=98304), ""),
    ],
)
def test_a_library_that_the_device_has_no_room_for_is_named(tmp_path: Path, identity: Identity, said: str) -> None:
    plan: Plan = a_plan()
    made = things(tmp_path)["c-tiny"]
    assert isinstance(made, Artifact)
    large = replace(made, compiled=replace(made.compiled, launches=LARGE))
    bench = PlannedRequest(identity, [plan], cast("Any", None))
    text = _table(bench, {plan.compile.key: large})
    assert said in " ".join(text.split())
    assert ("unsupported" in text) is bool(said)


def test_json_names_the_file_of_each_library(tmp_path: Path) -> None:
    plan: Plan = a_plan()
    made = things(tmp_path)["c-tiny"]
    bench = PlannedRequest(no_device(), [plan], cast("Any", None))
    (case,) = cast("Any", _plain(bench, {plan.compile.key: made}))["cases"]
    assert isinstance(made, Artifact)
    assert case["file"] == str(made.loadable.library)


def test_inputs_that_nobody_can_compute_come_before_a_compile_error() -> None:
    """The oracle is asked about a network that did not compile, and about no other."""
    plan: Plan = a_plan()
    asked: list[str] = []

    def build(jobs: Iterable[Job]) -> dict[str, Any]:
        asked.extend(keys := [job.key for job in jobs])
        return dict.fromkeys(keys, refused)

    refused, failed = InputRefused("dimensions differ", hint="--shape"), CompileFailure("no import")
    bench = PlannedRequest(no_device(), [plan], cast("Any", SimpleNamespace(build=build)))
    assert _refused(bench, {plan.compile.key: failed}) == {plan.compile.key: refused}
    assert asked == [plan.oracle.key]
    assert not _refused(bench, {plan.compile.key: cast("Any", None)})
    assert asked == [plan.oracle.key]


def test_an_unknown_processor_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(UsageError, match=r"there is no processor 'x86': use one of arm64-v8a, aarch64, "):
        no_device("x86")
    assert host_triple(no_device("arm64-v8a")) == "aarch64-linux-android"
    assert host_triple(no_device(platform.machine())) is None


def test_two_cases_with_one_library_are_both_named_and_one_case_for_two_like_devices_once() -> None:
    """As an untuned case, and a tuned one of which the search changed nothing."""
    one = a_plan()
    other = replace(one, case=replace(one.case, tuning=Tuning.TUNED))
    assert one.compile.key == other.compile.key
    request: Any = SimpleNamespace(
        paths=(), cache=Path(), plans=lambda _: [one, other], builder=lambda _: nullcontext(None)
    )
    with open_to_build(request, NO_DEVICE, SilentProgress(), [no_device(), no_device("arm64-v8a")]) as bench:
        assert [plan.case.id for plan in bench.plans] == [one.case.id, other.case.id]
