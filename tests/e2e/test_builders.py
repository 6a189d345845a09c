"""Builds on other hosts: a real scheduler, its workers as processes with caches of their own, and an S3 server."""

import threading
from collections.abc import Iterator
from pathlib import Path

import command
import onnx
import pytest
from dask_farm import Farm, farm
from s3_server import bucket
from shared_runtimes import link_runtimes

from device_runner.device import Identity
from device_runner.failures import Failure, RigFailure
from harness.base.failures import CompileTimeout
from harness.base.outcome import Outcome
from harness.base.plan import Job, Plan
from harness.base.suite import Limits, Suite
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.forks import Forks
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder
from harness.measure.records.record import RecordFile
from harness.tools.builders import dask_builders
from harness.tools.builders.dask_builders import DaskBuilders
from harness.tools.builders.shared_store import ObjectStore

pytestmark = [pytest.mark.slow, pytest.mark.long]

SUITE = 'models = ["tiny"]\npaths = ["opencl", "texture", "clml"]\nbudget_s = 0.1\nsamples = 10\nstore = "{}"\n'


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Farm]:
    pytest.importorskip("fsspec", reason="`make scale` installs it")
    with farm(tmp_path / "farm") as started:
        yield started


class Host:
    """A host that has jobs done by a farm, over a folder that all of them have."""

    def __init__(self, farm: Farm, folder: Path) -> None:
        self.said: list[str] = []
        self.cache = folder / "host"
        self._farm, self._url = farm, f"file://{folder}/shared"
        suite = Suite(models=["tiny"], paths=["opencl"])
        self.plan: Plan = plan_case(suite, suite.cases[0], Identity("none", "none"), self.cache)

    def build(self, job: Job, limits: Limits | None = None) -> Artifact | Answers | Failure:
        store = ObjectStore(self._url, self.said.append)
        elsewhere = DaskBuilders(self._farm.address, store, self.said.append)
        never = Forks(("false",))
        with Builder(self.cache, limits or Limits(), forks=never, shared=store, remote=elsewhere) as builder:
            return builder.build([job])[job.key]


@pytest.mark.device
@pytest.mark.usefixtures("warm_driver")
def test_a_suite_is_built_elsewhere_and_measured_by_a_host_that_builds_nothing(
    tmp_path: Path, hosts: Farm, sidecar_cache: Path
) -> None:
    caches = {name: tmp_path / name for name in ("asks", "measures")}
    with bucket(tmp_path / "s3") as made:
        for cache in (*caches.values(), *(hosts.folder / name for name in ("build-1", "build-2"))):
            cache.mkdir()
            link_runtimes(cache, sidecar_cache)
        for name in ("build-1", "build-2"):
            hosts.start_worker(name)
        (tmp_path / "adreno-bench.toml").write_text(SUITE.format(made.url))
        words = ("build", "--builders", hosts.address)
        code, out, err = command.bench(tmp_path, caches["asks"], *words)
        assert (code, err.count("built elsewhere")) == (0, 5), out + err  # three cases, an oracle, a reference kernel
        code, out, err = command.bench(tmp_path, caches["measures"], "run")
    assert code == 0, out + err
    assert "built nothing, took 3 from the store" in out
    records = RecordFile(tmp_path / "records.jsonl").load().records
    assert [record.outcome for record in records] == [Outcome.OK] * 3


def test_a_worker_that_dies_in_a_compile_costs_one_repeat(tmp_path: Path, hosts: Farm) -> None:
    host = Host(hosts, tmp_path)
    caches = [hosts.start_worker(name) for name in ("build-1", "build-2")]
    made: list[object] = []
    thread = threading.Thread(target=lambda: made.append(host.build(host.plan.compile)))
    thread.start()
    dead = hosts.kill_one_that_compiles()
    thread.join()
    assert isinstance(made[0], Artifact), made
    assert made[0].reused
    built = [cache.name for cache in caches if (cache / "artifacts" / host.plan.compile.key).exists()]
    assert built == [name for name in ("build-1", "build-2") if name != dead]


def test_a_scheduler_that_starts_again_costs_one_repeat(tmp_path: Path, hosts: Farm) -> None:
    host = Host(hosts, tmp_path)
    hosts.start_worker("build-1")
    made: list[object] = []
    thread = threading.Thread(target=lambda: made.append(host.build(host.plan.compile)))
    thread.start()
    hosts.kill_one_that_compiles()
    hosts.scheduler.kill()
    hosts.scheduler.wait()
    hosts.start_scheduler()
    hosts.start_worker("build-2")
    thread.join()
    assert isinstance(made[0], Artifact), made


def test_a_worker_with_other_releases_is_refused_by_name(tmp_path: Path, hosts: Farm) -> None:
    other = tmp_path / "other" / "onnxruntime-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime\nVersion: 0.1\n")
    host = Host(hosts, tmp_path)
    hosts.start_worker("odd", PYTHONPATH=str(other.parent))
    refused = host.build(host.plan.compile)
    assert isinstance(refused, RigFailure)
    assert refused.message.startswith("the builder odd is refused: it has onnxruntime 0.1, not 1.")
    assert host.said == [refused.message]
    hosts.start_worker("right")
    assert isinstance(host.build(host.plan.compile), Artifact)


def test_the_limits_of_a_job_hold_on_the_worker(tmp_path: Path, hosts: Farm) -> None:
    host = Host(hosts, tmp_path)
    hosts.start_worker("build-1")
    late = host.build(host.plan.compile, Limits(build_s=0.5))
    assert isinstance(late, CompileTimeout)
    assert late.message == "the compiler did not end within 0 s"
    assert isinstance(host.build(host.plan.compile, Limits(build_memory_gb=0.02)), Failure)
    assert isinstance(host.build(host.plan.compile), Artifact)


def test_a_model_with_weights_in_other_files_is_judged_here(tmp_path: Path, hosts: Farm) -> None:
    elsewhere = DaskBuilders(hosts.address, ObjectStore(f"file://{tmp_path}/shared", print), print)
    try:
        job = Host(hosts, tmp_path).plan.oracle
        assert elsewhere.takes(job)
        whole = onnx.load(job.payload["original"]["onnx"])
        onnx.save(whole, tmp_path / "parts.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
        original = {**job.payload["original"], "onnx": str(tmp_path / "parts.onnx")}
        assert not elsewhere.takes(Job("oracle", job.key, job.title, {**job.payload, "original": original}))
    finally:
        elsewhere.close()


def test_what_is_missing_is_one_line(tmp_path: Path, hosts: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    words = ("build", "--device", "none", "--builders")
    code, _, err = command.bench(tmp_path, tmp_path / "cache", *words, hosts.address)
    assert (code, err.count("\n")) == (2, 1)
    assert "--builders needs a store that hosts share" in err
    monkeypatch.setattr(dask_builders, "ABSENCE_S", 0.1)
    host = Host(hosts, tmp_path)
    missing = host.build(host.plan.compile)
    assert isinstance(missing, RigFailure)
    assert missing.message.startswith(f"no builder has connected to {hosts.address}")
    hosts.scheduler.kill()
    hosts.scheduler.wait()
    monkeypatch.setattr(dask_builders, "CONNECT_S", 0.5)
    with pytest.raises(RigFailure, match=f"no Dask scheduler answers at {hosts.address}"):
        host.build(host.plan.compile)
