"""How fast the host's own steps are: `make benchmarks`. Not among the tests: nothing here fails for being slow.

pytest-benchmark times; `python -m benchmarks.host_ratios` turns its numbers into ratios to `test_reference`, a fixed
piece of work of the same run, so that they can be compared from one machine to another.
"""

from __future__ import annotations

import hashlib
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from device_runner.device import Identity
from device_runner.stand_ins.virtual import virtual_phone
from device_runner.store import Store
from device_runner.transport.adb_transport import AdbTransport
from harness.base.outcome import Outcome
from harness.compile.artifacts.artifact import MANIFEST
from harness.judge.compare import compare_sides
from harness.judge.sides import SeriesKey, Side
from harness.judge.stats.engine import compare
from harness.measure.records.record import Record, RecordFile

TIMEOUT_S = 60.0
Benchmark = Callable[..., Any]


def test_reference(benchmark: Benchmark) -> None:
    """What the others are told in: hashing, sorting and text, in about equal parts."""
    numbers = [random.Random(1).random() for _ in range(4_000)]
    content = bytes(1 << 20)

    def work() -> tuple[str, str]:
        return hashlib.sha256(content).hexdigest(), ",".join(map(str, sorted(numbers)))

    benchmark(work)


@pytest.fixture(scope="module")
def transport(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbTransport]:
    """Open the virtual phone over the real adb."""
    with virtual_phone(tmp_path_factory.mktemp("phone")) as phone:
        yield AdbTransport(phone.serial, phone.adb_server, phone.root)


def test_shell_round_trip(benchmark: Benchmark, transport: AdbTransport) -> None:
    """One command on the device."""
    benchmark(transport.shell, ["true"], timeout_s=TIMEOUT_S)


def test_push_of_8_mb(benchmark: Benchmark, transport: AdbTransport, tmp_path: Path) -> None:
    """A file that is new to the device."""
    number = iter(range(1_000_000))

    def another() -> tuple[tuple[Path, str], dict[str, float]]:
        file = tmp_path / f"{next(number)}.so"
        file.write_bytes(random.Random(str(file)).randbytes(8_000_000))
        return (file, hashlib.sha256(file.read_bytes()).hexdigest()), {"timeout_s": TIMEOUT_S}

    benchmark.pedantic(transport.push, setup=another, rounds=8)  # type: ignore[attr-defined]


def test_push_of_what_is_there(benchmark: Benchmark, transport: AdbTransport, tmp_path: Path) -> None:
    """A file that the device has: one round trip."""
    file = tmp_path / "there.so"
    file.write_bytes(random.Random(1).randbytes(8_000_000))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    for _ in range(2):  # the second time it is hashed there, after that it is known
        transport.push(file, digest, timeout_s=TIMEOUT_S)
    assert benchmark(transport.push, file, digest, timeout_s=TIMEOUT_S).sent_bytes == 0


def test_record_append(benchmark: Benchmark, tmp_path: Path) -> None:
    """One durable line."""
    benchmark(RecordFile(tmp_path / "records.jsonl").append, _record())


def test_reading_1000_records(benchmark: Benchmark, tmp_path: Path) -> None:
    """Parsing and checking."""
    file = RecordFile(tmp_path / "records.jsonl")
    file.path.write_text(f"{_record().line()}\n" * 1_000, encoding="utf-8")
    assert len(benchmark(file.load).records) == 1_000


def test_artifact_lookup_among_1000(benchmark: Benchmark, tmp_path: Path) -> None:
    """Finding an entry of the store."""
    store = Store(tmp_path, "artifacts")
    for number in range(1_000):
        (store.folder / f"{number:024}").mkdir(parents=True)
        (store.folder / f"{number:024}" / MANIFEST).write_text("{}", encoding="utf-8")
    assert benchmark(store.find, f"{500:024}")


