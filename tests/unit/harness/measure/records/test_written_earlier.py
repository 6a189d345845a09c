"""What an earlier version wrote is still read: records, baselines, noise profiles; kept results of a history are
read by `test_published_example`."""

import json
import shutil
from pathlib import Path

import pytest
from places import FIXTURES
from typer.testing import CliRunner

from harness.base.outcome import ExitCode
from harness.cli import app
from harness.judge import baseline
from harness.judge.noise import find_profile
from harness.measure.facts import Sampling
from harness.measure.records.record import RecordFile

EARLIER = FIXTURES / "earlier"
CASE, IDENTITY = "tiny-opencl-float32-untuned", "phone-Adreno740-cc0c2706"


def test_records_are_read_and_none_is_skipped() -> None:
    loaded = RecordFile(EARLIER / "records.jsonl").load()
    assert (len(loaded.records), loaded.skipped) == (6, [])
    assert [record.part(Sampling) for record in loaded.records] == [Sampling([12.0, 10.2], warmed_up=True)] * 6


def test_a_baseline_is_read_and_its_checksum_holds() -> None:
    (known,) = baseline.load(EARLIER / "baselines")
    assert (known.case, known.identity_key, len(known.sessions)) == (CASE, IDENTITY, 6)


def test_a_certificate_is_read_as_a_noise_profile() -> None:
    found = find_profile(EARLIER / "baselines", IDENTITY, CASE)
    assert found
    assert found.sessions == 6
    assert found.sd > 0


def test_a_gate_judges_such_records_by_such_a_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EARLIER, tmp_path / "earlier")
    monkeypatch.chdir(tmp_path / "earlier")
    done = CliRunner().invoke(app, ["gate", "--from", "records.jsonl", "--json"])
    assert done.exit_code == ExitCode.GOOD
    (case,) = json.loads(done.output)["cases"]
    assert (case["case"], case["base"]["latency_ms"]) == (CASE, pytest.approx(case["head"]["latency_ms"], rel=1e-4))
