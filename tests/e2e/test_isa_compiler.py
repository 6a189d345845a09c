"""Mesa's compiler itself: set up, put into a sandbox, and given what it makes code of, refuses or does not survive.

It downloads 90 MB the first time, so it runs only where `ADRENO_BENCH_TEST_ISA` is set (`make test-isa`).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.tools.isa import runner, sandbox
from harness.tools.isa.failures import KernelHang, KernelRefused
from harness.tools.isa.kernels import CompiledKernel, compile_kernels
from harness.tools.isa.runner import KernelSource, sources
from harness.tools.isa.toolchain import MesaToolchain, set_up

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("ADRENO_BENCH_TEST_ISA"),
        reason="downloads 90 MB: `make test-isa` sets ADRENO_BENCH_TEST_ISA",
    ),
]
RECORDED = Path(__file__).parents[1] / "fixtures/isa"
WRITE = "write"
"""`ADRENO_BENCH_TEST_ISA=write` records the compiler's output anew, after another version was pinned."""


@pytest.fixture(scope="module")
def toolchain(sidecar_cache: Path) -> MesaToolchain:
    return set_up(sidecar_cache)


def test_it_prints_what_was_recorded(toolchain: MesaToolchain) -> None:
    kernels = sources((RECORDED / "kernels.cl").read_text(encoding="utf-8"))
    lines, hung = runner.run_compiler(toolchain, "a740", kernels, "@mark")
    file = RECORDED / "a740.txt"
    if os.environ["ADRENO_BENCH_TEST_ISA"] == WRITE:
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert not hung
    assert lines == file.read_text(encoding="utf-8").splitlines()


def kernel(name: str, body: str, before: str = "") -> KernelSource:
    text = f"{before}__kernel void {name}(__global float* restrict a) {{\n{body}\n}}\n"
    return KernelSource(name, text, text)


def spilling() -> KernelSource:
    """A kernel with more live values than there are registers, and no array."""
    values = range(250)
    loads = "".join(f"  float v{i} = a[{i}] * a[{i + 300}];\n" for i in values)
    uses = "".join(f"  a[{i}] = v{i} * sum;\n" for i in values)
    total = " + ".join(f"v{i}" for i in values)
    return kernel("spilling", f"{loads}  float sum = {total};\n{uses}")


HUGE = "#define A(x) x x x x x x x x\n#define B(x) A(A(A(x)))\n"


def made(toolchain: MesaToolchain, cache: Path, *kernels: KernelSource) -> list[CompiledKernel]:
    return compile_kernels(toolchain, cache, kernels, ["a740"])["a740"]


@pytest.mark.parametrize("kind", sandbox._KINDS)
def test_what_a_source_does_stays_in_its_sandbox(
    toolchain: MesaToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for other in set(sandbox._KINDS) - {kind}:
        monkeypatch.delitem(sandbox._KINDS, other)
    sandbox.kind.cache_clear()
    monkeypatch.setattr(runner, "KERNEL_DEADLINE_S", 5.0)
    secret = tmp_path / "secret.h"
    secret.write_text("#define SECRET 1\n")
    including = kernel("including", "a[0] = SECRET;", f'#include "{secret}"\n')
    hanging = kernel("hanging", "B(B(a[0] += 1;))", HUGE)
    first, included, hung, last = made(
        toolchain, tmp_path / "cache", kernel("first", "a[0] = 1;"), including, hanging, kernel("last", "a[0] = 2;")
    )
    assert toolchain.sandbox == kind
    assert first.statistics
    assert last.statistics
    assert isinstance(included.failure, KernelRefused)
    assert "file not found" in str(included.failure)
    assert isinstance(hung.failure, KernelHang)
    sandbox.kind.cache_clear()


def test_spills_are_told_from_arrays(toolchain: MesaToolchain, tmp_path: Path) -> None:
    told = made(toolchain, tmp_path, spilling())[0].statistics
    assert told
    assert told.array_bytes == 0
    assert told.spills > 0
    assert told.private_bytes > 0
