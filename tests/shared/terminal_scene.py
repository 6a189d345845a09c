"""A week of work with long names and long complaints: records, baselines, a cache, a history, and what commands find.

No device is opened and nothing is compiled: what would do so is replaced by what it came to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_records import a_record, sessions
from history_results import Folder
from typer.testing import CliRunner

from device_runner.device import DeviceEntry, Identity, Loadable
from device_runner.failures import Failure
from device_runner.runtimes.phone.store import PhoneRuntime
from harness.build.artifact import Artifact, Compiled
from harness.cases.case import Case
from harness.cases.plan import Budget, Job, Plan
from harness.cli import app
from harness.cli.run import _Results
from harness.doctor import Condition, Finding
from harness.failures import CompileFailure
from harness.quirks import Presence, ProbeAnswer
from harness.revisions.bisect.bisection import BisectionResult, SearchResult
from harness.revisions.bisect.judging import Inspection, Reason
from harness.revisions.bisect.search import RevisionState
from harness.revisions.sources import Revision, Source
from harness.run.outcome import Outcome
from harness.run.record import Record

CASES = [
    f"{model}-{path}-float32-untuned" for model in ("mobilenet_v1", "squeezenet1_1") for path in ("opencl", "texture")
]
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


def set_the_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, baselines, a cache and a history, with long names and long complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    Path("adreno-bench.toml").write_text('models = ["mobilenet_v1", "squeezenet1_1"]\npaths = ["opencl", "texture"]\n')
    good = [one for case in CASES for one in sessions(10, case=case, device_ms=[9.0] * 3, library_bytes=17_900_000)]
    restless = a_record(CASES[0], wall_ms=[2.0, 4.5, 10.0, 15.5, 17.0] * 2, device_ms=[9.0] * 3)
    wrong = a_record(
        BROKEN, outcome=Outcome.WRONG_RESULT, offload=OFFLOAD, message="output 0 is off by 3 in its element 17 " * 5
    )
    write("records.jsonl", [*good, restless, wrong])
    write("slower.jsonl", [one for case in CASES for one in sessions(13, seed=1, case=case, artifact="b" * 24)])
    CliRunner().invoke(app, ["bless"])
    artifact = tmp_path / "cache" / "artifacts" / ("a" * 24)
    artifact.mkdir(parents=True)
    (artifact / "title").write_text(f"{CASES[-1]}\n")
    folder = Folder(tmp_path / "results")
    for quick in (1.0, 2.0):
        folder.commit({(case, "none"): 1000.0 * quick for case in CASES})
    Path("asv.conf.json").write_text(json.dumps({"version": 1, "project": "p", "repo": ".", "results_dir": "results"}))
    entries = [
        DeviceEntry("virtual", "virtual", "ready", {"gpu": "pthread-skylake-avx512-AMD EPYC"}),
        DeviceEntry("R5CT30ABCDE", "phone", "unauthorized", {"hint": "allow USB debugging on its screen " * 3}),
    ]
    for module in ("device_runner.registry", "device_runner.fleet.select"):
        monkeypatch.setattr(f"{module}.list_devices", lambda _cache: entries)
    monkeypatch.setattr("harness.doctor.machine.examine", lambda _cache: _findings())
    calibrated = {case: sessions(10, 16, case=case) for case in CASES}
    monkeypatch.setattr("harness.cli.calibrate._sessions", lambda *_: calibrated)
    monkeypatch.setattr("harness.cli.run._on_one", lambda *_: _Results([restless, wrong], good[:1]))
    monkeypatch.setattr("harness.workbench.open_workbench", lambda *_, **__: nullcontext(_bench(tmp_path)))
    monkeypatch.setattr("harness.quirks.ask.ask", lambda _quirk: ProbeAnswer(Presence.PRESENT, "it is there, " * 9))
    kept = PhoneRuntime("0123456789abcdef", "arm64-v8a", "0.27.0.post1", (), 0.0, tmp_path / "cache" / "artifacts")
    monkeypatch.setattr("device_runner.runtimes.phone.RuntimeStore.entries", lambda _self: [kept])
    _a_bisection(tmp_path, monkeypatch)


def _bench(folder: Path) -> SimpleNamespace:
    """A workbench whose builder has made one library and failed at the other."""
    facts = {"kernels": 20, "image_kernels": 13, "source_bytes": 169542, "texture_tensors": 8, "storage_bytes": 229672}
    compiled = Compiled("lib.so", 3, [], 1, [], facts, 12.5)
    built: dict[str, Artifact | Failure] = {
        CASES[0]: Artifact(CASES[0], Loadable(folder / "lib.so", "f" * 64, 3), compiled, 496_000, reused=False),
        CASES[1]: CompileFailure("TVM failed to lower the model: ScheduleError: cache-write " * 4),
    }
    plans = [
        Plan(Case.parse(id_), Job("compile", id_, id_, {}), Job("oracle", "o", "o", {}), ("a", "b"), 1e-3, Budget())
        for id_ in built
    ]
    device = SimpleNamespace(identity=Identity("phone", "serial"))
    return SimpleNamespace(plans=plans, device=device, builder=SimpleNamespace(build=lambda _jobs: built))


def _a_bisection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [
        Inspection(name, state, "ok", "the sequential test decided after eight sessions " * 3, wall_ms=10.0, sessions=8)
        for name, state in (("0.25.0", RevisionState.GOOD), ("0.27.0", RevisionState.BAD))
    ]
    answer = BisectionResult(
        SearchResult(Reason.SLOWER, "0.25.0", ["0.27.0"], looks), Path("kept"), ["+ float4 texel = read_imagef(" * 6]
    )
    source = Source(folder, folder, released=True)
    monkeypatch.setattr("harness.revisions.sources.revision", lambda word, *_: Revision(word, word, source))
    monkeypatch.setattr("harness.revisions.sources.revisions_between", lambda *ends, **_: list(ends))
    monkeypatch.setattr("harness.revisions.sources.describe", lambda revision: f"{revision} of a long time ago")
    monkeypatch.setattr("harness.revisions.bisect.bisection.Bisection.run", lambda *_, **__: answer)


def _findings() -> list[Finding]:
    return [
        Finding("compiler", Condition.OK, "apache-tvm 0.27.0.post1 and apache-tvm-ffi 0.1.14.post1 work together " * 2),
        Finding("OpenCL", Condition.MISSING, "no platform answers", "sudo apt-get install pocl-opencl-icd " * 3),
    ]


def write(name: str, records: Sequence[Record]) -> None:
    Path(name).write_text("".join(record.line() + "\n" for record in records))
