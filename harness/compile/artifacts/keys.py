"""Under which key the store keeps a thing: a hash of all that decides what it is, and of no path of this machine.

Our own sources are part of it: those that the worker imports, found by reading its imports, so that there is no list to
forget a file in; and what is compiled into a library that the worker loads.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import platform
import re
from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from device_runner.failures import SetupMissing
from device_runner.runtimes.clml import CLML
from device_runner.runtimes.cross_linker import linker
from device_runner.store import key_of, sha256_of
from harness.base.case import Precision
from harness.base.plan import Job
from harness.base.request import CompileRequest
from harness.compile.compiler.releases import judge_versions, versions
from harness.compile.models.spec import Inputs, LabelledData, Original

ROOT = Path(__file__).parents[3]
WORKER, JOBS = "harness.compile.artifacts.worker", "harness.compile.artifacts.jobs"
PACKAGES = ("harness", "device_runner")
_FOR_TYPE_CHECKERS = re.compile(r"^([ \t]*)if [^\n]*TYPE_CHECKING[^\n]*:\n(?:\1[ \t]+[^\n]*\n|[ \t]*\n)*", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*((?:from|import)\s(?:[^\n(#]*\((?:#[^\n]*|[^)#])*\)|[^\n]*))", re.MULTILINE)
"""A statement that imports, also of several lines."""


def compile_job(request: CompileRequest, model_sha256: str, title: str) -> Job:
    """Return the job that makes an artifact."""
    places = {"model_file": model_sha256, "schedules": ""}  # the hash of the second is a field of its own
    facts = {**dataclasses.asdict(request), **places}
    key = key_of({**facts, **versions(), "pipeline": pipeline_version()})
    return Job("compile", key, title, {"request": dataclasses.asdict(request)})


def oracle_job(
    original: Original,
    request: CompileRequest,
    model_sha256: str,
    seed: int,
    model: str,
    inputs: Path | Inputs,
    labelled: LabelledData | None = None,
    *,
    inner: bool = False,
) -> Job:
    """Return the job that finds out the truth about a model, and, in its place or beside it, the one that asks LLVM.

    The truth is the same for every TVM. `request` is of the `cpu` path, and `model_sha256` of the prepared model, with
    the content of its `inputs` or how some are drawn, and the digests of `labelled`.
    """
    files = [sha256_of(file) for file in (original.onnx, original.program) if file]
    asked = dataclasses.asdict(original)
    source = {name: str(value) if isinstance(value, Path) else value for name, value in asked.items()}
    payload = {
        "original": source,
        "request": dataclasses.asdict(request),
        "seed": seed,
        "inputs": plain_inputs(inputs),
        "labelled": "",
        **(labelled.question if labelled else {}),
        "inner": inner,
        "network": key_of({"network": files}),
    }
    facts = {"original": files, "trust": original.trust, "prepared": model_sha256, "seed": seed, "inner": inner}
    facts |= {"fixed": source["fixed"]} if original.fixed else {}
    facts |= {"asker": module_version(labelled.question["asker"].partition(":")[0])} if labelled else {}
    facts |= {"judge": module_version(original.judge.partition(":")[0])} if original.judge else {}
    key = key_of({"truth": facts, **judge_versions(), "pipeline": pipeline_version()})
    compiled = compile_job(request, model_sha256, model).key
    witness = Job(
        "witness", key_of({"witness": compiled, "seed": seed, "inner": inner}), f"LLVM's answer of {model}", payload
    )
    return Job("oracle", key, f"oracle of {model}", payload, otherwise=witness)


def values_job(oracle: Job) -> Job:
    """Return the job that computes every tensor inside an oracle's network, as it is compiled."""
    return Job("values", key_of({"values": oracle.key}), f"values of {oracle.title}", oracle.payload)


def llvm_values_job(oracle: Job) -> Job:
    """Return the job that computes the same tensors by LLVM behind TVM's importer."""
    key = key_of({"llvm values": oracle.key, **versions()})
    return Job("llvm-values", key, f"LLVM's values of {oracle.title}", oracle.payload)


def llvm_double_job(oracle: Job) -> Job:
    """Return the job that asks LLVM behind TVM's importer in double precision."""
    key = key_of({"llvm double": oracle.key, **versions()})
    return Job("llvm-double", key, f"LLVM's answer of {oracle.title} in double precision", oracle.payload)


