"""One model to one library, in this process. Run it in a worker: TVM may crash, hang or eat all memory."""

from __future__ import annotations

import os
import re
import shutil
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from device_runner.disk import disk_full, nearly_full
from device_runner.failures import Failure, RigFailure, SetupMissing
from device_runner.runtimes.cross_linker import linker
from harness.base.case import Precision
from harness.base.failures import CompileFailure
from harness.base.request import CompileRequest
from harness.compile.artifacts.artifact import KERNELS, LIBRARY, CompileResult
from harness.compile.compiler.compat import (
    array_of,
    is_constant,
    opencl_source,
    operator_name,
    rebind_main,
    relax,
    tvm,
    type_of,
)
from harness.compile.compiler.pass_runner import LOG, StepFailed
from harness.compile.compiler.passes import own_pass
from harness.compile.compiler.releases import host_operators, onnx_operators, tvm_version
from harness.compile.compiler.tir import long_names, work_of
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.onnx_read import load
from harness.compile.models.outline import require_known, require_no_branch, require_on_device
from harness.compile.models.spec import InputSpec
from harness.compile.paths import PATHS
from harness.compile.paths.base import BuiltModule, CompilationPath, ImageLimits, Workaround, edit_model, ignore_module
from harness.compile.paths.clml.offload import offload_of
from harness.compile.paths.effects import watch
from harness.compile.paths.lowered_module import add_host_entry, launches, outputs, vdevices
from harness.compile.quirks import quirks_of
from harness.compile.quirks.constants import compute_constants
from harness.compile.schedules.apply import PortableSchedules, RecordedSchedules, ScheduleApplier
from harness.compile.schedules.database import read_as

_COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
"""The compilers that TVM looks for, in this order."""
_MESSAGE = "Error message: "
_OPERATOR = re.compile(r"ir\.Op\(.*?\bname=\"([\w.]+)\".*\)")
"""How TVM prints an operator."""
_PRODUCTS = ("relax.matmul", "relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")
_TRIANGLES = ("relax.tril", "relax.triu")
_MOVES = ("relax.strided_slice", "relax.call_tir")
_OURS = Path(__file__).parents[2]


def compile_model(request: CompileRequest, out_dir: Path) -> CompileResult:
    """Compile a model and write its library into `out_dir`. Raises `ModelError`, `CompileFailure`, `RigFailure`."""
    started, cpu_started = time.perf_counter(), _cpu_s()
    path, target = PATHS[request.path], target_of(request)
    table = quirks_of(request.quirks)
    effective = {quirk.id for quirk in table if quirk.essential}  # part of how the paths always build
    quirks = watch(table, effective)
    mod, inputs = import_request(request, quirks)
    schedules = _schedules(request)
    with stepping("lower"):
        module = path.lower(mod, target, [*quirks, *schedules])
    tir: list[Any] = []
    built = build_module(path, module, target, quirks, tir.append)
    if built.source:
        (out_dir / KERNELS).write_text(built.source, encoding="utf-8")
    path.check(built)
    LOG.info("link")
    export(built.executable, out_dir / LIBRARY, request.host_triple)
    return CompileResult(
        library=LIBRARY,
        vdevices=vdevices(module),
        inputs=[(spec.name, list(spec.shape), spec.dtype) for spec in inputs],
        outputs=outputs(module),
        quirks=[quirk.id for quirk in quirks],
        effective_quirks=[quirk.id for quirk in quirks if quirk.id in effective],
        facts=asdict(path.facts(built)),
        offload=offload_of(module),
        launches={name: asdict(launch) for mod in tir for name, launch in launches(module, mod, built.source).items()},
        work=[asdict(work) for work in work_of(module)],
        long_names=long_names(module),
        compile_s=time.perf_counter() - started,
        compile_cpu_s=_cpu_s() - cpu_started,
        schedules=next((applied.report for applied in schedules), None),
    )


def _cpu_s() -> float:
    """Seconds of processors that this process and those that it waited for have had."""
    return sum(os.times()[:4])


def build_module(
    path: CompilationPath, module: Any, target: Any, quirks: Sequence[Any], see: Callable[[Any], None] = ignore_module
) -> BuiltModule:
    """Compile what a path has lowered, with both entries. `see` is told the module after all TIR passes."""
    with stepping("build"):
        executable = path.build(add_host_entry(module), target, quirks, see)
        return BuiltModule(module, executable, opencl_source(executable))


