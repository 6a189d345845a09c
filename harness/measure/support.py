"""Compare the needs of a library with a device, before anything is pushed."""

from __future__ import annotations

from collections.abc import Iterator

from device_runner.device import Identity
from device_runner.failures import Unsupported
from harness.base.plan import no_half
from harness.compile.artifacts.artifact import Artifact

OTHER_DEVICE = "run it on another device, or on this host with `--device local`"
LESS_MEMORY = "try it in half precision, with a smaller batch, or on another device"


def require_support(artifact: Artifact, identity: Identity) -> None:
    """Raise Unsupported if the device lacks what the library needs: number formats, images, work-groups, memory.

    Cases in half precision were refused before they were built (`Plan.unsupported`). A device that does not say whether
    it has something is given the library to try. Nothing is pushed that can only end in a device that kills its
    processes one after the other.
    """
    for why, hint in lacks(artifact, identity):
        raise Unsupported(why, hint=hint)


def lacks(artifact: Artifact, identity: Identity) -> Iterator[tuple[str, str]]:
    """Yield what the device lacks, in a line each, and what to do."""
    compiled, device = artifact.compiled, identity.gpu or identity.serial
    facts = compiled.facts
    half, double = facts.get("half_kernels", 0), facts.get("double_kernels", 0)
    if double and identity.fp64 is False:
        why = f"{device} cannot compute in float64 (no cl_khr_fp64), and the model does ({double} of its kernels)"
        yield why, "no Adreno computes in float64: export the model in float32"
    in_half = bool(half) or any(dtype == "float16" for _, _, dtype in compiled.inputs)
    if in_half and (why := no_half(identity)):
        yield f"{why}, and the model itself is in half precision ({half} of its kernels)", ""
    side, most_side = facts.get("image_side", 0), min(identity.image2d_max_width, identity.image2d_max_height)
    layers, most_layers = facts.get("image_layers", 0), identity.image_max_array_layers
    if side > most_side:
        yield f"the model needs an image of {side} pixels a side, and {device} has {most_side}", OTHER_DEVICE
    if layers > most_layers:
        yield f"the model needs an image of {layers} layers, and {device} has {most_layers}", OTHER_DEVICE
    groups = {name: launch.get("group") or 0 for name, launch in (compiled.launches or {}).items()}
    largest = max(groups, key=lambda name: groups[name], default="")
    if largest and 0 < identity.work_group_items < groups[largest]:
        why = f"{largest} needs work-groups of {groups[largest]} items, and {device} has {identity.work_group_items}"
        yield why, "build it without tuned schedules, or with those of a device with work-groups as small"
    local = {name: launch.get("local_bytes") or 0 for name, launch in (compiled.launches or {}).items()}
    largest = max(local, key=lambda name: local[name], default="")
    if largest and 0 < identity.local_memory_bytes < local[largest]:
        has = f"{device} has {identity.local_memory_bytes}"
        yield f"{largest} needs {local[largest]} bytes of local memory in a work-group, and {has}", LESS_MEMORY
    buffer = facts.get("buffer_bytes", 0)
    if 0 < identity.allocation_bytes < buffer:
        has = f"{device} allows {identity.allocation_bytes} bytes"
        yield f"the largest buffer of the model has {buffer} bytes, and {has}", LESS_MEMORY
    needed = artifact.size_bytes + facts.get("storage_bytes", 0)
    if 0 < identity.memory_bytes < needed:
        has = f"{device} has {identity.memory_bytes / 1e9:.3g} GB"
        yield f"the model takes about {needed / 1e9:.3g} GB of memory, and {has}", LESS_MEMORY
