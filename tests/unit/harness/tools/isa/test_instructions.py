"""Two builds in words, beside what a real GPU took."""

from __future__ import annotations

from typing import Any

import pytest

from harness.compile.compiler.tir import OperatorWork
from harness.tools.isa.code import KernelCode, MachineCode
from harness.tools.isa.instructions import GpuBuild, in_words
from harness.tools.shared.kernels.profile import Operator, Profile


def work(function: str, channels: int) -> OperatorWork:
    shapes = [[1, channels, 8, 8], [channels, channels, 3, 3], [1, channels, 8, 8]]
    return OperatorWork(function, shapes, 1, 1, 1)


def kernel(name: str, run: int | None, waves: int = 16, spills: int = 0) -> KernelCode:
    return KernelCode(name, name, name, "", 1, 1, run, 4, waves, spills)


def build(case: str, work: list[OperatorWork], *kernels: KernelCode) -> GpuBuild:
    return GpuBuild(case, case, MachineCode("a740", "Mesa 1", kernels), work)


HEAD = build(
    "net-texture-float32-untuned",
    [work("fused_conv2d_NCHWc", 8), work("fused_conv2d_NCHWc1", 16)],
    kernel("fused_conv2d_NCHWc_kernel", 10_000_000, waves=4, spills=3),
    kernel("fused_conv2d_NCHWc_kernel_1", 50_000_000, waves=8),
    kernel("fused_conv2d_NCHWc1_kernel", 2_000_000),
)
BASE = build(
    "net-opencl-float32-untuned",
    [work("fused_conv2d", 8), work("fused_conv2d5", 16)],
    kernel("fused_conv2d_kernel", 20_000_000),
    kernel("fused_conv2d5_kernel", 4_000_000),
)


def profile(case: str, *ms: float, gpu: str = "G") -> Profile:
    side = HEAD if case == HEAD.case else BASE
    operators = tuple(
        Operator(function=one.function, kernels=("k",), launches=1, ms=time, threads=1, work=one)
        for one, time in zip(side.work, ms, strict=True)
    )
    told: dict[str, Any] = {"kernels_ms": sum(ms), "span_ms": 1.0, "wall_ms": 1.0, "artifact": "a", "tvm": "0"}
    return Profile(case=case, identity_key=gpu, gpu=gpu, operators=operators, **told)


def test_kernels_of_one_operator_are_told_together_whatever_they_are_called() -> None:
    first, conv, small = in_words(HEAD, BASE, [])
    assert "runs 62 M weighted instructions, net-opencl-float32-untuned 24 M (2.58 times)" in first
    assert conv == "conv2d 8x8x3x3 to 8x8x8: 60 M against 20 M (3 times); 8 waves against 16, 3 spills against 0."
    assert small == "conv2d 16x16x3x3 to 16x8x8: 2 M against 4 M (0.5 times)."


def test_a_real_gpu_is_told_beside_it_and_where_it_says_otherwise() -> None:
    profiles = [profile(HEAD.case, 3.0, 2.0), profile(BASE.case, 1.0, 1.0)]
    *_, conv, small, last = in_words(HEAD, BASE, profiles)
    assert "G took 3 ms against 1." in conv
    assert "G took 2 ms against 1, the other way round." in small
    assert last == (
        "Of 2 operators that both have, the side with more instructions is the slower one on G in 1; by the time that "
        "they differ in, in 67%."
    )


@pytest.mark.parametrize(
    "profiles",
    [
        [profile(HEAD.case, 3.0, 2.0)],
        [profile(HEAD.case, 3.0, 2.0), profile(BASE.case, 1.0, 1.0, gpu="another")],
    ],
)
def test_profiles_of_one_side_or_of_two_gpus_say_nothing(profiles: list[Profile]) -> None:
    assert list(in_words(HEAD, BASE, profiles)) == list(in_words(HEAD, BASE, []))


def test_what_is_not_known_is_said_to_be() -> None:
    unknown = build(HEAD.case, list(HEAD.work), kernel("fused_conv2d_NCHWc_kernel", None))
    told = " ".join(in_words(unknown, BASE, []))
    assert "runs an unknown number of weighted instructions" in told
    assert "conv2d 16x16x3x3 to 16x8x8: only there, 4 M." in told