def test_code_generation_of_tiny(benchmark: Benchmark, tmp_path: Path) -> None:
    """From ONNX to OpenCL source and host code, without linking."""
    from harness.compile.artifacts.compile import import_model
    from harness.compile.models.sources import model_source
    from harness.compile.paths import PATHS
    from harness.compile.paths.base import ImageLimits

    path, model = PATHS["opencl"], model_source("tiny").onnx_file(tmp_path)

    def generate() -> Any:
        module, _ = import_model(model)
        target = path.target(ImageLimits(16384, 16384, 2048), None)
        return path.build(path.lower(module, target, ()), target, ())

    benchmark.pedantic(generate, rounds=5, warmup_rounds=1)  # type: ignore[attr-defined]


def test_comparing_one_series(benchmark: Benchmark) -> None:
    """Four sessions of thirty samples a side."""
    base, head = _sessions(1), _sessions(2)
    benchmark(compare, base, head)


def test_comparing_100_series(benchmark: Benchmark) -> None:
    """A whole suite, with its false discovery rate."""
    base, head = _sides(1), _sides(2)
    benchmark(compare_sides, base, head)


def _processor_s() -> float:
    """Return the processor time of all children so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


PYTHON = [sys.executable, "-c"]
MAIN = "from harness.cli import main; main()"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([*PYTHON, "pass"], id="python"),
        pytest.param([*PYTHON, "import tvm"], id="import tvm"),
        *(pytest.param([*PYTHON, MAIN, word], id=word) for word in ("--help", "list", "show", "devices", "doctor")),
    ],
)
@pytest.mark.benchmark(timer=_processor_s)
def test_processor_time_of(command: list[str], benchmark: Benchmark, tmp_path: Path) -> None:
    """A command in a process of its own, in a folder with a suite and a record of each of its cases."""
    (tmp_path / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl", "texture"]\n')
    for path in ("opencl", "texture"):
        case = f"tiny-{path}-float32-untuned"
        RecordFile(tmp_path / "records.jsonl").append(_record().model_copy(update={"case": case, "path": path}))

    def call() -> None:
        subprocess.run(command, cwd=tmp_path, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    benchmark.pedantic(call, rounds=5, warmup_rounds=1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("before", "rounds"), [pytest.param(0, 1, id="first"), pytest.param(1, 5, id="again")])
@pytest.mark.benchmark(timer=_processor_s)
def test_processor_time_of_quirks(
    before: int, rounds: int, benchmark: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All probes of TVM's defects with an empty cache, and what is kept of their answers."""
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))

    def call() -> None:
        subprocess.run([*PYTHON, MAIN, "quirks"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    benchmark.pedantic(call, rounds=rounds, warmup_rounds=before)  # type: ignore[attr-defined]


def _sides(seed: int) -> dict[SeriesKey, Side]:
    keys = [SeriesKey("phone", f"m{number}-opencl-float32-untuned") for number in range(100)]
    return {key: Side(key, Outcome.OK, sessions=tuple(_sessions(seed * 1_000 + i))) for i, key in enumerate(keys)}


def _sessions(seed: int) -> list[list[float]]:
    chance = random.Random(seed)
    return [[10 * chance.gauss(1, 0.02) for _ in range(30)] for _ in range(4)]


def _record() -> Record:
    identity = Identity("phone", "serial", gpu="Adreno", extensions=tuple(f"cl_extension_{i}" for i in range(60)))
    return Record(
        case="tiny-opencl-float32-untuned",
        model="tiny",
        path="opencl",
        precision="float32",
        tuning="untuned",
        device="phone",
        identity=identity,
        identity_key=identity.key,
        emulated=(),
        outcome=Outcome.OK,
        wall_ms=_sessions(1)[0],
        device_ms=_sessions(2)[0],
        tvm="0.27.0",
        ffi="0.1.14",
        harness="0.1.0",
        started_at="2026-01-01T00:00:00.000+00:00",
        run="abc",
    )
