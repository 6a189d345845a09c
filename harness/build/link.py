"""Linking host code for a device of another processor, as TVM's `export_library` asks for it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from device_runner.device import Identity
from device_runner.failures import SetupMissing, Unsupported
from device_runner.runtimes.cross import TRIPLES, linker


def host_triple(identity: Identity) -> str | None:
    """LLVM triple of the device's host code, None for that of this machine.

    Raises `Unsupported` for a processor that no artifact can be made for.
    """
    if identity.kind != "phone" or identity.abi in ("", platform.machine()):
        return None
    if identity.abi not in TRIPLES:
        raise Unsupported(
            f"no artifact can be made for the ABI {identity.abi} of {identity.serial}",
            hint=f"devices with {' or '.join(TRIPLES)} can be used",
        )
    return TRIPLES[identity.abi]


def linker_version(triple: str | None) -> str:
    """What stands in an artifact's key; empty for this machine's own compiler, or if there is no linker."""
    try:
        return linker(triple).version if triple else ""
    except SetupMissing:  # building says so
        return ""


def exporter(triple: str) -> Callable[..., None]:
    """What `Executable.export_library` takes as `fcompile`. Raises `SetupMissing`."""
    chosen = linker(triple)

    def link(out: str, objects: Sequence[str], options: object = None, **_: object) -> None:
        chosen.link(objects, Path(out), triple)

    link.output_format = "so"  # type: ignore[attr-defined]  # how TVM asks what is made
    link.get_target_triple = lambda: triple  # type: ignore[attr-defined]
    return link
