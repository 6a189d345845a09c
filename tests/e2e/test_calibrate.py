"""Calibration the whole way: sessions on this host and on the virtual phone, profiles, and a gate held to them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import command
import pytest
from plain_network import write_plain_onnx

from device_runner.stand_ins.virtual.faults import FAULTS_VARIABLE
from device_runner.store import SUMS
from harness.base.outcome import ExitCode, Outcome
from harness.compile.artifacts.artifact import LIBRARY, MANIFEST
from harness.judge.compare import compare_sides
from harness.judge.noise import PROFILES, NoiseProfile
from harness.judge.sides import sides_of
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record, RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow]

CASE = "plain-opencl-float32-untuned"
SUITE = 'models = ["plain.onnx"]\npaths = ["opencl"]\nbudget_s = 0.1\nsamples = 10\n'
OTHER_BUILD = "f" * 24


def bench(folder: Path, cache: Path, *words: str, device: str, faults: Path | None = None) -> tuple[int, str]:
    write_plain_onnx(folder)
    (folder / "my.toml").write_text(SUITE)
    injected = {FAULTS_VARIABLE: str(faults)} if faults else {}
    code, out, err = command.bench(folder, cache, *words, "--suite=my.toml", f"--device={device}", **injected)
    return code, out + err


def sessions(folder: Path) -> list[Record]:
    return RecordFile(folder / "calibration.jsonl").load().records


@pytest.mark.long
def test_the_same_artifact_ten_times_in_a_row_raises_no_alarm(tmp_path: Path, cache: Path) -> None:
    code, said = bench(tmp_path, cache, "calibrate", "--sessions", "20", "--json", device="local")
    taken = sessions(tmp_path)
    assert [record.outcome for record in taken] == [Outcome.OK] * 20, said
    assert len({record.started_at for record in taken}) == 20
    assert all(record.reference and record.reference.ms and record.reference.slowed_ms for record in taken)
    profiles = list((tmp_path / "baselines" / PROFILES).glob("*/*.json"))
    assert code == (ExitCode.GOOD if profiles else ExitCode.NOTHING_MEASURED), said
    for file in profiles:
        assert NoiseProfile.read(file).artifact == taken[0].artifact
    for first in range(10):  # A B B A A B B A, begun at another session each time
        window = taken[first : first + 8]
        base, head = ([window[i] for i in places] for places in ((0, 3, 4, 7), (1, 2, 5, 6)))
        (comparison,) = compare_sides(sides_of(base), sides_of(head)).cases
        assert comparison.verdict in (Verdict.SAME, Verdict.INCONCLUSIVE), comparison


@pytest.mark.long
def test_a_gate_on_the_virtual_phone_confirms_a_kernel_slowed_by_a_third(
    tmp_path: Path, cache: Path, warm_driver: dict[str, bool]
) -> None:
    steady, faults = {**warm_driver, "simulate_inference_s": 0.02}, tmp_path / "faults.json"
    faults.write_text(json.dumps(steady))
    code, said = bench(tmp_path, cache, "calibrate", "--sessions", "5", device="virtual", faults=faults)
    assert code == ExitCode.GOOD, said
    assert "this noise says nothing about a phone's" in said
    now = sessions(tmp_path)[0].artifact
    blessed = [record.model_copy(update={"artifact": OTHER_BUILD}) for record in sessions(tmp_path)]
    another_build(cache, now)
    (tmp_path / "base.jsonl").write_text("".join(record.line() + "\n" for record in blessed))
    assert command.bench(tmp_path, cache, "bless", "--records", "base.jsonl", "--emulated")[0] == ExitCode.GOOD

    library = json.loads((cache / "artifacts" / now / MANIFEST).read_text())["sha256"]
    faults.write_text(json.dumps({**steady, "slow_kernels": [{"factor": 1.3, "library": f"{library}*"}]}))
    code, said = bench(tmp_path, cache, "gate", "--relevant", "10", device="virtual", faults=faults)
    assert code == ExitCode.SLOWER, said
    assert f"{CASE}: slower: " in said
    assert " sessions in turns" in said


def another_build(cache: Path, artifact: str) -> None:
    """The same code in a library of another hash, as an artifact of the store."""
    folder = cache / "artifacts" / OTHER_BUILD
    shutil.copytree(cache / "artifacts" / artifact, folder)
    (folder / SUMS).unlink()
    library, manifest = folder / LIBRARY, folder / MANIFEST
    library.write_bytes(library.read_bytes() + b"\0")
    sha256 = hashlib.sha256(library.read_bytes()).hexdigest()
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "sha256": sha256}))
