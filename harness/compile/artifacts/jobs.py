"""What worker processes do for the main job: a function for each kind of job in `harness.compile.artifacts.kinds`.

Each takes the fields of the job and the folder for its files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.base.request import CompileRequest
from harness.compile.artifacts import oracle
from harness.compile.artifacts.artifact import CompileResult
from harness.compile.models.spec import FixedInput, InputSpec, Original


def compile_case(job: dict[str, Any], out: Path) -> CompileResult:
    """Compile a model by a path."""
    from harness.compile.artifacts.compile import compile_model

    return compile_model(request_of(job), out)


def compile_reference_kernel(job: dict[str, Any], out: Path) -> CompileResult:
    """Compile the reference kernel."""
    from harness.compile.artifacts.reference_kernel import compile_reference

    return compile_reference(job["request"]["host_triple"], out)


def find_truth(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """Ask a judge outside TVM for the answers of a model."""
    files = job["original"]
    specs = ((each["spec"], each["number"]) for each in files["fixed"])
    fixed = [FixedInput(InputSpec(s["name"], tuple(s["shape"]), s["dtype"]), number) for s, number in specs]
    program = Path(files["program"]) if files["program"] else None
    original = Original(Path(files["onnx"]), program, files["judge"], files["trust"], tuple(fixed))
    return oracle.find_truth(original, _question(job), out)


def ask_llvm(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """Ask LLVM behind TVM's importer for the answers of a model."""
    return oracle.ask_llvm(request_of(job), _question(job), out)


def write_values(job: dict[str, Any], out: Path) -> None:
    """Write every tensor inside a network as a judge outside TVM computes it."""
    oracle.write_values(_question(job), out)


def write_llvm_values(job: dict[str, Any], out: Path) -> None:
    """Write every tensor inside a network as LLVM behind TVM's importer computes it."""
    oracle.write_llvm_values(_question(job), out)


def ask_llvm_in_double(job: dict[str, Any], out: Path) -> None:
    """Ask LLVM behind TVM's importer for the answers of a model in double precision."""
    oracle.ask_llvm_in_double(_question(job), out)


def measure_range(job: dict[str, Any], out: Path) -> None:
    """Write how large the numbers of a network become."""
    from harness.compile.artifacts import values

    values.measure_range(Path(job["request"]["model_file"]), job["seed"], job["inputs"], out)


def request_of(job: dict[str, Any]) -> CompileRequest:
    """Return the request that a job carries."""
    return CompileRequest(**job["request"])


def _question(job: dict[str, Any]) -> oracle.Question:
    model = Path(job["request"]["model_file"])
    inner, asker, score = job.get("inner", False), job.get("asker", ""), job.get("score", "")
    return oracle.Question(model, job["seed"], job["inputs"], job["labelled"], inner, asker, score)
