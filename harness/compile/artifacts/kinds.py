"""Kinds of jobs: what a worker process calls for each, and what that leaves in the store. Tools add theirs."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.tool import JobKind, tools

ORACLE = "the oracle"

KINDS: Mapping[str, JobKind] = {
    "compile": JobKind("harness.compile.artifacts.jobs:compile_case", library=True),
    "reference": JobKind("harness.compile.artifacts.jobs:compile_reference_kernel", library=True),
    "oracle": JobKind("harness.compile.artifacts.jobs:find_truth", author=ORACLE),
    "witness": JobKind("harness.compile.artifacts.jobs:ask_llvm"),
    "values": JobKind("harness.compile.artifacts.oracle:write_values", author=ORACLE),
    "llvm-values": JobKind("harness.compile.artifacts.oracle:write_llvm_values"),
    "llvm-double": JobKind("harness.compile.artifacts.oracle:ask_llvm_in_double"),
    "range": JobKind("harness.compile.artifacts.values:measure_range", author=ORACLE),
}
"""Those of the main job."""


def job_kind(name: str) -> JobKind:
    """Return a kind of the main job's or of a tool's by its name. Raises KeyError if nobody has such jobs."""
    return KINDS[name] if name in KINDS else {kind: job for tool in tools() for kind, job in tool.jobs.items()}[name]
