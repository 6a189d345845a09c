"""The probe, in a server's process on this host: at an OpenCL that says what a test wants, and at the host's own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import LONG_S

from device_runner import installed_tvm
from device_runner.deadline import Deadline
from device_runner.device import Loadable
from device_runner.failures import RigFailure, SetupMissing
from device_runner.installed_tvm import EXTRA_LIBRARIES
from device_runner.runtimes import opencl, probe
from device_runner.runtimes.phone.elf import read_elf
from device_runner.stand_ins.local import RPC_SERVER, LocalDevice, LocalTransport
from harness.tools.doctor.opencl import examine_opencl
from harness.tools.shared.finding import Condition

pytestmark = [pytest.mark.rest, pytest.mark.device]
HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures"
SAID = {
    "platform_version": "PLATFORM_VERSION",
    "name": "NAME",
    "version": "VERSION",
    "driver_version": "DRIVER",
    "extensions": "EXTENSIONS",
}
WORDS = json.loads((FIXTURES / "adreno_words.json").read_text())
MATRIX = np.linspace(-1, 1, 32, dtype="float32").reshape(4, 8)

Absurd = Callable[..., LocalDevice]


def compiled(source: Path, made: Path, *flags: str) -> Path:
    compiler = os.environ.get("CXX") or "g++"
    command = [compiler, "-x", "c", "-shared", "-fPIC", "-DCL_TARGET_OPENCL_VERSION=300", str(source), *flags]
    subprocess.run([*command, "-o", str(made)], check=True, timeout=LONG_S)
    return made


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory, sidecar_cache: Path) -> Path:
    """A folder with an OpenCL that says what FAKE_OPENCL asks for, and has all other functions by name only."""
    folder = tmp_path_factory.mktemp("opencl")
    source = (HERE / "absurd_opencl.c").read_text()
    linked = read_elf(opencl.sidecar(sidecar_cache)).undefined
    names = sorted(name for name in linked if name.startswith("cl") and f" {name}(" not in source)
    stub = 'int {0}_(void) __asm__("{0}");\nint {0}_(void) {{ return CL_INVALID_OPERATION; }}\n'
    (folder / "all.c").write_text(source + "".join(stub.format(name) for name in names))
    compiled(folder / "all.c", folder / "libOpenCL.so.1", "-Wl,-soname,libOpenCL.so.1")
    (folder / "libOpenCL.so").symlink_to("libOpenCL.so.1")
    return folder


@pytest.fixture
def device(tmp_path: Path, sidecar_cache: Path) -> LocalDevice:
    return a_device(tmp_path, sidecar_cache)


@pytest.fixture
def absurd(fake: Path, tmp_path: Path, sidecar_cache: Path) -> Absurd:
    """A device whose OpenCL is as it is called."""

    def make(what: str, **words: str) -> LocalDevice:
        return a_device(tmp_path, sidecar_cache, LD_LIBRARY_PATH=str(fake), FAKE_OPENCL=what, **words)

    return make


def a_device(folder: Path, cache: Path, **environment: str) -> LocalDevice:
    if opencl.needed():
        environment[EXTRA_LIBRARIES] = str(opencl.sidecar(cache))
    return LocalDevice("local", LocalTransport(str(folder), environment), RPC_SERVER, partial(probe.library, cache))


def test_an_adreno_is_known_by_model_driver_limits_and_opencl_ml(absurd: Absurd) -> None:
    who = absurd("adreno").identity
    assert who.gpu == "Adreno(TM) 740"
    assert who.driver.endswith("Compiler E031.45.02.16")
    assert who.clml == "4.1"
    assert who.fp16 is True
    assert (who.image2d_max_width, who.image2d_max_height, who.image_max_array_layers) == (16384, 16384, 2048)
    assert who.opencl_told_by == "probe"
    assert len(who.opencl_libraries) == 16


def test_a_driver_version_that_tvm_cannot_read_is_told_whole_by_the_probe(absurd: Absurd) -> None:
    who = absurd("wordy").identity
    assert (who.gpu, who.opencl_told_by) == ("Adreno(TM) 740", "probe")
    assert len(who.driver.partition("0762.10 ")[2]) == 200


@pytest.mark.parametrize("words", WORDS, ids=[f"{words['gpu']} {place}" for place, words in enumerate(WORDS)])
def test_real_words_are_told_by_the_probe_as_they_are_and_fit_the_doctor(words: dict[str, Any], absurd: Absurd) -> None:
    told = {f"FAKE_{variable}": words[key] for key, variable in SAID.items() if key in words}
    device = absurd("adreno", **{"FAKE_VERSION": "OpenCL 3.0 ", **told})  # no model but the report's
    who = device.identity
    assert (who.gpu, who.fp64, who.opencl_told_by) == (words["gpu"], False, "probe")
    known = [words[key].strip() for key in ("platform_version", "driver_version") if key in words]
    assert all(part in who.driver for part in known)
    assert "extensions" not in words or set(who.extensions) == set(words["extensions"].split())
    findings = {finding.what: finding for finding in examine_opencl(device, False)}
    assert {finding.state for finding in findings.values()} <= {Condition.OK, Condition.NOTE}
    assert words["gpu"] in findings["OpenCL"].seen


def test_a_driver_version_that_tvm_cannot_read_is_empty_without_the_probe(absurd: Absurd, tmp_path: Path) -> None:
    device = absurd("wordy")
    device.probe = probe.DeviceProbe(None)
    assert (device.identity.gpu, device.identity.driver) == ("QUALCOMM Adreno(TM)", "")


def test_only_opencls_own_files_tell_drivers_apart(absurd: Absurd, fake: Path) -> None:
    (only,) = absurd("adreno").opencl.files
    assert Path(only).resolve() == fake / "libOpenCL.so.1"


def test_a_limit_of_zero_is_unknown_and_every_device_has_at_least_the_least(absurd: Absurd) -> None:
    device = absurd("zero")
    who = device.identity
    assert (who.image2d_max_width, who.image2d_max_height, who.image_max_array_layers) == (8192, 8192, 2048)
    assert device.opencl.device
    assert device.opencl.device.image2d_max_width is None
    assert device.opencl.device.facts["max_work_group_size"] is None


def test_a_hundred_kilobytes_of_extensions_arrive(absurd: Absurd) -> None:
    device = absurd("long")
    told = device.opencl.device
    assert told
    assert len(told.facts["extensions"]) == 100_000
    assert device.identity.fp16 is False
    assert device.identity.clml == ""


def test_a_name_that_is_no_text_does_no_harm(absurd: Absurd) -> None:
    who = absurd("latin").identity
    assert "740" in who.gpu
    assert who.opencl_told_by == "probe"


def test_an_opencl_that_dies_of_the_probes_questions_is_known_by_tvms(absurd: Absurd) -> None:
    device = absurd("fragile")
    who = device.identity
    assert (who.gpu, who.opencl_told_by) == ("QUALCOMM Adreno(TM)", "tvm")
    assert who.driver.endswith("Compiler E031.45.02.16")
    assert who.fp16 is None
    assert (who.image2d_max_width, who.clml) == (8192, "")
    assert "died of SIGSEGV" in device.probe.lacking


@pytest.mark.parametrize("what", ["crash", "none"])
def test_an_opencl_that_cannot_be_used_is_a_missing_setup(absurd: Absurd, what: str) -> None:
    with pytest.raises(SetupMissing, match="OpenCL does not work on local") as caught:
        _ = absurd(what).identity
    assert "adreno-bench doctor" in caught.value.hint


@pytest.mark.parametrize("refused", ["no library", "cannot be built"])
def test_without_the_probe_a_device_is_known_by_tvms_words_and_runs(
    refused: str, device: LocalDevice, tmp_path: Path, opencl_program: Loadable
) -> None:
    def make() -> Path:
        if refused == "cannot be built":
            raise SetupMissing("there is no compiler")
        (tmp_path / "junk.probe.so").write_text("no library")
        return tmp_path / "junk.probe.so"

    device.probe = probe.DeviceProbe(make)
    assert device.identity.opencl_told_by == "tvm"
    assert device.identity.gpu
    assert device.identity.fp16 is None
    with device.session({}, timeout_s=LONG_S) as session:
        program = session.load(opencl_program, timeout_s=LONG_S)
        program.run([MATRIX], timeout_s=LONG_S)
        assert session.program_counts(timeout_s=LONG_S) == {}
        with pytest.raises(RigFailure, match="without the probe") as caught:
            program.binaries(timeout_s=LONG_S)
    assert device.probe.lacking in caught.value.message


def test_binaries_that_the_runtime_returns_as_a_string_arrive_whole(device: LocalDevice, tmp_path: Path) -> None:
    includes = [f"-I{folder}" for folder in installed_tvm.include_folders("tvm_ffi")]
    library = compiled(HERE / "program_binaries.c", tmp_path / "lib.so", *includes)
    with device.session({}, timeout_s=LONG_S) as session:
        module = session.remote.load_module(str(library))
        assert len(module.get_function("opencl.GetPreCompiledPrograms")()) == 1  # as RPC carries a String
        arrived = session.probe.program_binaries(module, Deadline(LONG_S))
    assert arrived == b"\2\0\0\0\0\0\0\0\0\xff two programs"


def test_programs_are_counted_by_what_they_were_made_from(device: LocalDevice, opencl_program: Loadable) -> None:
    with device.session({}, timeout_s=LONG_S) as session:
        program = session.load(opencl_program, timeout_s=LONG_S)
        program.run([MATRIX], timeout_s=LONG_S)
        cold = session.program_counts(timeout_s=LONG_S)
        binaries = program.binaries(timeout_s=LONG_S)
    assert (cold["programs_from_binary"], cold["programs_from_source"]) == (0, 1)
    with device.session({}, timeout_s=LONG_S) as session:
        program = session.load(opencl_program, timeout_s=LONG_S)
        program.use_binaries(binaries, timeout_s=LONG_S)
        outputs, _ = program.run([MATRIX], timeout_s=LONG_S)
        warm = session.program_counts(timeout_s=LONG_S)
    assert (warm["programs_from_binary"], warm["programs_from_source"]) == (1, 0)
    assert np.array_equal(outputs[0], 2 * np.maximum(MATRIX, 0))


def test_kernels_are_watched_while_the_timer_runs(device: LocalDevice, opencl_program: Loadable) -> None:
    with device.session({}, timeout_s=LONG_S) as session:
        program = session.load(opencl_program, timeout_s=LONG_S)
        program.run([MATRIX], timeout_s=LONG_S)
        first = program.launches(3, timeout_s=LONG_S)
        again = program.launches(2, timeout_s=LONG_S)
        samples = program.device_ms(5, timeout_s=LONG_S)
    assert [len(one) for one in (first, again)] == [3, 2]
    launches = [launch for inference in [*first, *again] for launch in inference]
    assert len({launch.kernel for launch in launches}) == len(first[0])
    assert all(launch.queued_ns <= launch.submit_ns <= launch.start_ns < launch.end_ns for launch in launches)
    assert all(min(launch.threads) > 0 and min(launch.group) > 0 for launch in launches)
    sums = [sum(launch.end_ns - launch.start_ns for launch in one) / 1e6 for one in first]
    assert min(sums) < 20 * max(samples)
    assert max(sums) > min(samples) / 20


def test_a_server_that_is_killed_once_while_the_probe_is_asked_does_not_end_its_use() -> None:
    used = probe.DeviceProbe(lambda: Path(__file__))
    used.broke("memory", "died of SIGKILL")
    assert (used.lacking, used.suspect) == ("", True)
    used.worked("memory")
    used.broke("memory", "died of SIGKILL")
    used.worked("load")
    assert used.ready()
    used.broke("memory", "died of SIGKILL")
    assert (used.lacking, used.ready()) == ("died of SIGKILL", None)
