"""Which cores of a phone are big, and what is done where they, or the tool that binds to them, are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.stability.cores import KEEP_MASK, MOST_CORES, Binding, big_cores, bound_to_big_cores, clocks_khz
from device_runner.stand_ins.local import LocalTransport
from device_runner.stand_ins.virtual import phone
from device_runner.stand_ins.virtual.phone import PhoneState

OURS = sorted(os.sched_getaffinity(0))
LITTLE, BIG = OURS[0], OURS[-1]


@pytest.mark.parametrize(
    ("clocks", "big"),
    [
        ([2_265, 2_265, 3_148, 3_148, 3_148, 2_956, 2_956, 3_302], [2, 3, 4, 5, 6, 7]),
        ([1_804] * 6 + [2_208, 2_400], [6, 7]),
        ([3_532] * 6 + [4_320] * 2, [6, 7]),
        ([2_000] * 4, []),
        ([], []),
    ],
)
def test_all_but_the_slowest_cores_are_big(clocks: list[int], big: list[int]) -> None:
    assert big_cores(dict(enumerate(clocks))) == big


@given(st.text() | st.lists(st.tuples(st.integers(-9, 10**6), st.integers(-9, 10**20))).map(str))
def test_whatever_a_phone_prints_no_core_is_beyond_reason(printed: str) -> None:
    assert all(0 <= core < MOST_CORES and clock > 0 for core, clock in clocks_khz(printed).items())


def asked(home: Path, **environment: str) -> Binding:
    return bound_to_big_cores(LocalTransport(str(home), environment), str(home))


def with_cores(home: Path, clocks: dict[int, int]) -> Path:
    phone.prepare(home)
    phone.save(home, PhoneState(cores_khz={str(core): clock for core, clock in clocks.items()}))
    return home


@pytest.mark.skipif(len(OURS) < 2, reason="one core has no bigger one beside it")
def test_a_command_is_bound_to_the_big_cores(tmp_path: Path) -> None:
    binding = asked(with_cores(tmp_path, {LITTLE: 1_800_000, BIG: 3_200_000}))
    mask = f"{1 << BIG:x}"
    assert binding == Binding((*KEEP_MASK, "taskset", mask), f"bound to cores {BIG} of 2 (taskset {mask})")
    told = LocalTransport(str(tmp_path)).shell(
        [*binding.prefix, "grep", "Cpus_allowed_list", "/proc/self/status"], timeout_s=10
    )
    assert told.stdout.split()[-1] == str(BIG)


def test_cores_that_are_alike_or_hidden_leave_it_unbound(tmp_path: Path) -> None:
    alike = asked(with_cores(tmp_path / "alike", {0: 2_000_000, 1: 2_000_000}))
    assert alike == Binding((), "not bound: all 2 cores are equally fast")
    assert asked(tmp_path) == Binding((), "not bound: the clocks of the cores cannot be read")


def test_a_phone_without_taskset_goes_on_and_says_so(tmp_path: Path) -> None:
    home, tools = with_cores(tmp_path, {0: 1_800_000, 1: 3_200_000}), tmp_path / "tools"
    tools.mkdir()
    (tools / "taskset").write_text("#!/bin/sh\necho 'sh: taskset: inaccessible or not found' >&2\nexit 127\n")
    (tools / "taskset").chmod(0o755)
    binding = asked(home, PATH=f"{tools}:{os.environ['PATH']}")
    assert binding == Binding((), "not bound: sh: taskset: inaccessible or not found")
