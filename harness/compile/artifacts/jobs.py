"""What worker processes do for the main job: a function for each kind of job in `harness.compile.artifacts.kinds`.

Each takes the fields of the job and the folder for its files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.base.request import CompileRequest
from harness.compile.artifacts import oracle
from harness.compile.artifacts.artifact import CompileResult
from harness.compile.artifacts.compile import compile_model
from harness.compile.artifacts.reference_kernel import compile_reference
from harness.compile.models.spec import FixedInput, InputSpec, Original


def compile_case(job: dict[str, Any], out: Path) -> CompileResult:
    """Compile a model by a path."""
    return compile_model(request_of(job), out)


def compile_reference_kernel(job: dict[str, Any], out: Path) -> CompileResult:
    """Compile the reference kernel."""
    return compile_reference(job["request"]["host_triple"], out)


def find_truth(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """Ask a judge outside TVM for the answers of a model."""
    files = job["original"]
    specs = ((each["spec"], each["number"]) for each in files["fixed"])
    fixed = [FixedInput(InputSpec(s["name"], tuple(s["shape"]), s["dtype"]), number) for s, number in specs]
    program = Path(files["program"]) if files["program"] else None
    original = Original(Path(files["onnx"]), program, files["judge"], files["trust"], tuple(fixed))
    return oracle.find_truth(original, oracle.Question.of(job), out)


def ask_llvm(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """Ask LLVM behind TVM's importer for the answers of a model."""
    return oracle.ask_llvm(request_of(job), oracle.Question.of(job), out)


def request_of(job: dict[str, Any]) -> CompileRequest:
    """Return the request that a job carries."""
    return CompileRequest(**job["request"])
