"""A bundle for phones as far as it can be run here: its script under mksh and toybox, its runner built for this host.

What only a phone has (its loader, its OpenCL, `dumpsys`) is not in these tests; `make test-arm64` runs the runner that
is packed for phones under qemu.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell_bundles import Made, Place
from waiting import LONG_S, eventually

from device_runner.device import Loadable
from device_runner.virtual import userland
from harness.bundle.chain import TURNS
from harness.bundle.results import Results, read_results
from harness.cases.plan import Budget
from harness.failures import UsageError
from harness.run.outcome import Outcome

pytestmark = pytest.mark.device

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
RIGHT = 2 * np.maximum(X, 0)
HANGS_AFTER_S = 3.0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    if reason := userland.why_not():
        pytest.skip(f"{reason} here: apt-get install mksh toybox")
    made = Place(tmp_path, tmp_path / "bin")
    made.bin.mkdir()
    userland.install(made.bin, "11")
    (made.bin / "ld").symlink_to(str(shutil.which("ld")))  # PoCL's, which a phone's OpenCL does without
    return made


def read(place: Place, cache: Path, **options: Any) -> Results:
    return read_results(place.results, cache, **options)


def test_each_case_ends_as_it_would_on_any_device(
    place: Place, sidecar_cache: Path, opencl_program: Loadable, misbehaving: Loadable
) -> None:
    asleep, dead = np.array([60_000_000, 0, 0], np.int32), np.array([0, signal.SIGKILL, 0], np.int32)
    zero = np.zeros(1, np.int32)
    cases = [
        Made("good", opencl_program, X, RIGHT),
        Made("dies", misbehaving, dead, zero),
        Made("hangs", misbehaving, asleep, zero, Budget(timeout_s=HANGS_AFTER_S)),
        Made("wrong", opencl_program, X, RIGHT + 1),
        Made("again", opencl_program, X, RIGHT),
    ]
    place.pack(sidecar_cache, *cases)
    assert place.run()[0] == 0
    results = read(place, sidecar_cache)
    good, dies, hangs, wrong, again = results.records
    assert [one.outcome for one in results.records] == [
        Outcome.OK,
        Outcome.DEVICE_CRASH,
        Outcome.HANG,
        Outcome.WRONG_RESULT,
        Outcome.OK,
    ]
    for one in (good, again):
        assert len(one.wall_ms) >= 10
        assert len(one.device_ms) >= 3
        assert one.batch == 32
        assert len(one.batched_ms) == len(one.synced_ms) == 5
        assert one.launches == 1
        assert one.proofs["programs_from_source"] >= 1
        assert one.max_abs_err == 0
    assert "SIGKILL while running" in dies.message
    assert f"running did not end within {HANGS_AFTER_S:g} s" in hangs.message
    assert not wrong.wall_ms
    assert "off by 1" in wrong.message
    assert {one.identity.kind for one in results.records} == {"local"}  # it has no properties of Android's
    assert results.peaks["copy_bytes_s"] > 0


def test_a_run_that_was_ended_leaves_nothing_behind_and_goes_on(
    place: Place, sidecar_cache: Path, opencl_program: Loadable
) -> None:
    place.pack(sidecar_cache, Made("one", opencl_program, X, RIGHT), Made("two", opencl_program, X, RIGHT), sessions=2)
    lines = place.results / "work" / "lines"
    process = place.start()
    eventually(lambda: any(lines.glob("*-seen")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG_S) == 130
    assert process.stderr
    assert "run it again with the same folder" in process.stderr.read()
    eventually(lambda: not running(place.there / "runner"))
    with pytest.raises(UsageError, match="of 4 turns, first"):
        read(place, sidecar_cache)
    assert read(place, sidecar_cache, partial=True).records
    assert place.run()[0] == 0
    whole = read(place, sidecar_cache)
    assert len(whole.records) == 4
    assert len({record.run for record in whole.records}) == 1
    assert "all turns are done" in place.run()[1]
    (place.results / TURNS).write_bytes((place.results / TURNS).read_bytes().replace(b'"near": true', b'"near": fals'))
    with pytest.raises(UsageError, match="is not what was written"):
        read(place, sidecar_cache)


def running(program: Path) -> bool:
    """Whether a process of this program is left."""
    found = []
    for link in Path("/proc").glob("[0-9]*/exe"):
        try:
            found.append(link.readlink() == program)
        except OSError:
            continue
    return any(found)


def test_a_bundle_that_was_changed_or_results_of_another_are_refused(
    place: Place, sidecar_cache: Path, opencl_program: Loadable
) -> None:
    place.pack(sidecar_cache, Made("one", opencl_program, X, RIGHT))
    place.results.mkdir()
    (place.results / "manifest.json").write_text("{}")
    code, said = place.run()
    assert (code, "is of another bundle" in said) == (2, True)
    (place.there / "look.sh").write_text("echo other")
    code, said = place.run()
    assert (code, "is not what was packed" in said) == (2, True)
