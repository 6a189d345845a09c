"""One task of a network as a library of its own, with a schedule that is tried: what `adreno-bench tune` runs.

Tasks are taken where the path's own lowering has them, just before the first schedule, and a candidate goes through all
that follows there: the same passes with the same workarounds as the network. Inputs and the output are plain buffers,
so that any device can be given them; what the task has in images is copied there and back by kernels beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from device_runner.device import Array
from harness.base.failures import CompileFailure
from harness.base.request import CompileRequest
from harness.compile.artifacts.artifact import INPUTS, KERNELS, LEEWAY, LIBRARY, OUTPUTS, CompileResult, save_arrays
from harness.compile.artifacts.compile import build_module, export, import_request, stepping, target_of
from harness.compile.artifacts.values import inputs_of
from harness.compile.compiler.compat import (
    dtype_of,
    memory_scope,
    operator_name,
    tensor_type,
    tir_function,
    tuple_fields,
    type_of,
    without_attributes,
)
from harness.compile.compiler.pass_runner import StepFailed
from harness.compile.compiler.passes import before_first, names_of
from harness.compile.compiler.tir import SCHEDULE
from harness.compile.models.spec import InputSpec
from harness.compile.oracle.leeway import SINGLE, Measured, save_leeway
from harness.compile.oracle.rounding import AMOUNT, DRAWS, farthest, relative_movement
from harness.compile.paths import PATHS
from harness.compile.paths.base import Edits
from harness.compile.paths.cpu import cpu_machine, run_on_cpu
from harness.compile.paths.lowered_module import calls_in, vdevices
from harness.compile.quirks import quirks_of
from harness.compile.schedules.database import ThreadLimits
from harness.compile.schedules.spaces import space_of
from harness.compile.schedules.tasks import put_back, shapes_of, task_of, unscheduled_functions
from harness.compile.schedules.trace import check, plain
from harness.tools.tune.drawing import schedule_of

TASKS, FUNCTIONS = "tasks.json", "functions.json"
TRACE = "trace.json"
"""File beside a candidate's library, with its schedule."""
TASK = "task"
"""What the function of a candidate is called, and so its kernels: `task_kernel`, `task_kernel_1`."""
INTO = "adreno_bench.into"
"""Attribute of a function that copies a tensor: the memory that it is copied to."""
LONGEST_SOURCE_BYTES = 128_000
"""Longest source of a candidate. Unrolled loops grow without bound, take a driver minutes, and are seldom faster."""
SEED = 20_261
"""Seed of a task's inputs."""


def find_tasks(job: Mapping[str, Any], out: Path) -> None:
    """Lower a network up to its first schedule, and write what its tasks are and their functions. Worker only."""
    import tvm

    request = CompileRequest(**job["request"])
    path, quirks, modules = PATHS[request.path], quirks_of(request.quirks), []
    mod, _ = import_request(request)

    def look(module: Any) -> Any:
        modules.append(module.clone())
        raise _Seen

    with stepping("lower"):
        try:
            see = PassEdits("SeeTasks", Edits(relax=before_first(SCHEDULE, "SeeTasks", look)))
            path.lower(mod, target_of(request), [*quirks, see])
        except StepFailed:
            if not modules:
                raise
    calls, functions = _calls(modules[0]), unscheduled_functions(modules[0])
    tasks = {name: function for name, function in functions.items() if name in calls}
    target = target_of(request)
    entries = [
        {
            "task": task_of(function),
            "name": name,
            "calls": calls[name],
            "shapes": shapes_of(function),
            "tunable": space_of(function, target, ThreadLimits()) is not None,
        }
        for name, function in tasks.items()
    ]
    (out / TASKS).write_text(json.dumps(entries), encoding="utf-8")
    (out / FUNCTIONS).write_text(tvm.ir.save_json(tvm.IRModule(tasks)), encoding="utf-8")


@dataclass(frozen=True)
class PassEdits:
    """A change of the passes of a path, which takes it as it takes a workaround."""

    id: str
    edits: Edits


FROM_SCHEDULES = PassEdits("from-schedules", Edits(relax=lambda passes: passes[names_of(passes).index(SCHEDULE) :]))
"""Leaves out all Relax passes before the first schedule: for a module that went through them already."""


class _Seen(Exception):
    """The tasks are known, and nothing that follows is needed."""


