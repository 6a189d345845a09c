"""The release's own ordered lists of passes, read from TVM instead of copied here, and how a list is edited.

Everything here takes and returns TVM's objects, which carry no types of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from device_runner.failures import RigFailure
from harness.compile.compiler.compat import tvm
from harness.compile.compiler.releases import tvm_version

Passes = list[Any]


def adreno_relax_passes(target: Any) -> Passes:
    """Return the release's own Relax passes for Adreno in order, from import to code generation."""
    from tvm.relax.backend import adreno

    with target:
        return [*adreno.legalize_passes(target), *adreno.dataflow_lower_passes(target), *adreno.finalize_passes(target)]


def clml_offload_passes(table: Sequence[Any], target: Any) -> Passes:
    """Return the release's own ordered passes that offload to CLML, with this pattern table instead of the release's.

    The list is local to a pass of TVM's, which is run once on an empty module to record it.
    """
    from tvm.relax.backend.adreno import clml

    original = clml.clml_pattern_table
    clml.clml_pattern_table = lambda: list(table)
    try:
        with _recorded_sequential() as recorded:
            clml.OpenCLMLOffLoad()(tvm.IRModule({}))
    finally:
        clml.clml_pattern_table = original
    return [clml.OpenCLMLOffLoadForLLM(target), *recorded]


def adreno_tir_passes() -> Passes:
    """Return the release's own ordered TIR passes for Adreno.

    The list is local to TVM's pipeline function, so the pipeline is run once on an empty module while the `Sequential`
    that it ends in only records its passes.
    """
    from tvm.s_tir.backend.adreno import pipeline

    with _recorded_sequential() as recorded:
        passes = pipeline.default_tir_pipeline()
        run = passes[0] if isinstance(passes, tuple) else passes
        run(tvm.IRModule({}))
    return recorded


@contextmanager
def _recorded_sequential() -> Iterator[Passes]:
    """Yield the passes of the `Sequential` that TVM makes and runs meanwhile, none of which really runs."""
    recorded: Passes = []

    def record(passes: Passes) -> Callable[[Any], Any]:
        recorded.extend(passes)
        return lambda mod: mod

    original = tvm.ir.transform.Sequential
    tvm.ir.transform.Sequential = record
    try:
        yield recorded
    finally:
        tvm.ir.transform.Sequential = original
    if not recorded:
        raise RigFailure(f"TVM {tvm_version()} builds one of its Adreno pipelines in a way that is not known here")


@contextmanager
def tir_pipeline(run: Callable[[Any], Any]) -> Iterator[str]:
    """Yield a name under which `relax.build` finds what runs TIR passes, with the finalising passes of all targets."""
    from tvm.s_tir import pipeline
    from tvm.tirx import compilation_pipeline

    name = "adreno-bench"
    triple = (run, pipeline.finalize_host_passes, pipeline.finalize_device_passes)
    compilation_pipeline.PIPELINE_MAP[name] = lambda: triple  # `register_tir_pipeline` came in the middle of 0.26
    try:
        yield name
    finally:
        compilation_pipeline.PIPELINE_MAP.pop(name, None)


def own_pass(name: str, run: Callable[[Any], Any]) -> Any:
    """Return a pass of ours over a module."""
    return tvm.transform.module_pass(lambda mod, _context: run(mod), opt_level=0, name=f"adreno_bench.{name}")


def replace_last(passes: Passes, name: str, new: Any) -> Passes:
    """Return `passes` with `new` instead of the last pass of that name."""
    index = _last(passes, name)
    return [*passes[:index], new, *passes[index + 1 :]]


def insert_before(passes: Passes, name: str, new: Any) -> Passes:
    """Return `passes` with `new` before the last pass of that name."""
    index = _last(passes, name)
    return [*passes[:index], new, *passes[index:]]


def insert_before_first(passes: Passes, name: str, new: Any) -> Passes:
    """Return `passes` with `new` before the first pass of that name; as they are if there is none."""
    index = next((i for i, each in enumerate(passes) if _bare_name(each) == name), None)
    return passes if index is None else [*passes[:index], new, *passes[index:]]


def before(
    anchor: str, name: str, run: Callable[[Any], Any], make: Any = own_pass, insert: Any = insert_before
) -> Callable[[Passes], Passes]:
    """Return what inserts a pass of ours, `make(name, run)`, before the last pass with the anchor's name."""
    return lambda passes: insert(passes, anchor, make(name, run))


before_first = partial(before, insert=insert_before_first)


def passes_before(passes: Passes, name: str) -> Passes:
    """Return the passes before the last pass of that name."""
    return passes[: _last(passes, name)]


def last_pass(passes: Passes, name: str) -> Any:
    """Return the last pass of that name."""
    return passes[_last(passes, name)]


def _last(passes: Passes, name: str) -> int:
    """Return the index of the last pass with this name, ignoring its namespace, which moved between releases."""
    names = names_of(passes)
    if name not in names:
        raise RigFailure(
            f"TVM {tvm_version()} has no pass {name} that a workaround is anchored to",
            hint="use --as-shipped, or adapt the quirk to this release",
            evidence=" ".join(names),
        )
    return len(names) - 1 - names[::-1].index(name)


def names_of(passes: Passes) -> list[str]:
    """Return the names of passes, without their namespaces."""
    return list(map(_bare_name, passes))


def _bare_name(compiler_pass: Any) -> str:
    return str(compiler_pass.info.name).rpartition(".")[2]
