"""From a configuration to a library, in a worker; and the weights that it takes, as a folder of TVM's tensor cache."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from device_runner.store import Store, key_of
from harness.compile.artifacts.artifact import KERNELS, LIBRARY, CompileResult
from harness.compile.artifacts.compile import export, stepping
from harness.compile.compiler.compat import opencl_source, operator_name
from harness.compile.paths.effects import watch
from harness.compile.paths.kernels import kernels
from harness.compile.paths.lowered_module import PlannedLaunch, calls_in
from harness.tools.llm.config import LlmConfig, read_plain
from harness.tools.llm.folders import WEIGHT_LIST
from harness.tools.llm.lowering import build_executable, target_of
from harness.tools.llm.network import DECODE, PREFILL, STEPS, build_module
from harness.tools.llm.quirks import QUIRKS
from harness.tools.llm.weights import FORMATS, NUMBER_BYTES, Format, ModelWeights, library_tensors, weight_sizes

MAKE_TIMEOUT_S = 3600.0


def build_library(job: dict[str, Any], out: Path) -> CompileResult:
    """Worker only: build a library into a folder. Raises `CompileFailure`, `RigFailure`."""
    started = time.perf_counter()
    config, form = read_plain(LlmConfig, job["config"]), FORMATS[job["format"]]
    target, plans = target_of(job["host_triple"]), list[Any]()
    quirks, effective = [quirk for quirk in QUIRKS if quirk.id in job["quirks"]], set[str]()
    with stepping("import"):
        mod, parameters = build_module(config, form, target)
    with stepping("build"):
        workarounds = watch(quirks, effective)
        executable = build_executable(mod, target, job["pipeline_name"], workarounds, plans.append)
    weights, cache = weight_sizes(parameters), config.cache_bytes(NUMBER_BYTES[form.dtype])
    memory = {"weights_bytes": sum(weights), "cache_bytes": sum(cache), **_memory(plans, [*weights, *cache])}
    source = opencl_source(executable)
    launches = {kernel.name: PlannedLaunch(None, None, None, kernel.local_bytes) for kernel in kernels(source)}
    (out / KERNELS).write_text(source, encoding="utf-8")
    export(executable, out / LIBRARY, job["host_triple"])
    return CompileResult(
        library=LIBRARY,
        vdevices=1,
        inputs=parameters,
        outputs=1,
        quirks=[quirk.id for quirk in quirks],
        effective_quirks=sorted(effective),
        facts={"kernels": len(launches), "source_bytes": len(source), **memory},
        launches={name: asdict(launch) for name, launch in launches.items()},
        compile_s=time.perf_counter() - started,
    )


def _memory(plans: Sequence[Any], lasting: Sequence[int]) -> dict[str, int]:
    """Return what the device holds besides the library: what lasts, and tensors of any step; and those of applications.

    Without a memory plan only the first is known. `buffer_bytes` is the largest of all that is allocated at once.
    """
    planned = {step: _planned_bytes(mod[step.body]) for mod in plans for step in STEPS}
    totals = {step: sum(sizes) for step, sizes in planned.items()}
    applications = {"application_bytes": max(totals[PREFILL], totals[DECODE])} if totals else {}
    storage = sum(lasting) + max(totals.values(), default=0)
    largest = max([*lasting, *(size for sizes in planned.values() for size in sizes)])
    tensors = {"buffer_tensors": len(lasting) + max(map(len, planned.values()), default=0), "texture_tensors": 0}
    return {"storage_bytes": storage, "buffer_bytes": largest, **tensors, **applications}


def _planned_bytes(function: Any) -> list[int]:
    storages = (call for call in calls_in(function) if operator_name(call) == "relax.memory.alloc_storage")
    return [int(extent) for call in storages for extent in call.args[0] if hasattr(extent, "value")]


def weights_folder(weights: ModelWeights, form: Format, cache: Path) -> Path:
    """Return the folder of a library's weights, made once."""
    key = key_of({"weights": weights.key, "format": form.name, "config": asdict(weights.config)})
    return Store(cache, "llm_weights").obtain(key, lambda out: _write_weights(weights, form, out), MAKE_TIMEOUT_S)


def _write_weights(weights: ModelWeights, form: Format, out: Path) -> None:
    """Write TVM's tensor cache: a list in JSON, and numbers in shards (tvm/contrib/tvmjs.py)."""
    tensors = []
    with (out / "weights.bin").open("wb") as stream:
        for name, array in library_tensors(weights, form):
            entry = {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
            tensors.append({**entry, "format": "raw", "nbytes": array.nbytes, "byteOffset": stream.tell()})
            stream.write(array.tobytes())
        size = stream.tell()
    shard = {"dataPath": "weights.bin", "format": "raw-shard", "nbytes": size, "records": tensors}
    (out / WEIGHT_LIST).write_text(json.dumps({"metadata": {}, "records": [shard]}), encoding="utf-8")