def _calls(mod: Any) -> dict[str, int]:
    """Return how often `main` calls each function that takes tensors alone and makes one."""
    import tvm

    calls: dict[str, int] = {}
    for call in calls_in(mod["main"]):
        if operator_name(call) != "relax.call_tir" or len(call.args) != 2:
            continue
        if isinstance(call.args[0], tvm.ir.GlobalVar) and tuple_fields(type_of(call)) is None:
            name = str(call.args[0].name_hint)
            calls[name] = calls.get(name, 0) + 1
    return calls


def answer_task(job: Mapping[str, Any], out: Path) -> None:
    """Write the inputs that are drawn for one task, LLVM's answer to them, and what rounding does. Worker only."""
    name: str = job["name"]
    function = _in_buffers(_function(job))
    with stepping("build"):
        machine = cpu_machine(_network(function, {}))

    specs = [InputSpec(f"p{index}", shape, dtype) for index, (shape, dtype, _) in enumerate(_tensors(function)[:-1])]
    for drawn in ({}, {spec.name: "uniform(0.5, 1.5)" for spec in specs if spec.dtype.startswith("float")}):
        inputs = list(inputs_of(drawn, specs, SEED).values())
        answers = run_on_cpu(machine, inputs)
        if np.isfinite(answers[0]).all():
            break
    else:
        raise CompileFailure(f"LLVM's answer for {name} is not finite, so nothing can be compared with it")
    save_arrays(out / INPUTS, inputs)
    save_arrays(out / OUTPUTS, answers)
    save_leeway(out / LEEWAY, measure_task_rounding(partial(run_on_cpu, machine), inputs, answers))


def build_candidate(job: Mapping[str, Any], out: Path) -> CompileResult:
    """Build one task with the schedule of a seed within a device's limits, or with TVM's own if that is None.

    Worker only. Raises CompileFailure: for a seed that no schedule belongs to as well.
    """
    import tvm

    started = time.perf_counter()
    request = CompileRequest(**job["request"])
    path, quirks, target = PATHS[request.path], quirks_of(request.quirks), target_of(request)
    function = _function(job)
    with stepping("schedule"):
        scheduled, trace = _with_schedule(function, target, job["seed"], ThreadLimits(**job["limits"]))
    scopes = _scopes(target, function)
    with stepping("lower"), target:
        mod = _network(scheduled, scopes)
        if any(scope != "global" for scope in scopes):
            mod = tvm.relax.transform.SpecializePrimFuncBasedOnCallSite()(mod)
        network = path.lower(mod, target, [*quirks, FROM_SCHEDULES])
    built = build_module(path, network, target, quirks)
    path.check(built)
    if len(built.source) > LONGEST_SOURCE_BYTES and trace is not None:
        raise CompileFailure(f"its source is longer than {LONGEST_SOURCE_BYTES // 1000} kB")
    (out / KERNELS).write_text(built.source, encoding="utf-8")
    export(built.executable, out / LIBRARY, request.host_triple)
    (out / TRACE).write_text(json.dumps(trace), encoding="utf-8")
    tensors = _tensors(function)
    return CompileResult(
        library=LIBRARY,
        vdevices=vdevices(network),
        inputs=[(f"p{index}", list(shape), dtype) for index, (shape, dtype, _) in enumerate(tensors[:-1])],
        outputs=1,
        quirks=[quirk.id for quirk in quirks],
        facts=asdict(path.facts(built)),
        compile_s=time.perf_counter() - started,
    )


def _with_schedule(function: Any, target: Any, seed: int | None, limits: ThreadLimits) -> tuple[Any, Any]:
    """Return the function with its schedule, and the trace of that: None for TVM's own, which passes give it."""
    if seed is None:
        return function, None
    space = space_of(function, target, limits)
    schedule = schedule_of(space, seed) if space else None
    if schedule is None:
        raise CompileFailure("no device could run the schedules of this seed")
    return put_back(schedule.mod["main"], function), check(plain(schedule.trace.as_json()))


def _function(job: Mapping[str, Any]) -> Any:
    """Return the function of the task that a job names."""
    import tvm

    return tvm.ir.load_json(Path(job["functions"]).read_text(encoding="utf-8"))[job["name"]]


def _tensors(function: Any) -> list[tuple[tuple[int, ...], str, str]]:
    """Shape, number format and memory scope of each parameter; what it writes is the last."""
    tensors = []
    for parameter in function.params:
        buffer = function.buffer_map[parameter] if hasattr(function, "buffer_map") else parameter
        shape = tuple(int(extent) for extent in buffer.shape)
        tensors.append((shape, dtype_of(buffer), memory_scope(function, parameter)))
    return tensors


def _in_buffers(function: Any) -> Any:
    """Return the function with all its tensors in plain memory, as LLVM has them."""
    text = without_attributes(function, ("global_symbol", "target", "scoped")).script(show_meta=True)
    for _, _, scope in _tensors(function):
        text = text.replace(f', scope="{scope}"', "")
    return tir_function(text)


