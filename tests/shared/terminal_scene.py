"""A week of work with long names and long complaints: records, baselines, a cache, a history, and what commands find.

What takes minutes is replaced where a command meets it: adb, the machine's examination, the probes of TVM, a device and
what is built for it, and a bisection's run. So are processes that compact, by threads.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_device import FakeDevice, a_plan, things
from fake_records import IDENTITY, a_record, sessions
from history_results import Folder
from typer.testing import CliRunner

from device_runner.transport.adb_server import AdbEntry
from harness.base.case import Case
from harness.base.failures import CompileFailure
from harness.base.outcome import Outcome
from harness.base.plan import Job, Plan
from harness.cli import app
from harness.compile.artifacts.artifact import Artifact
from harness.compile.artifacts.pool import Builder
from harness.measure.context import Run
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.measure.workbench import Request, Workbench
from harness.tools.shared.finding import Condition, DoctorFinding
from harness.tools.shared.revision_search import RevisionState
from harness.tools.upstream.bisect.bisection import BisectionResult, SearchResult
from harness.tools.upstream.bisect.judging import Inspection, Reason
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer
from harness.tools.upstream.report import reported_quirks

CASES = [
    f"{model}-{path}-float32-untuned" for model in ("mobilenet_v1", "squeezenet1_1") for path in ("opencl", "texture")
]
ARTIFACT = "a" * 24
"""Key of what is built of all cases but the last, of which the compiler makes nothing."""
BROKEN = "squeezenet1_1-clml-float16_acc32-tuned"
OFFLOAD = {
    "subgraphs": [
        {
            "symbol": "fused_relax_nn_conv2d_relax_add_relax_nn_relu_relax_nn_max_pool2d_0",
            "calls": 1,
            "operators": 12,
            "macs": 1.2e9,
            "boundary_bytes": 602112,
            "may_lose": True,
            "untunable": 1,
            "composites": {"openclml.conv2d_bias_relu": 26, "openclml.avg_pool2d": 1, "openclml.softmax": 1},
        }
    ],
    "operators_offloaded": 12,
    "operators": 14,
    "operator_share": 12 / 14,
    "macs_offloaded": 1.2e9,
    "macs": 1.3e9,
    "mac_share": 0.92,
    "boundary_bytes": 602112,
    "outside": [{"operator": "relax.nn.log_softmax", "count": 2, "macs": 0, "why": "CLML has no operator for it " * 4}],
}


def skip_without_packages(command: str) -> None:
    """Skip the test of a command whose packages are not installed."""
    if command == "records compact":
        for package in ("duckdb", "pyarrow"):
            pytest.importorskip(package, reason="`make scale` installs it")


def set_the_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, props: Path | None = None) -> None:
    """Records, baselines, a cache and a history, with long names and long complaints.

    `props` is a folder that `write_props` has filled, to be copied.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    if props:
        shutil.copytree(props, tmp_path, dirs_exist_ok=True)
    else:
        write_props(tmp_path)
    phones = [
        AdbEntry("phone", "device"),
        AdbEntry("R5CT30ABCDE", "unauthorized", {"hint": "allow USB debugging on its screen " * 3}),
    ]
    monkeypatch.setattr("device_runner.transport.adb_server.known_devices", lambda: phones)
    monkeypatch.setattr("harness.tools.doctor.command.examine", lambda _cache: _findings())
    answers = [ProbeAnswer(Presence.PRESENT, "it is there, " * 9)] * len(reported_quirks())
    monkeypatch.setattr("harness.tools.upstream.quirk_probes.probe_answers", lambda *_: nullcontext(answers))
    monkeypatch.setattr("harness.tools.lake.compaction._pool", ThreadPoolExecutor)
    monkeypatch.setattr("harness.measure.workbench.open_workbench", _open_workbench)
    monkeypatch.setattr("harness.tools.upstream.bisect.bisection.Bisection.run", lambda *_, **__: _answer())


