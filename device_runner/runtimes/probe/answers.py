"""What the probe answers. It comes from the device, so it is checked and not trusted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from device_runner.device import Launch, PeakMemory
from device_runner.foreign_json import read_json

CLML_EXTENSION = "cl_qcom_ml_ops"
UNKNOWN_CLML = "unknown"
LARGEST_LIMIT = (1 << 31) - 1
"""Largest credible limit of an image, in pixels or layers; a larger one counts as unknown."""
LARGEST_MEMORY = 1 << 50
_MODEL = re.compile(r"OpenCL \d+\.\d+ (.*\d.*)")


class BadAnswer(Exception):
    """An answer that our probe never gives."""


@dataclass(frozen=True)
class OpenCLDevice:
    """One OpenCL device. Empty text, no extensions, None: the driver does not say, or says 0 of a limit."""

    platform: str
    platform_version: str
    name: str
    version: str
    driver_version: str
    extensions: tuple[str, ...] = ()
    """Sorted."""
    image2d_max_width: int | None = None
    image2d_max_height: int | None = None
    image_max_array_layers: int | None = None
    clml_versions: tuple[str, ...] = ()
    """OpenCL ML's interface versions, `major.minor`, in the library's order; asked only with `cl_qcom_ml_ops`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """All that it told, as the probe names it (`src/describe.c`)."""

    @property
    def gpu(self) -> str:
        """What tells GPUs apart: an Adreno's name may be the maker's alone, and its version then has the model."""
        model = _MODEL.fullmatch(self.version)
        return model[1] if model and "Adreno" in self.name and not re.search(r"\d", self.name) else self.name

    def size(self, fact: str) -> int:
        """Return a number of `facts`, 0 if it does not say."""
        value = self.facts.get(fact)
        return value if type(value) is int and value > 0 else 0

    @property
    def driver(self) -> str:
        """Platform and driver version."""
        return " ".join(filter(None, (self.platform_version, self.driver_version)))

    @property
    def clml(self) -> str:
        """The interface version that TVM's runtime takes, the last; empty without OpenCL ML, or `unknown`."""
        if CLML_EXTENSION not in self.extensions:
            return ""
        return self.clml_versions[-1] if self.clml_versions else UNKNOWN_CLML


@dataclass(frozen=True)
class OpenClReport:
    """What a process's OpenCL says of itself."""

    devices: tuple[OpenCLDevice, ...]
    """Devices of all platforms, in OpenCL's order."""
    files: tuple[str, ...]
    """Paths of what OpenCL consists of in this process, as far as names show."""
    problem: str
    """Why there is no device; empty if there is one."""

    def device_of(self, name: str, driver_version: str) -> OpenCLDevice | None:
        """Return the first device that TVM's runtime calls so, None if there is none.

        An empty word fits every device.
        """
        for device in self.devices:
            if name in ("", device.name) and driver_version in ("", device.driver_version):
                return device
        return None


@contextmanager
def read(text: bytes) -> Iterator[Any]:
    """Yield the JSON value; raise BadAnswer for text that is none, and for a value that the block cannot take."""
    try:
        yield read_json(text.decode(errors="replace"))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise BadAnswer(f"{type(error).__name__}: {error}") from error


def answer_of(text: bytes) -> OpenClReport:
    """Read what `describe` returned. Raises BadAnswer."""
    with read(text) as answer:
        return OpenClReport(
            tuple(_device(device) for device in answer["devices"]),
            tuple(str(path) for path in answer["files"]),
            str(answer["problem"]),
        )


def _device(facts: Mapping[str, Any]) -> OpenCLDevice:
    def text(key: str) -> str:
        return plain(str(facts.get(key) or ""))

    def limit(key: str) -> int | None:
        value = facts.get(key)
        return value if type(value) is int and 0 < value <= LARGEST_LIMIT else None

    return OpenCLDevice(
        text("platform"),
        text("platform_version"),
        text("name"),
        text("version"),
        text("driver_version"),
        tuple(sorted(set(text("extensions").split()))),
        limit("image2d_max_width"),
        limit("image2d_max_height"),
        limit("image_max_array_layers"),
        tuple(str(version) for version in facts.get("clml_versions") or ()),
        dict(facts),
    )


def plain(text: str) -> str:
    """Return what a driver says, without the spaces and zeros that some end it with."""
    return text.strip().strip("\0").strip()


def memory_of(text: bytes) -> PeakMemory:
    """Read what `memory` returned. Raises BadAnswer."""
    with read(text) as answer:
        process, gpu = (int(answer[name]) for name in ("process", "gpu"))
        if not 0 <= process <= LARGEST_MEMORY or not 0 <= gpu <= LARGEST_MEMORY:
            raise ValueError("no amount of memory")
        return PeakMemory(process or None, gpu or None)


def counts_of(text: bytes) -> dict[str, int]:
    """Read what `programs` returned: programs by what they were made from. Raises BadAnswer."""
    with read(text) as answer:
        return {str(name): int(count) for name, count in answer.items()}


def launches_of(text: bytes) -> tuple[list[Launch], int]:
    """Read what `launches` returned: those with times, oldest first, and how many were dropped. Raises BadAnswer."""
    with read(text) as answer:
        return [_launch(launch) for launch in answer["launches"]], int(answer["dropped"])


def _launch(fields: Mapping[str, Any]) -> Launch:
    times = (int(fields["queued"]), int(fields["submit"]), int(fields["start"]), int(fields["end"]))
    if list(times) != sorted(times):
        raise BadAnswer(f"a launch of {fields['kernel']} ends before it starts")
    return Launch(str(fields["kernel"]), _sizes(fields["global"]), _sizes(fields["local"]), *times)


def _sizes(sizes: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = map(int, sizes)
    return x, y, z


def batches_of(text: bytes, repeat: int) -> tuple[list[float], list[float]]:
    """Read what `batches` returned: ms of an inference, in batches and each waited for. Raises BadAnswer."""
    with read(text) as answer:
        batched, synced = ([float(ns) / 1e6 for ns in answer[kind]] for kind in ("batched_ns", "synced_ns"))
    if not len(batched) == len(synced) == repeat or not all(0 < ms < math.inf for ms in (*batched, *synced)):
        raise BadAnswer(f"{len(batched)} and {len(synced)} times of {repeat} batches")
    return batched, synced