def _scopes(target: Any, function: Any) -> Mapping[str, Any]:
    """Return the virtual devices of a function's tensors by scope, plain memory first; nothing if that is all."""
    names = dict.fromkeys(["global", *(scope for _, _, scope in _tensors(function))])
    if len(names) == 1:
        return {}
    return {scope: virtual_device(target, scope) for scope in names}


def virtual_device(target: Any, scope: str) -> Any:
    """Return a place for tensors: memory of this scope on the first device of a target.

    The class moved to Relax in 0.27.
    """
    import tvm
    from tvm import relax

    make = getattr(relax, "VDevice", None) or tvm.ir.VDevice
    return make(target, 0, scope)


def _network(function: Any, scopes: Mapping[str, Any]) -> Any:
    """Return a module whose `main` calls the function on plain memory, with copies to and from its images."""
    from tvm import relax

    builder = relax.BlockBuilder()
    if scopes:
        builder.get().update_global_info("vdevice", list(scopes.values()))
    *inputs, output_tensor = _tensors(function)
    parameters = [
        relax.Var(f"p{index}", _type(shape, dtype, "global", scopes)) for index, (shape, dtype, _) in enumerate(inputs)
    ]

    def copy(value: Any, tensor: tuple[tuple[int, ...], str, str], scope: str) -> Any:
        shape, dtype, _ = tensor
        function = _copy(shape, dtype).with_attr(INTO, scope)  # else one there and one back would be the same function
        copied = builder.add_func(function, "copy")
        return builder.emit(relax.call_tir(copied, [value], _type(shape, dtype, scope, scopes)))

    with builder.function("main", parameters):
        with builder.dataflow():
            arguments = [
                value if tensor[2] == "global" else copy(value, tensor, tensor[2])
                for value, tensor in zip(parameters, inputs, strict=True)
            ]
            called = builder.add_func(without_attributes(function, ("global_symbol",)), TASK)
            result = builder.emit(relax.call_tir(called, arguments, _type(*output_tensor, scopes)))
            output = builder.emit_output(
                result if output_tensor[2] == "global" else copy(result, output_tensor, "global")
            )
        builder.emit_func_output(output)
    return builder.get()


def _type(shape: tuple[int, ...], dtype: str, scope: str, scopes: Mapping[str, Any]) -> Any:
    return tensor_type(shape, dtype, scopes[scope]) if scopes else tensor_type(shape, dtype)


def _copy(shape: tuple[int, ...], dtype: str) -> Any:
    """Return a function that copies a tensor; the path's own schedules take it, into an image by whole texels.

    Its condition always holds: without one, TVM would see a mere reshape, and leave the tensor where it is.
    """
    from tvm import te, tirx

    extents = [tirx.const(extent, "int64") for extent in shape]  # as Relax has them
    source = te.placeholder(extents, dtype, name="source")

    def element(*at: Any) -> Any:
        return tirx.if_then_else(at[-1] < extents[-1], source(*at), tirx.const(0, dtype))

    return te.create_prim_func([source, te.compute(extents, element, name="copied")])


HALF_AMOUNT = 2.0**-8
"""Most that a number of float16 is moved: four of its units in the last place, or it would often stay."""


def measure_task_rounding(
    ask: Callable[[Sequence[Array]], list[Array]], inputs: Sequence[Array], outputs: Sequence[Array]
) -> list[Measured]:
    """Measure the rounding of one compiled function, of which only the inputs can be moved."""
    amount = HALF_AMOUNT if any(array.dtype == np.float16 for array in inputs) else AMOUNT[SINGLE]
    moved = farthest(outputs, (ask(_move_arrays(inputs, draw)) for draw in range(DRAWS)))
    movements = [relative_movement(*pair) / amount for pair in zip(moved, outputs, strict=True)]
    return [Measured(rounding={name: each * most for name, most in AMOUNT.items()}) for each in movements]


def _move_arrays(arrays: Sequence[Array], draw: int) -> list[Array]:
    """Return every real number with a random factor next to 1."""
    rng = np.random.default_rng(draw)

    def move(array: Array) -> Array:
        amount = HALF_AMOUNT if array.dtype == np.float16 else AMOUNT[SINGLE]
        moved: Array = array.astype(np.float64) * rng.uniform(1 - amount, 1 + amount, array.shape)
        return moved.astype(array.dtype)

    return [move(array) if array.dtype.kind == "f" else array for array in arrays]