def target_of(request: CompileRequest) -> Any:
    """TVM's target of a request."""
    limits = ImageLimits(request.image2d_max_width, request.image2d_max_height, request.image_max_array_layers)
    return PATHS[request.path].target(limits, request.host_triple)


def import_request(
    request: CompileRequest, workarounds: Sequence[Workaround] | None = None
) -> tuple[Any, tuple[InputSpec, ...]]:
    """Return the model of a request in TVM, with the workarounds and in its precision, and its inputs."""
    with stepping("import"):
        quirks = quirks_of(request.quirks) if workarounds is None else workarounds
        if PATHS[request.path].family == "clml":
            require_no_branch(load(Path(request.model_file)))
        mod, inputs = import_model(Path(request.model_file), quirks, for_device=request.path != "cpu")
        return with_precision(edit_model(mod, quirks), Precision(request.precision)), inputs


def _schedules(request: CompileRequest) -> list[ScheduleApplier]:
    """Return what gives the network's tasks the schedules that the request names; nothing if it names none."""
    if not request.schedules:
        return []
    schedules = read_as(Path(request.schedules), request.schedules_sha256)
    records, here = schedules.of(request.path), tvm_version()
    if schedules.origin.tvm == here:
        return [ScheduleApplier(RecordedSchedules(records))]
    return [ScheduleApplier(PortableSchedules(records.values(), target_of(request)), ported_from=schedules.origin.tvm)]