def llvm_half_job(witness: Job, precision: Precision) -> Job:
    """Return the job that asks LLVM behind TVM's importer in a precision of half-precision numbers."""
    request = {**witness.payload["request"], "precision": precision.value}
    payload = {**witness.payload, "labelled": "", "request": request}
    key = key_of({"LLVM in half": witness.key, "precision": precision.value})
    return Job(witness.kind, key, f"{witness.title} in {precision.value}", payload)


def range_job(oracle: Job, title: str) -> Job:
    """Return the job that measures how large the numbers of an oracle's network become."""
    return Job("range", key_of({"range": oracle.key}), title, oracle.payload)


def plain_inputs(inputs: Path | Inputs) -> str | dict[str, str]:
    """Return a model's inputs as JSON takes them."""
    return str(inputs) if isinstance(inputs, Path) else {name: str(drawn) for name, drawn in inputs.items()}


def reference_job(request: CompileRequest) -> Job:
    """Return the job that makes the reference kernel (`harness.compile.artifacts.reference_kernel`) for a device."""
    facts = {"host_triple": request.host_triple, "linker": request.linker, "pipeline": pipeline_version()}
    key = key_of({"reference": True, **facts, **versions()})
    return Job("reference", key, "reference kernel", {"request": dataclasses.asdict(request)})


def linker_version(triple: str | None) -> str:
    """Return what stands in an artifact's key; empty for this machine's own compiler, or if there is no linker."""
    try:
        return linker(triple).version if triple else ""
    except SetupMissing:  # building says so
        return ""


def toolchain(triple: str | None) -> dict[str, str]:
    """Return what decides a build for a processor besides its request, in which hosts may differ."""
    linkers = {f"a linker for {triple}": linker_version(triple)} if triple else {}
    tvm = {"TVM": versions()["tvm"], "tvm-ffi": versions()["ffi"], "our sources": pipeline_version()}
    return {**tvm, **judge_versions(), "processor": platform.machine(), **linkers}


@functools.cache
def pipeline_version() -> str:
    """Hash of our own sources that decide what is compiled, so that nobody has to remember to raise a number."""
    return digest(ROOT, sources(ROOT))


@functools.cache
def module_version(module: str) -> str:
    """Hash of a tool's module that does jobs, and of all of ours and of the tool's that it imports."""
    package = module.partition(".")[0]
    if package in PACKAGES:
        return digest(ROOT, imported_files(ROOT, [module]))
    spec = find_spec(module)
    assert spec
    assert spec.origin
    file = Path(spec.origin)
    root = (file.parent if file.name == "__init__.py" else file).parents[module.count(".")]
    return key_of({"own": digest(root, imported_files(root, [module], (package,))), "pipeline": pipeline_version()})


def digest(root: Path, files: Iterable[Path]) -> str:
    """Hash of the names and contents of files below a folder."""
    return key_of({str(file.relative_to(root)): sha256_of(file) for file in files})


def sources(root: Path = ROOT) -> list[Path]:
    """Return every file of ours that takes part in a compilation.

    That is each module that the worker and the main job's jobs import, at its top or inside a function, and the C++
    sources of the library that writes CLML modules, which the worker loads.
    """
    compiled = (root / CLML.sources.relative_to(ROOT)).glob("**/*")
    return sorted({*imported_files(root, [WORKER, JOBS]), *(file for file in compiled if file.is_file())})


def imported_files(root: Path, modules: Iterable[str], packages: Collection[str] = PACKAGES) -> set[Path]:
    """Return the files of some packages that these modules import, at their top or inside a function, and their own."""
    files: set[Path] = set()
    waiting, names = list(modules), set[str]()
    while waiting:
        if (name := waiting.pop()) in names:
            continue
        names.add(name)
        waiting += filter(None, [name.rpartition(".")[0]])  # importing a module runs its packages, too
        if file := _file(root, name):
            files.add(file)
            waiting += _imports(file, packages)
    return files


def _file(root: Path, module: str) -> Path | None:
    """Return the file of a module; None for a name inside a module."""
    place = root / module.replace(".", "/")
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.exists()), None)


def _imports(file: Path, packages: Collection[str]) -> Iterator[str]:
    """Yield what a module imports from some packages, but for what is only of use to a type checker.

    Parses import statements only: every command that may build waits for this, and whole files take six times as long.
    """
    code = _FOR_TYPE_CHECKERS.sub("", file.read_text("utf-8"))
    for statement in _IMPORT.findall(code):
        if not any(package in statement for package in packages):
            continue
        try:
            (node,) = ast.parse(statement).body
        except SyntaxError:  # a line of prose
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in packages)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in packages:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