def write_props(folder: Path) -> None:
    """Write the files of the scene into the working directory, which is `folder`, and its cache."""
    Path("adreno-bench.toml").write_text('models = ["mobilenet_v1", "squeezenet1_1"]\npaths = ["opencl", "texture"]\n')
    good = [one for case in CASES for one in sessions(10, case=case, device_ms=[9.0] * 3, library_bytes=17_900_000)]
    restless = a_record(CASES[0], wall_ms=[2.0, 4.5, 10.0, 15.5, 17.0] * 2, device_ms=[9.0] * 3)
    message = "output 0 is off by 3 in its element 17 " * 5
    wrong = a_record(BROKEN, outcome=Outcome.WRONG_RESULT, parts={"offload": OFFLOAD}, message=message)
    write("records.jsonl", [*good, restless, wrong])
    write("slower.jsonl", [one for case in CASES for one in sessions(13, seed=1, case=case, artifact="b" * 24)])
    write("calibration.jsonl", [one for case in CASES for one in sessions(10, 15, case=case)])
    CliRunner().invoke(app, ["bless"])
    artifact = folder / "cache" / "artifacts" / ARTIFACT
    artifact.mkdir(parents=True)
    (artifact / "title").write_text(f"{CASES[-1]}\n")
    runtime = folder / "cache" / "phone-runtime" / "0123456789abcdef"
    (runtime / "files").mkdir(parents=True)
    facts = {"abi": "arm64-v8a", "tvm": "0.27.0.post1", "preload": [], "added_at": 0.0}
    (runtime / "runtime.json").write_text(json.dumps(facts))
    results = Folder(folder / "results")
    for quick in (1.0, 2.0):
        results.commit({(case, "none"): 1000.0 * quick for case in CASES})
    Path("asv.conf.json").write_text(json.dumps({"version": 1, "project": "p", "repo": ".", "results_dir": "results"}))


@contextmanager
def _open_workbench(request: Request, *_: object, **__: object) -> Iterator[Workbench]:
    """A workbench on a device of plain Python, whose builder makes one library and fails at the other."""
    folder = Path("built")
    built = things(folder)
    small = built["c-tiny"]
    assert isinstance(small, Artifact)
    facts = {"kernels": 20, "image_kernels": 13, "source_bytes": 169542, "texture_tensors": 8, "storage_bytes": 229672}
    compiled = replace(small.compiled, facts=facts, compile_s=12.5)
    known = {
        ARTIFACT: replace(small, key=ARTIFACT, compiled=compiled, size_bytes=496_000),
        "b" * 24: CompileFailure("TVM failed to lower the model: ScheduleError: cache-write " * 4),
        "o-tiny": built["o-tiny"],
    }
    builder = SimpleNamespace(build=lambda jobs: {job.key: known[job.key] for job in jobs})
    device = FakeDevice(name="phone", identity=IDENTITY)
    run = Run(cast(Any, device), TuningStore(request.cache), request.quirks.as_shipped)
    yield Workbench(request, run, [_plan(case) for case in CASES], cast(Builder, builder))


def _plan(case: str) -> Plan:
    key = "b" * 24 if case == CASES[-1] else ARTIFACT
    return replace(a_plan(), case=Case.parse(case), compile=Job("compile", key, case, {}), quirks=("a", "b"))


def _answer() -> BisectionResult:
    looks = [
        Inspection(name, state, "ok", "the sequential test decided after eight sessions " * 3, wall_ms=10.0, sessions=8)
        for name, state in (("0.25.0.post1", RevisionState.GOOD), ("0.27.0.post1", RevisionState.BAD))
    ]
    return BisectionResult(
        SearchResult(Reason.SLOWER, "0.25.0.post1", ["0.27.0.post1"], looks),
        Path("kept"),
        ["+ float4 texel = read_imagef(" * 6],
    )


def _findings() -> list[DoctorFinding]:
    return [
        DoctorFinding(
            "compiler", Condition.OK, "apache-tvm 0.27.0.post1 and apache-tvm-ffi 0.1.14.post1 work together " * 2
        ),
        DoctorFinding("OpenCL", Condition.MISSING, "no platform answers", "sudo apt-get install pocl-opencl-icd " * 3),
    ]


def write(name: str, records: Sequence[Record]) -> None:
    Path(name).write_text("".join(record.line() + "\n" for record in records))