def import_model(
    file: Path, quirks: Sequence[Workaround] = (), *, for_device: bool = False
) -> tuple[Any, tuple[InputSpec, ...]]:
    """Read an ONNX file into TVM.

    Raises `ModelError`, and `UnsupportedOperator` for what TVM cannot read or misreads, or cannot run but in this
    process.
    """
    from tvm.relax.frontend.onnx import from_onnx

    model = load(file)
    inputs = input_specs(model)
    require_known(model, onnx_operators())
    if for_device:
        require_on_device(model, host_operators())
    for look in (quirk.edits.network for quirk in quirks if quirk.edits.network):
        look(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about renamed inputs, which are passed by position
        try:
            mod = from_onnx(model, shape_dict={spec.name: list(spec.shape) for spec in inputs})
            if any(node.op_type == "If" for node in model.graph.node):  # around which it begins no block of data flow
                mod = relax.transform.ConvertToDataflow()(mod)
        except Exception as error:  # TVM raises errors of every kind
            raise StepFailed("from_onnx", _node_of(error), error) from error
    return mod, inputs


def _node_of(error: Exception) -> str:
    """Return the node that the importer was at, which only the local variables of its loop know."""
    for frame, _line in traceback.walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("node")
        if hasattr(node, "op_type"):
            return f"{node.op_type} {(node.name or node.output[0])[:60]!r}"
    return ""


def with_precision(mod: Any, precision: Precision) -> Any:
    """float16 storage where TVM's policy allows it; `out_dtype` is what convolutions and products accumulate in.

    Constants are computed first, or TVM computes them in halves also for what stays float32 and is judged so. Products
    of integers stay, because no half holds what they come to.
    """
    if precision is Precision.FLOAT32:
        return mod
    accumulator = "float16" if precision is Precision.FLOAT16 else "float32"
    fold = [relax.transform.Normalize(), *compute_constants([relax.transform.FoldConstant()])]
    mixed = relax.transform.ToMixedPrecision(out_dtype=accumulator)
    passes = [own_pass("BeforeMixing", _before_mixing), mixed, own_pass("AfterMixing", _after_mixing)]
    halved = tvm.transform.Sequential([*fold, *passes, *fold])(mod)
    return halved if '"float16"' in halved.script() else mod


def _before_mixing(mod: Any) -> Any:
    """Turn products of integers, as the preparation writes them, into calls of functions, which TVM leaves as they are.

    Their operand is integers of 8 bits less a zero point, a part of them, or them padded; their weight is a constant.
    So is a triangle, whose diagonal TVM takes for a tensor. And an output that is an item of a tuple is reshaped to its
    own shape: TVM does not know the type of the item.
    """
    integers = set[Any]()

    def hide(binding: Any) -> Any:
        call, name = binding.value, operator_name(binding.value)
        if isinstance(call, relax.TupleGetItem) and not isinstance(binding.var, relax.DataflowVar):
            return relax.VarBinding(binding.var, relax.op.reshape(call, type_of(call).shape))
        whole = name == "relax.dequantize" and is_constant(call.args[1]) and (array_of(call.args[1]) == 1).all()
        if whole or (name in _MOVES and not integers.isdisjoint(relax.analysis.free_vars(call))):
            integers.add(binding.var)
        product = name in _PRODUCTS and call.args[0] in integers and is_constant(call.args[1])
        if not product and name not in _TRIANGLES:
            return binding
        hidden = relax.Call(relax.ExternFunc(name), call.args, call.attrs, [type_of(call)])
        return relax.VarBinding(binding.var, hidden)

    return rebind_main(mod, hide)


def _after_mixing(mod: Any) -> Any:
    """Turn such calls into products again."""

    def show(binding: Any) -> Any:
        call = binding.value
        name = str(getattr(getattr(call, "op", None), "global_symbol", ""))
        if name not in (*_PRODUCTS, *_TRIANGLES):
            return binding
        return relax.VarBinding(binding.var, relax.Call(tvm.ir.Op.get(name), call.args, call.attrs))

    return rebind_main(mod, show)


def export(executable: Any, library: Path, host_triple: str | None) -> None:
    """Link with this machine's C++ compiler, or with a linker for the device's CPU."""
    if not host_triple and not any(map(shutil.which, _COMPILERS)):
        raise SetupMissing("there is no C++ compiler to link libraries with", hint="sudo apt-get install g++")
    fcompile = _exporter(host_triple) if host_triple else None
    try:
        executable.export_library(str(library), fcompile=fcompile)
    except (RuntimeError, OSError) as error:
        full = disk_full(error, library.parents[1]) or nearly_full(str(error), library.parents[1])
        raise full or RigFailure(f"{library.name} could not be linked", evidence=str(error)) from error


def _exporter(triple: str) -> Callable[..., None]:
    """Return what `Executable.export_library` takes as `fcompile`. Raises `SetupMissing`."""
    chosen = linker(triple)

    def link(out: str, objects: Sequence[str], options: object = None, **_: object) -> None:
        # A network that CLML runs whole has no code for the host: in its place TVM writes a C file of one semicolon.
        files = [file for file in map(Path, objects) if file.suffix != ".c" or file.read_bytes().strip() != b";"]
        chosen.link(files, Path(out), triple)

    link.output_format = "so"  # type: ignore[attr-defined]  # how TVM asks what is made
    link.get_target_triple = lambda: triple  # type: ignore[attr-defined]
    return link


@contextmanager
def stepping(name: str) -> Iterator[None]:
    """Say what is being done, and turn whatever TVM raises into a `CompileFailure` that quotes it.

    Raises RigFailure instead for a name of TVM's that our own code asks for in vain.
    """
    LOG.info(name)
    try:
        yield
    except Failure:
        raise
    except Exception as error:  # TVM raises errors of every kind
        if disk_full(error):
            raise  # no fault of TVM's: the worker says which disk
        raised, place = (error.error, f", in {error.place}") if isinstance(error, StepFailed) else (error, "")
        reason = quote(raised)
        if ours := asked_by_us(raised):
            raise RigFailure(
                f"TVM {tvm_version()} lacks what {ours} asks of it: {reason}",
                hint="this harness does not know that TVM yet: see docs/how-to/own-tvm.md",
                evidence=traceback.format_exc(),
            ) from error
        raise CompileFailure(
            f"TVM failed to {name} the model{place}: {type(raised).__name__}: {reason}", evidence=traceback.format_exc()
        ) from error


def quote(error: Exception) -> str:
    """Return TVM's message in one line, without representations of its objects.

    A schedule's error has a dump of the kernel before its message.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    messages = (line.removeprefix(_MESSAGE).partition(". ")[0] for line in lines if line.startswith(_MESSAGE))
    return _OPERATOR.sub(r"\1", next(messages, lines[0]))


def asked_by_us(error: Exception) -> str:
    """Return where our own code asked for a name that is not there, as `compiler/passes.py, tir_pipeline`; else empty.

    TVM's interfaces move between its commits. That is no defect of a path, and TVM is not to be blamed for it.
    """
    stack = traceback.extract_tb(error.__traceback__)
    # Without those of a module that comes late, which passes on what it is asked for.
    frames = [frame for frame in stack if frame.name != "__getattr__" and "importlib" not in frame.filename]
    if not frames or not isinstance(error, (AttributeError, ImportError)):
        return ""
    file = Path(frames[-1].filename)
    return f"{file.relative_to(_OURS)}, {frames[-1].name}" if file.is_relative_to(_OURS) else ""
