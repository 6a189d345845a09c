"""Whether TVM imports and legalises a network, tried in a process of its own: what it refuses here, a build refuses.

Nothing is scheduled or compiled. The answer for a network and a release of TVM stays in the store.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from device_runner.device import Identity
from device_runner.files import scratch_folder
from device_runner.store import key_of
from harness.base.case import Precision
from harness.base.failures import CompileFailure
from harness.base.request import CompileRequest
from harness.base.suite import Limits
from harness.compile.artifacts.forks import Forks
from harness.compile.artifacts.jobs import request_of
from harness.compile.artifacts.keys import compile_job
from harness.compile.artifacts.planner import device_request
from harness.compile.artifacts.pool import Builder
from harness.compile.quirks import quirks_for

KIND, PATH = "import", "opencl"
LIMITS = Limits(build_s=10.0, build_memory_gb=8.0)
"""A network that takes longer is left to a build."""
SORT_PASS = "DispatchSortScan"
"""TVM's pass that gives sorts and scans kernels, which the release's pipeline for Adreno lacks."""
ANSWER = "imported"


def import_network(job: dict[str, Any], out: Path) -> None:
    """Import and legalise the network of a request. Worker only. Raises CompileFailure."""
    from tvm import relax

    from harness.compile.artifacts.compile import import_request, stepping, target_of
    from harness.compile.compiler.pass_runner import run_step
    from harness.compile.compiler.passes import adreno_relax_passes
    from harness.compile.paths.lowered_module import require_dispatch
    from harness.tools.ops.distinct_calls import with_distinct_calls

    request = request_of(job)
    mod, _ = import_request(request)
    with stepping("lower"), target_of(request) as target:
        legal = run_step("LegalizeOps", relax.transform.LegalizeOps(), with_distinct_calls(mod))
        if all(each.info.name != SORT_PASS for each in adreno_relax_passes(target)):
            require_dispatch(legal)
    (out / ANSWER).touch()


def request_for(file: Path) -> CompileRequest:
    """Return the request to import a network for every Adreno."""
    quirks = [quirk.id for quirk in quirks_for(PATH, Precision.FLOAT32, as_shipped=False)]
    return replace(device_request(Identity("none", "none")), model_file=str(file), path=PATH, quirks=quirks)


class ImportTrial:
    """Asks TVM about networks of static shapes. A context manager: leaving it ends the compiler."""

    def __init__(self, cache: Path) -> None:
        self._forks = Forks()
        self._builder = Builder(cache, LIMITS, processes=1, forks=self._forks)

    def __enter__(self) -> ImportTrial:
        return self

    def __exit__(self, *error: object) -> None:
        self._builder.__exit__(*error)

    def load(self) -> None:
        """Load the compiler while the network is prepared, which this process may fork for."""
        self._forks.load()

    def refusal_of(self, model: Any) -> str:
        """Return why TVM refuses a network; empty if it takes it, or does not answer in time."""
        data: bytes = model.SerializeToString()
        with scratch_folder() as folder:
            file = folder / "model.onnx"
            file.write_bytes(data)
            built = compile_job(request_for(file), hashlib.sha256(data).hexdigest(), "the network")
            job = replace(built, kind=KIND, key=key_of({KIND: built.key}))
            answer = self._builder.build([job])[job.key]
        return str(answer) if isinstance(answer, CompileFailure) and answer.outcome == CompileFailure.outcome else ""
