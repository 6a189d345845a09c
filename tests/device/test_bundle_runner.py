"""A bundle for this host: its script under mksh and toybox, as on a phone, and its runner, in an empty environment.

What only a phone has (its loader, its OpenCL, `dumpsys`) is not in these tests; `make test-arm64` runs what is packed
for phones and boards under qemu.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest
from shell_bundles import FOR_THIS_HOST, Made, Place
from waiting import LONG_S, eventually

from device_runner.device import Loadable, PeakMemory
from device_runner.registry import open_device
from device_runner.runtimes import clml
from device_runner.stand_ins.virtual import userland
from harness.base.case import Tuning
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Budget
from harness.compile.artifacts.artifact import CRC, Artifact
from harness.compile.artifacts.reference_kernel import compile_reference
from harness.measure.facts import Batches
from harness.tools.bundle import pack as packing
from harness.tools.bundle import turn_files
from harness.tools.bundle.manifest import LINES
from harness.tools.bundle.results import BundleResults, read_results
from harness.tools.labelled.part import TopOne

pytestmark = [pytest.mark.rest, pytest.mark.device]

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
RIGHT = 2 * np.maximum(X, 0)
HANGS_AFTER_S = 3.0
AMPLE = Budget(seconds=20.0, samples=10)
"""Time for the largest batches, however long a busy host makes an inference; ten samples end it soon."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    if reason := userland.why_not():
        pytest.skip(f"{reason} here: apt-get install mksh toybox")
    made = Place(tmp_path, tmp_path / "bin")
    made.bin.mkdir()
    userland.install(made.bin, "11")
    (made.bin / "ld").symlink_to(str(shutil.which("ld")))  # PoCL's, which a phone's OpenCL does without
    return made


def read(place: Place, cache: Path, **options: Any) -> BundleResults:
    return read_results(place.results, cache, **options)


