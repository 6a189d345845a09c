"""What the probe's answer is read as, whatever a device sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity, PeakMemory
from device_runner.runtimes.probe import DeviceProbe
from device_runner.runtimes.probe.answers import BadAnswer, answer_of, memory_of
from device_runner.session.identification import Description
from harness.tools.doctor.opencl import examine_opencl
from harness.tools.shared.finding import Condition, DoctorFinding

DEVICE = {
    "platform": "QUALCOMM Snapdragon(TM)",
    "platform_version": "OpenCL 3.0 QUALCOMM build: 0762.10",
    "name": "QUALCOMM Adreno(TM)",
    "version": "OpenCL 3.0 Adreno(TM) 740",
    "driver_version": "E031.45",
    "extensions": "cl_khr_fp16 cl_qcom_ml_ops ",
    "image2d_max_width": 16384,
    "image2d_max_height": None,
    "image_max_array_layers": 0,
    "queue_properties": 3,
    "clml_versions": ["1.0", "4.1"],
}
WORDS = json.loads((Path(__file__).parents[3] / "fixtures/adreno_words.json").read_text())
"""What real Adrenos tell, as far as public reports show it; each names its report."""
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars, lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=5), some), max_leaves=10
)


def answered(*devices: dict[str, Any]) -> bytes:
    return json.dumps({"devices": devices, "files": ["/vendor/lib64/libOpenCL.so"], "problem": ""}).encode()


def description(**changes: Any) -> Description:
    (device,) = answer_of(answered({**DEVICE, **changes})).devices
    return Description(device.name, device.driver_version, device, ("/vendor/lib64/libOpenCL.so",))


def identity(what: Description) -> Identity:
    return Identity("phone", "serial", **what.fields)


@pytest.mark.parametrize(
    ("told", "known"),
    [
        (b'{"process": 1048576, "gpu": 4096}', PeakMemory(1 << 20, 4096)),
        (b'{"process": 1048576, "gpu": 0}', PeakMemory(1 << 20, None)),
        (b'{"process": 0, "gpu": 0}', PeakMemory()),
    ],
)
def test_a_peak_of_memory_that_is_0_is_not_known(told: bytes, known: PeakMemory) -> None:
    assert memory_of(told) == known


@pytest.mark.parametrize("told", [b"", b"{}", b'{"process": -1, "gpu": 0}', b'{"process": 1e30, "gpu": 0}', b"[]"])
def test_a_peak_of_memory_that_makes_no_sense_is_refused(told: bytes) -> None:
    with pytest.raises(BadAnswer):
        memory_of(told)


def test_a_device_is_what_it_says() -> None:
    who = identity(description())
    assert (who.gpu, who.clml, who.fp16) == ("Adreno(TM) 740", "4.1", True)
    assert who.driver == "OpenCL 3.0 QUALCOMM build: 0762.10 E031.45"


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words["source"])
def test_each_adreno_that_is_known_by_its_words_is_told_apart_and_fit(words: dict[str, Any]) -> None:
    told = dict(words)
    gpu = told.pop("gpu")
    (device,) = answer_of(answered({"platform": "QUALCOMM Snapdragon(TM)", **told})).devices
    found = Description(device.name, device.driver_version, device, ("/vendor/lib64/libOpenCL.so",))
    who = identity(found)
    assert who.gpu == gpu
    assert who.driver == " ".join(told.get(key, "").strip() for key in ("platform_version", "driver_version")).strip()
    listed = set(told.get("extensions", "").split())
    assert (who.fp16, who.fp64) == ((True, False) if listed else (None, None))
    assert bool(who.clml) is ("cl_qcom_ml_ops" in listed)
    assert who.memory_bytes == told.get("global_memory_bytes", 0)
    said = findings(found)
    assert {finding.state for finding in said.values()} <= {Condition.OK, Condition.NOTE}
    assert gpu in said["OpenCL"].seen


def test_no_two_of_them_are_one_device() -> None:
    keys = {identity(description(**{"driver_version": None, **words})).key for words in WORDS}
    assert len(keys) == len(WORDS)


def test_what_is_not_told_is_unknown_and_the_least_holds() -> None:
    who = identity(description(extensions=None))
    assert who.fp16 is None
    assert (who.image2d_max_width, who.image2d_max_height, who.image_max_array_layers) == (16384, 8192, 2048)


@pytest.mark.parametrize(
    ("changes", "gpu"),
    [
        ({"name": "Adreno(TM) 750"}, "Adreno(TM) 750"),
        ({"version": "OpenCL 3.0 "}, "QUALCOMM Adreno(TM)"),
        ({"name": "Mali-G78", "version": "OpenCL 3.0 v1.r32"}, "Mali-G78"),
    ],
)
def test_a_gpu_is_called_by_its_model_wherever_that_stands(changes: dict[str, str], gpu: str) -> None:
    assert identity(description(**changes)).gpu == gpu


@pytest.mark.parametrize(
    ("changes", "clml"), [({"clml_versions": None}, "unknown"), ({"extensions": "cl_khr_fp16"}, "")]
)
def test_opencl_ml_that_does_not_answer_is_unknown_and_without_it_there_is_none(
    changes: dict[str, Any], clml: str
) -> None:
    assert identity(description(**changes)).clml == clml


def test_the_device_that_tvm_uses_is_chosen_by_name_and_driver() -> None:
    other = {**DEVICE, "name": "llvmpipe", "driver_version": "23"}
    answer = answer_of(answered(other, DEVICE))
    assert answer.device_of("QUALCOMM Adreno(TM)", "E031.45") is answer.devices[1]
    assert answer.device_of("QUALCOMM Adreno(TM)", "E099") is None
    assert answer.device_of("", "23") is answer.devices[0]


@given(st.binary(max_size=50) | values.map(lambda value: json.dumps(value).encode()))
def test_no_answer_does_harm(text: bytes) -> None:
    try:
        answer_of(text)
    except BadAnswer:
        return


@given(st.dictionaries(st.sampled_from(sorted(DEVICE)), values))
def test_no_word_of_a_device_does_harm(changes: dict[str, Any]) -> None:
    try:
        who = identity(description(**changes))
    except BadAnswer:
        return
    limits = (who.image2d_max_width, who.image2d_max_height, who.image_max_array_layers)
    assert all(0 < limit < 1 << 31 for limit in limits)


@pytest.mark.parametrize("limit", [0, -1, 1 << 63, True, 16384.0, "16384", float("inf")])
def test_a_limit_that_is_none_is_unknown(limit: Any) -> None:
    assert identity(description(image2d_max_width=limit)).image2d_max_width == 8192


def findings(what: Description, lacking: str = "") -> dict[str, DoctorFinding]:
    class Patient:
        opencl = what
        identity = Identity("phone", "serial", **what.fields)
        probe = DeviceProbe(None)

    Patient.probe.lacking = lacking
    return {finding.what: finding for finding in examine_opencl(Patient(), clml_is_emulated=False)}  # type: ignore[arg-type]


def test_the_doctor_names_what_each_answer_rests_on() -> None:
    found = findings(description())
    assert all(
        "by the probe" in found[what].seen for what in ("OpenCL", "OpenCL library", "extensions", "fp16", "CLML")
    )
    assert "1.0, 4.1" in found["CLML"].seen
    assert found["images"].state is Condition.NOTE
    assert "image2d_max_height" in found["images"].seen


def test_the_doctor_names_a_driver_whose_interface_tvm_does_not_know() -> None:
    found = findings(description(clml_versions=["3.0", "4.1", "5.0"]))["CLML"]
    assert found.state is Condition.NOTE
    assert "one with version-5 headers takes version 5 here, which TVM does not know" in found.fix


def test_the_doctor_calls_unknown_what_only_the_probe_would_tell() -> None:
    found = findings(Description("QUALCOMM Adreno(TM)", "E031.45"), lacking="it could not be built")
    assert "by TVM's device attributes" in found["OpenCL"].seen
    assert found["probe"].seen == "not used: it could not be built"
    for what in ("fp16", "images", "extensions", "CLML"):
        assert found[what].state is Condition.NOTE
        assert found[what].seen.startswith("unknown")
