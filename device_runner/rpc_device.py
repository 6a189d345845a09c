"""What every device has in common whose sessions are processes of TVM's RPC server on a machine."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from device_runner.device import Identity, PushResult, Rung, Toggles
from device_runner.failures import DeviceCrash, DeviceFull, Failure, KernelBuildFailure, ProgramFailure
from device_runner.recovery.rungs import retry
from device_runner.runtimes.probe import DeviceProbe
from device_runner.session.identification import Description, describe
from device_runner.session.rpc_session import RpcSession, open_session
from device_runner.transport.base import NEARLY_BYTES, Transport, free_bytes, megabytes
from device_runner.transport.batch import run_batch
from device_runner.transport.quoting import quoted

IDENTITY_TIMEOUT_S = 60.0
SHELL_TIMEOUT_S = 10.0


class RpcDevice(ABC):
    """A machine that can be reached, and the command that starts TVM's RPC server on it."""

    def __init__(
        self, name: str, transport: Transport, program: Sequence[str], probe: Callable[[], Path] | None = None
    ) -> None:
        """Connect the parts of a device: its transport, the start of TVM's server, and the builder of its probe."""
        self.name = name
        self.transport = transport
        self.program = tuple(program)
        self.probe = DeviceProbe(probe)

    @cached_property
    def identity(self) -> Identity:
        """Identity of the device; asked once, in an RPC session. Raises `SetupMissing` without usable OpenCL."""
        return self._identity(self.opencl.fields)

    @cached_property
    def opencl(self) -> Description:
        """All that is known of its OpenCL device; asked once, in an RPC session. Raises as `identity` does."""
        return describe(self, IDENTITY_TIMEOUT_S)

    @property
    def rungs(self) -> Sequence[Rung]:
        """What may bring it back when it is lost."""
        return [retry(self.transport)]

    @contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[RpcSession]:
        """Yield a fresh server process with these toggles, connected.

        Raises DeviceFull instead of what a program says that found no room on the device.
        """
        try:
            with open_session(
                self.transport, self._command(), toggles, timeout_s=timeout_s, probe=self.probe
            ) as session:
                yield session
        except (DeviceCrash, KernelBuildFailure, ProgramFailure) as failure:
            free = free_bytes(self.transport, self.transport.root)
            if free is None or free >= NEARLY_BYTES:
                raise
            message = f"{self.name} has no room for a program to run: {megabytes(free)} in {self.transport.root}"
            hint = "free some space there; of a device of this host that is the disk of ADRENO_BENCH_CACHE"
            raise DeviceFull(message, hint=hint, evidence=f"{failure.message}\n{failure.evidence}") from failure

    def _command(self) -> Sequence[str]:
        """Return what starts TVM's RPC server here."""
        return self.program

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        """Bring a file to the device under its hash."""
        return self.transport.push(file, sha256, timeout_s=timeout_s)

    def prune(self, older_than_s: float) -> int:
        """Remove files that were pushed longer ago than that; returns how many. A run pushes again what it needs."""
        minutes = f"+{int(older_than_s // 60)}" if older_than_s else "-9999999"
        search = ["find", f"{self.transport.root}/files", "-type", "f", "-mmin", minutes, "-print", "-delete"]
        return len(self.transport.shell(search, timeout_s=SHELL_TIMEOUT_S).stdout.splitlines())

    @contextmanager
    def scratch(self, name: str) -> Iterator[str]:
        """Yield an unused path in an existing folder of the device.

        Whatever is there when the context ends is removed.
        """
        folder = f"{self.transport.root}/scratch"
        path = f"{folder}/{uuid.uuid4().hex[:12]}-{name}"
        answer = self.transport.shell(["mkdir", "-p", folder], timeout_s=SHELL_TIMEOUT_S)
        if answer.code:
            raise DeviceFull(f"{self.name} refuses the folder {folder}: {answer.stderr.strip()}")
        try:
            yield path
        finally:
            with suppress(Failure):  # a device that is gone takes its files along
                self.transport.shell(["rm", "-f", path], timeout_s=SHELL_TIMEOUT_S)

    @abstractmethod
    def _identity(self, opencl: Mapping[str, Any]) -> Identity:
        """Return the identity: the fields of the OpenCL device and the machine's own."""


CHIP = ("machine", "family", "soc_id", "revision")
LONGEST_NAME = 120
"""Characters that are kept of either name."""


def chip_and_board(transport: Transport, system: str = "") -> dict[str, Any]:
    """Return what the kernel calls its chip and its board, the fields of `Identity`; each empty if it does not say.

    Phones and Linux boards have the same files below `/sys`, which begins at `system`. Sources: Linux
    drivers/base/soc.c and drivers/soc/qcom/socinfo.c for `soc0`; the property `model` of a device tree's root.
    `soc0/serial_number` is left alone: it names one owner's phone. Raises `DeviceFailure` or `RigFailure` if the
    machine does not answer.
    """
    texts = {
        "chip": f"{quoted('cd', f'{system}/sys/devices/soc0')} && {quoted('cat', *CHIP)}",
        "board": quoted("cat", f"{system}/sys/firmware/devicetree/base/model"),
    }
    answers = run_batch(transport, {name: f"{{ {text}; }} 2>/dev/null" for name, text in texts.items()})
    return {name: one_line(answer.text) for name, answer in answers.items()}


def one_line(text: str) -> str:
    """One line of printable words; texts of a device tree end with NUL."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:LONGEST_NAME]