def test_each_case_ends_as_it_would_on_any_device(
    place: Place, sidecar_cache: Path, opencl_program: Loadable, misbehaving: Loadable
) -> None:
    asleep, dead = np.array([60_000_000, 0, 0], np.int32), np.array([0, signal.SIGKILL, 0], np.int32)
    zero = np.zeros(1, np.int32)
    cases = [
        Made("good", opencl_program, X, RIGHT, AMPLE),
        Made("dies", misbehaving, dead, zero),
        Made("hangs", misbehaving, asleep, zero, Budget(timeout_s=HANGS_AFTER_S)),
        Made("wrong", opencl_program, X, RIGHT + 1),
        Made("again", opencl_program, X, RIGHT, AMPLE),
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
        batches = one.part(Batches)
        assert batches
        assert (batches.batch, batches.launches) == (32, 1)
        assert len(batches.batched_ms) == len(batches.synced_ms) == 5
        assert one.proofs["programs_from_source"] >= 1
        assert one.max_abs_err == 0
    for one in (good, wrong, again):
        memory = one.part(PeakMemory)
        assert memory
        assert 1 << 20 < (memory.process_bytes or 0) < 1 << 36
        assert memory.gpu_bytes is None  # no kgsl here
    assert dies.part(PeakMemory) is hangs.part(PeakMemory) is None
    assert "SIGKILL while running" in dies.message
    assert f"running did not end within {HANGS_AFTER_S:g} s" in hangs.message
    assert not wrong.wall_ms
    assert "off by 1" in wrong.message
    assert {one.identity.kind for one in results.records} == {"local"}  # it has no properties of Android's
    assert results.peaks["copy_bytes_s"] > 0


@pytest.mark.long
def test_what_was_timed_is_run_again_on_other_inputs_and_on_its_own(
    place: Place, sidecar_cache: Path, opencl_program: Loadable
) -> None:
    place.pack(
        sidecar_cache,
        Made("same", opencl_program, X, RIGHT, other=(X, RIGHT)),
        Made("stale", opencl_program, X, RIGHT, other=(X, RIGHT + 1)),
    )
    assert place.run()[0] == 0
    same, stale = read(place, sidecar_cache).records
    assert same.outcome is Outcome.OK
    assert stale.outcome is Outcome.WRONG_RESULT
    assert "its answer to other inputs equals that to the case's own" in stale.message
    assert not stale.wall_ms


@pytest.mark.long
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
    (place.results / LINES).write_bytes((place.results / LINES).read_bytes().replace(b'"near": true', b'"near": fals'))
    with pytest.raises(UsageError, match="does not follow from"):
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
    assert (code, "changed since it was packed" in said) == (2, True)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("reference")
    made = compile_reference(None, folder)
    return Artifact("c-reference", Loadable(folder / made.library, "0" * 64, 1), made, 1, reused=False)


@pytest.mark.long
def test_tuned_cases_and_the_reference_kernel_are_prepared_once(
    place: Place,
    sidecar_cache: Path,
    opencl_program: Loadable,
    reference: Artifact,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(turn_files.RULES, "reference_timeout_s", LONG_S)  # the machine may be busy
    tuned = Made("one", opencl_program, X, RIGHT, tuning=Tuning.TUNED, reference=reference)
    place.pack(sidecar_cache, tuned, replace(tuned, name="two", tuning=Tuning.UNTUNED), sessions=2)
    assert place.run()[0] == 0
    records = read(place, sidecar_cache).records
    assert {(one.outcome, one.message) for one in records} == {(Outcome.OK, "")}
    for one in records:
        is_tuned = one.tuning == "tuned"
        assert (one.proofs["programs_from_source"] == 0, one.proofs["programs_from_binary"] > 0) == (is_tuned, is_tuned)
        assert one.reference
        assert len(one.reference.ms) == len(one.reference.slowed_ms) == 6
    (kernel,) = {one.reference.kernel for one in records if one.reference}
    crc, turns = str(kernel).split("-")
    assert crc == f"{reference.compiled.facts[CRC]:08x}"
    assert int(turns) in [8192 * 4**times for times in range(6)]
    lines = [json.loads(line[65:]) for line in (place.results / LINES).read_text().splitlines()]
    prepared = [set(line["said"]) & {"tune", "reference", "turns"} for line in lines if line["kind"] == "seen"]
    assert prepared == [{"tune", "reference", "turns"}, set(), set(), set()]


@pytest.mark.long
def test_a_case_whose_tuning_session_dies_is_not_run(
    place: Place, sidecar_cache: Path, misbehaving: Loadable, reference: Artifact
) -> None:
    dead = np.array([0, signal.SIGKILL, 0], np.int32)
    case = Made("dies", misbehaving, dead, np.zeros(1, np.int32), tuning=Tuning.TUNED, reference=reference)
    place.pack(sidecar_cache, case, sessions=2)
    assert place.run()[0] == 0
    for one in read(place, sidecar_cache).records:
        assert one.outcome is Outcome.DEVICE_CRASH
        assert "SIGKILL while running" in one.message


@pytest.mark.long
def test_clml_tunes_into_a_file_that_later_turns_use(
    place: Place, sidecar_cache: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With our model of CLML, which a bundle does not have: TVM's own is in the runtimes that people bring."""
    runtime = packing.runtime_of(FOR_THIS_HOST, sidecar_cache)
    with_clml = replace(runtime, libraries=[*runtime.libraries, clml.library(sidecar_cache)])
    monkeypatch.setattr(packing, "runtime_of", lambda kind, cache: with_clml)
    image = np.ones((1, 4, 8, 8), np.float32)
    near = 3.0 - np.isin(np.arange(8), (0, 7))  # how many of three neighbours there are
    sums = np.broadcast_to(4 * near[:, None] * near, image.shape).astype(np.float32)
    case = Made("one", programs.convolved(libraries, "clml"), image, sums, path="clml", tuning=Tuning.TUNED)
    place.pack(sidecar_cache, case, sessions=2)
    assert place.run()[0] == 0
    for one in read(place, sidecar_cache).records:
        assert (one.outcome, one.message) == (Outcome.OK, "")
        assert one.emulated == ("clml",)
        assert one.proofs["clml_hits"]
        assert not one.proofs["clml_misses"]
        assert set(one.toggles) == {"CLML_TUNING_CACHE"}


def test_labelled_inputs_are_classified(place: Place, sidecar_cache: Path, opencl_program: Loadable) -> None:
    rows = np.random.default_rng(0).standard_normal((12, 8)).astype(np.float32)
    classes = rows.argmax(axis=1)
    labels = np.where(np.arange(12) < 9, classes, 0)
    place.pack(sidecar_cache, Made("one", opencl_program, X, RIGHT, labelled=(rows, labels, classes)))
    assert place.run()[0] == 0
    (record,) = read(place, sidecar_cache).records
    assert record.outcome is Outcome.OK
    counted = record.part(TopOne)
    assert counted
    assert (counted.inputs, counted.alike, counted.right) == (12, 12, int((classes == labels).sum()))


@pytest.mark.long
def test_its_device_is_this_host_as_local_is(
    place: Place, cache: Path, sidecar_cache: Path, opencl_program: Loadable
) -> None:
    place.pack(sidecar_cache, Made("one", opencl_program, X, RIGHT))
    assert place.run()[0] == 0
    (record,) = read(place, sidecar_cache).records
    with open_device("local", cache) as local:
        assert record.identity == local.identity
        assert record.identity_key == local.identity.key


ISOLATED = """#include <dlfcn.h>
void* dlopen(const char* name, int flags) {
  return ((void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen"))(name, flags & ~RTLD_GLOBAL);
}"""
"""Imitates bionic's linker_namespaces.cpp on glibc: what is opened with RTLD_GLOBAL serves no other library."""


def test_a_library_that_lacks_what_another_has_loads_by_androids_rules_of_scope(
    place: Place, sidecar_cache: Path, opencl_program: Loadable, monkeypatch: pytest.MonkeyPatch
) -> None:
    like_clml = shared(
        place.root, "like_clml", "extern int adreno_bench_opencl_held; int* held = &adreno_bench_opencl_held;"
    )
    runtime = packing.runtime_of(FOR_THIS_HOST, sidecar_cache)
    whole = replace(runtime, libraries=[*runtime.libraries, like_clml])
    monkeypatch.setattr(packing, "runtime_of", lambda *_: whole)
    monkeypatch.setenv("LD_PRELOAD", str(shared(place.root, "isolated", ISOLATED)))
    case = Made("one", opencl_program, X, RIGHT)
    place.pack(sidecar_cache, case)
    code, said = place.run()
    assert (code, "undefined symbol: adreno_bench_opencl_held" in said) == (4, True), said
    shutil.rmtree(place.there)
    shutil.rmtree(place.results)
    monkeypatch.setattr(turn_files, "ANDROID", FOR_THIS_HOST.abi)
    place.pack(sidecar_cache, case)
    assert place.run()[0] == 0
    (record,) = read(place, sidecar_cache).records
    assert record.outcome is Outcome.OK


def shared(folder: Path, name: str, code: str) -> Path:
    """A library of C code."""
    (folder / f"{name}.c").write_text(code)
    command = ["gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", str(folder / f"{name}.c"), "-o", str(folder / f"{name}.so")]
    subprocess.run(command, check=True, timeout=60)
    return folder / f"{name}.so"


def test_a_machine_without_opencl_is_told_so(
    place: Place, sidecar_cache: Path, opencl_program: Loadable, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.pack(sidecar_cache, Made("one", opencl_program, X, RIGHT))
    monkeypatch.setenv("OCL_ICD_VENDORS", str(place.root))
    code, said = place.run()
    assert code == 4
    assert "OpenCL does not work here" in said


def test_a_device_whose_driver_version_tvm_cannot_read_is_measured(
    place: Place, sidecar_cache: Path, opencl_program: Loadable, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = shared(place.root, "long_driver", Path(__file__).with_name("long_driver.c").read_text())
    place.pack(sidecar_cache, Made("one", opencl_program, X, RIGHT))
    monkeypatch.setenv("OPENCL_LAYERS", str(layer))
    assert place.run()[0] == 0
    (record,) = read(place, sidecar_cache).records
    assert record.outcome is Outcome.OK
    assert record.identity.driver.endswith("v" * 200)
