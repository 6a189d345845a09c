"""Path `clml`: what OpenCL ML takes goes there, the rest is what path `opencl` makes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from harness.base.failures import InvalidKernel
from harness.compile.compiler.compat import clml_symbols, root_operator
from harness.compile.compiler.pass_runner import run_passes
from harness.compile.compiler.passes import Passes, adreno_relax_passes, clml_offload_passes, insert_before, own_pass
from harness.compile.compiler.tir import with_work
from harness.compile.paths.base import BuiltModule, PathFacts, Workaround, edit_relax
from harness.compile.paths.clml.codegen import register
from harness.compile.paths.clml.offload import ATTRIBUTE, describe, offload_of
from harness.compile.paths.clml.patterns import Refusals, pattern_table
from harness.compile.paths.opencl import OpenCLPath


@dataclass(frozen=True)
class ClmlFacts(PathFacts):
    """The numbers of every path, and those of `OffloadReport`."""

    subgraphs: int
    """Offloaded parts; each is one module, built and tuned by itself."""
    subgraph_calls: int
    """How often one inference enters CLML."""
    small_subgraphs: int
    """Number of subgraphs so small that offloading may be slower."""
    half_subgraphs: int
    operators: int
    operators_offloaded: int
    macs: int
    macs_offloaded: int
    boundary_bytes: int


_COUNTS = ("operators", "operators_offloaded", "macs", "macs_offloaded", "boundary_bytes")


@dataclass(frozen=True)
class ClmlPath(OpenCLPath):
    """Parts of the network as JSON graphs for Qualcomm's library. Target `qcom/adreno-opencl-clml`.

    Sources: apache/tvm python/tvm/relax/backend/adreno/clml.py, src/relax/backend/contrib/clml.
    """

    name: str = "clml"
    family: ClassVar[str] = "clml"
    keys: ClassVar[tuple[str, ...]] = (*OpenCLPath.keys, "clml")

    def lower(self, mod: Any, target: Any, workarounds: Sequence[Workaround]) -> Any:
        """TVM's own passes that offload, then those of path `opencl`, all with the workarounds."""
        register()
        with target:
            return run_passes(relax_passes(target, workarounds), mod)

    def check(self, built: BuiltModule) -> None:
        """Check as path `opencl` does, and that every called part is in the library. Raises `InvalidKernel`."""
        super().check(built)
        called = {part["symbol"] for part in _report(built)["subgraphs"]}
        if missing := called - set(clml_symbols(built.executable)):
            raise InvalidKernel(f"the compiler reported success, but left out the CLML part {min(missing)}")

    def facts(self, built: BuiltModule) -> ClmlFacts:
        """Return the noise-free numbers."""
        report = _report(built)
        parts = report["subgraphs"]
        return ClmlFacts(
            **asdict(super().facts(built)),
            subgraphs=len(parts),
            subgraph_calls=sum(part["calls"] for part in parts),
            small_subgraphs=sum(part["may_lose"] for part in parts),
            half_subgraphs=sum(part["half"] for part in parts),
            **{key: report[key] for key in _COUNTS},
        )


def relax_passes(target: Any, workarounds: Sequence[Workaround]) -> Passes:
    """Return the release's own passes with the workarounds; one more leaves the report in the module."""
    refusals: Refusals = {}
    table = pattern_table(workarounds, refusals)
    offload = clml_offload_passes(table, target)
    offload = insert_before(offload, "RunCodegen", _description(refusals, table))
    return edit_relax(with_work([*offload, *adreno_relax_passes(target)]), workarounds)


def _report(built: BuiltModule) -> dict[str, Any]:
    report = offload_of(built.module)
    assert report is not None, "`lower` always leaves it"
    return report


def _description(refusals: Refusals, table: Sequence[Any]) -> Any:
    """Return a pass that changes nothing and leaves the report in the module's attributes."""

    def note(mod: Any) -> Any:
        report = describe(mod, refusals, map(root_operator, (entry[1] for entry in table)))
        return mod.with_attr(ATTRIBUTE, json.dumps(asdict(report)))

    return own_pass("DescribeOffload", note)
