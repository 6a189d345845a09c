"""Kinds of jobs: what a worker process calls for each, and what that leaves in the store. Tools add theirs."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.tool import JobKind, tools

JOBS = "harness.compile.artifacts.jobs"
ORACLE = "the oracle"

KINDS: Mapping[str, JobKind] = {
    "compile": JobKind(f"{JOBS}:compile_case", library=True),
    "reference": JobKind(f"{JOBS}:compile_reference_kernel", library=True),
    "oracle": JobKind(f"{JOBS}:find_truth", author=ORACLE),
    "witness": JobKind(f"{JOBS}:ask_llvm"),
    "values": JobKind(f"{JOBS}:write_values", author=ORACLE),
    "llvm-values": JobKind(f"{JOBS}:write_llvm_values"),
    "range": JobKind(f"{JOBS}:measure_range", author=ORACLE),
}
"""Those of the main job."""


def job_kind(name: str) -> JobKind:
    """Return a kind of the main job's or of a tool's by its name. Raises KeyError if nobody has such jobs."""
    return KINDS[name] if name in KINDS else {kind: job for tool in tools() for kind, job in tool.jobs.items()}[name]
