"""The CLML model where it belongs: in the process of an RPC server, with the tuning file between two sessions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compile_once import zoo_compiled
from waiting import FENCE_S

from device_runner.device import Device, Loadable, Toggles
from device_runner.failures import Unsupported
from device_runner.registry import open_device
from harness.compile.models.spec import InputSpec, seeded_inputs

pytestmark = [pytest.mark.rest, pytest.mark.device]


@pytest.fixture(params=["local", "virtual"])
def device(request: pytest.FixtureRequest, cache: Path) -> Iterator[Device]:
    with open_device(request.param, cache) as opened:
        yield opened


@pytest.fixture(scope="module")
def compiled(common: Path) -> dict[str, Any]:
    """A small network on paths `clml` and `cpu`, and its inputs."""
    made: dict[str, Any] = {}
    for path in ("clml", "cpu"):
        folder, built = zoo_compiled(common, "tiny", path)
        library = folder / built.library
        sha256 = hashlib.sha256(library.read_bytes()).hexdigest()
        made[path] = Loadable(library, sha256, built.vdevices, "cpu" if path == "cpu" else "opencl")
        made["inputs"] = [InputSpec(name, tuple(shape), dtype) for name, shape, dtype in built.inputs]
    made["inputs"] = list(seeded_inputs(made["inputs"], seed=3).values())
    return made


@pytest.fixture
def expected(device: Device, compiled: dict[str, Any]) -> Any:
    with device.session({}, timeout_s=FENCE_S) as session:
        (output,), _ = session.load(compiled["cpu"], timeout_s=FENCE_S).run(compiled["inputs"], timeout_s=FENCE_S)
    return output


def told(device: Device, compiled: dict[str, Any], toggles: Toggles) -> tuple[Any, dict[str, Any], str]:
    """The answer of a session, what the model says of it, and the server's log."""
    with device.session(toggles, timeout_s=FENCE_S) as session:
        (output,), _ = session.load(compiled["clml"], timeout_s=FENCE_S).run(compiled["inputs"], timeout_s=FENCE_S)
        return output, json.loads(session.call("adreno_bench.clml_info", timeout_s=FENCE_S)), session.log()


def test_a_tuning_session_serves_the_next(device: Device, compiled: dict[str, Any], expected: Any) -> None:
    with device.scratch("clml-tuning") as path:
        cache = {"CLML_TUNING_CACHE": path}
        _, tuning, _ = told(device, compiled, {**cache, "CLML_IS_TUNING_RUN": "1"})
        output, tuned, log = told(device, compiled, cache)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
    assert all(counts["saved"] == 1 for counts in tuning["symbols"].values())
    assert set(tuned["symbols"]) == set(tuning["symbols"])
    for symbol, counts in tuned["symbols"].items():
        assert (counts["hits"], counts["misses"], counts["tuned"]) == (1, 0, counts["tunable"])
        assert f"Loading tuning cache for symbol:{symbol} size:" in log
    assert "CLML Target Version:4.0" in log
    assert "CLML is emulated by adreno-bench" in log


@pytest.mark.parametrize("version", ["none", "5.0"])
def test_a_device_without_usable_clml_is_unsupported(version: str, device: Device, compiled: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        told(device, compiled, {"ADRENO_BENCH_CLML_VERSION": version})


def test_switches_reach_the_server(device: Device, compiled: dict[str, Any], expected: Any) -> None:
    output, info, _ = told(device, compiled, {"CLML_DISABLE_RECORDABLE_QUEUE": "1"})
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
    assert (info["recordable_queue"], info["tuning_run"]) == (False, False)
