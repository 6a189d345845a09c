"""What a device's OpenCL can do, and what each answer rests on.

The probe tells everything. Where it is lacking, TVM's runtime tells the device's name and its driver's version, and the
rest is unknown, which is not the same as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.tools.shared.finding import Condition, DoctorFinding

if TYPE_CHECKING:
    from device_runner.device import Identity
    from device_runner.rpc_device import RpcDevice
    from device_runner.session.identification import Description

QUALCOMM = ("cl_qcom_ml_ops", "cl_qcom_recordable_queues", "cl_qcom_perf_hint")
BY_PROBE, BY_TVM = "by the probe", "by TVM's device attributes"
NEWEST_CLML = 4
"""Newest interface version that TVM's runtime has calls for (clml_runtime.cc, `CLML_CALL`)."""
PROFILING = 2
"""Bit of the queue's properties (OpenCL, CL_QUEUE_PROFILING_ENABLE)."""


def examine_opencl(device: RpcDevice, clml_is_emulated: bool) -> Iterator[DoctorFinding]:
    """Yield all findings. Raises `SetupMissing` if OpenCL cannot be used."""
    description, who = device.opencl, device.identity
    yield _probe(device.probe.lacking or ("" if description.device else "it knows no device that is called so"))
    source = BY_PROBE if description.device else BY_TVM
    yield DoctorFinding("OpenCL", Condition.OK, f"GPU {who.gpu or '?'}; driver {who.driver or '?'}; {source}")
    if description.device is None:
        yield _unknown("fp16", "cases in half precision are tried")
        yield _unknown("images", f"libraries are built for {_images(who)}, which every device has")
        yield _unknown("extensions", "path clml is tried")
    else:
        yield DoctorFinding(
            "OpenCL library", Condition.OK, f"{' '.join(description.files) or 'its files do not show'}; {BY_PROBE}"
        )
        yield _extensions(set(who.extensions))
        yield _fp16(who)
        yield _image_limits(who, description.device.facts)
        yield DoctorFinding("limits", Condition.OK, f"{_limits(description.device.facts)}; {BY_PROBE}")
    yield _clml(who, clml_is_emulated, description)


def _probe(lacking: str) -> DoctorFinding:
    if lacking:
        fix = "what it would report is unknown below, and tuned cases of opencl and texture cannot be run"
        return DoctorFinding("probe", Condition.NOTE, f"not used: {lacking}", fix)
    return DoctorFinding("probe", Condition.OK, "loads and answers")


def _unknown(what: str, then: str) -> DoctorFinding:
    return DoctorFinding(what, Condition.NOTE, f"unknown: {then}")


def _extensions(have: set[str]) -> DoctorFinding:
    text = f"{len(have)}, of Qualcomm's {', '.join(sorted(have & set(QUALCOMM))) or 'none'}; {BY_PROBE}"
    fix = "" if QUALCOMM[0] in have else f"none: path clml needs {QUALCOMM[0]}"
    return DoctorFinding.of("extensions", text, fix)


def _fp16(who: Identity) -> DoctorFinding:
    if who.fp16 is None:
        return _unknown("fp16", "cases in half precision are tried")
    if who.fp16:
        return DoctorFinding("fp16", Condition.OK, f"yes; {BY_PROBE}")
    return DoctorFinding("fp16", Condition.NOTE, f"no cl_khr_fp16; {BY_PROBE}", "none: such cases end as `unsupported`")


def _image_limits(who: Identity, facts: Mapping[str, Any]) -> DoctorFinding:
    names = ("image2d_max_width", "image2d_max_height", "image_max_array_layers")
    if untold := [name for name in names if not facts.get(name)]:
        text = f"{_images(who)}; of which {', '.join(untold)} unknown: what every device has"
        return DoctorFinding("images", Condition.NOTE, text)
    return DoctorFinding("images", Condition.OK, f"{_images(who)}; {BY_PROBE}")


def _images(who: Identity) -> str:
    return f"{who.image2d_max_width} x {who.image2d_max_height}, arrays to {who.image_max_array_layers} layers"


def _limits(facts: Mapping[str, Any]) -> str:
    def limit(name: str, scale: int = 1) -> str:
        value = facts.get(name)
        return f"{value // scale}" if isinstance(value, int) and value else "?"

    queue = facts.get("queue_properties")
    profiling = "?" if not isinstance(queue, int) else "yes" if queue & PROFILING else "no"
    memory, buffer = limit("global_memory_bytes", 1 << 20), limit("max_allocation_bytes", 1 << 20)
    return (
        f"work groups to {limit('max_work_group_size')}, {limit('compute_units')} compute units, memory {memory} MiB, "
        f"buffers to {buffer} MiB, local {limit('local_memory_bytes', 1 << 10)} KiB, "
        f"timer {limit('timer_resolution_ns')} ns, profiling {profiling}"
    )


def _clml(who: Identity, emulated: bool, description: Description) -> DoctorFinding:
    if emulated:
        return DoctorFinding("CLML", Condition.OK, "a functional model, whose time means nothing; by the model")
    if description.device is None:
        return _unknown("CLML", "path clml is tried")
    if not who.clml:
        return DoctorFinding("CLML", Condition.NOTE, f"no cl_qcom_ml_ops; {BY_PROBE}", "none: path clml needs it")
    versions = ", ".join(description.device.clml_versions) or "it does not answer"
    text = f"interface versions: {versions}; {BY_PROBE}, which asked it"
    newest = max((version.partition(".")[0] for version in description.device.clml_versions), key=int, default="0")
    if int(newest) <= NEWEST_CLML:
        return DoctorFinding("CLML", Condition.OK, text)
    fix = (
        f"build TVM's runtime with an SDK of version {NEWEST_CLML} or older: one with version-{newest} headers takes "
        f"version {newest} here, which TVM does not know, and every case of clml is `unsupported`: see "
        "docs/how-to/phones.md"
    )
    return DoctorFinding("CLML", Condition.NOTE, text, fix)
