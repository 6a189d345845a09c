"""Two hosts that share nothing but a cable, a tracker on one, and a run and a search that use the devices of both."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plain_network import write_plain_onnx
from shared_runtimes import link_runtimes
from waiting import LONG_S

from harness.base.outcome import Outcome
from harness.measure.records.record import RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver"), pytest.mark.long]

SCRIPT = Path(__file__).parent / "two_hosts.sh"
SUITE = 'models = ["plain.onnx"]\npaths = ["opencl", "texture"]\nbudget_s = 0.1\nsamples = 10\n'
ALONE = ["unshare", "--user", "--map-root-user", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child"]


def why_not() -> str:
    """Why this host cannot imitate two; empty if it can."""
    missing = [tool for tool in ("unshare", "nsenter", "ip", "hostname") if not shutil.which(tool)]
    if missing:
        return f"there is no {', '.join(missing)} here (apt-get install util-linux iproute2 hostname)"
    tried = [*ALONE, "sh", "-c", "hostname here && ip link add near type veth peer name far"]
    done = subprocess.run(tried, capture_output=True, text=True, timeout=20, check=False)
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else ""


def test_a_run_and_a_search_spread_over_the_devices_of_two_hosts(
    tmp_path: Path, cache: Path, sidecar_cache: Path
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    write_plain_onnx(tmp_path)
    (tmp_path / "adreno-bench.toml").write_text(SUITE)
    (tmp_path / "here").symlink_to(cache)
    for host in ("offered", "there"):
        (tmp_path / host).mkdir()
        link_runtimes(tmp_path / host, sidecar_cache)
    command = [*ALONE, "--mount-proc", "bash", str(SCRIPT), sys.executable, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG_S, check=False)
    logs = {name: (tmp_path / f"{name}.log").read_text() for name in ("here", "there", "tracker")}
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"
    records = RecordFile(tmp_path / "records.jsonl").load().records
    assert [record.outcome for record in records] == [Outcome.OK, Outcome.OK]
    assert sorted(record.device for record in records) == ["virtual@here", "virtual@there"]
    lines = [line for log in (tmp_path / "here/trials").glob("*/trials.jsonl") for line in log.read_text().splitlines()]
    devices = [trial["device"] for trial in map(json.loads, lines)]  # the cache is shared with other tests
    assert sum(device.endswith("@there") for device in devices) >= 1
    assert sum("@" in device for device in devices) == 4
