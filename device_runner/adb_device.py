"""A device behind adb: a phone or the virtual one, which differ only in what is emulated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from device_runner.device import Identity, Pulse, Rung, Steadiness, T, ThermalLimits, Toggles
from device_runner.recovery.rungs import adb_rungs
from device_runner.rpc_device import RpcDevice, chip_and_board, one_line
from device_runner.session.diagnosis import explain_crash
from device_runner.session.rpc_session import RpcSession
from device_runner.stability.cores import Binding, bound_to_big_cores
from device_runner.stability.judge import pulses
from device_runner.stability.keeper import Keeper
from device_runner.transport import adb_server
from device_runner.transport.adb_transport import AdbTransport
from device_runner.transport.base import Transport

PROPERTIES_TIMEOUT_S = 10.0

ABI_PROPERTY = "ro.product.cpu.abi"

RESET_COUNT = "sys/class/kgsl/kgsl-3d0/reset_count"
GPU_MODEL = "sys/class/kgsl/kgsl-3d0/gpu_model"

PHONE_ROOT = "/data/local/tmp/adreno-bench"
"""Our folder on a phone: `/data/local/tmp` is where adb's shell may write and execute."""


class AdbDevice(RpcDevice):
    """A phone or the virtual device. `emulated` names what is not real, `runtime` what was brought to it.

    `restart_adb` restarts the adb server that the transport speaks to; by default that is the user's own. `usb` is the
    path of the USB device that it is on this host (`1-2.3`), if it is one.
    """

    def __init__(
        self,
        name: str,
        transport: AdbTransport,
        program: Sequence[str],
        probe: Callable[[], Path] | None = None,
        *,
        kind: str = "phone",
        emulated: Sequence[str] = (),
        runtime: str = "",
        restart_adb: Callable[[], None] | None = None,
        usb: str = "",
    ) -> None:
        super().__init__(name, transport, program, probe)
        self.adb = transport
        self._usb = usb
        self._restart_adb = restart_adb or partial(adb_server.revive, transport.serial)
        self._kind = kind
        self._emulated = tuple(emulated)
        self._runtime = runtime
        self._system = transport.root.removesuffix(PHONE_ROOT)
        self.keeper = Keeper(transport, system=self._system, wired=None if kind == "phone" else True)

    @property
    def rungs(self) -> Sequence[Rung]:
        """All that can be done for a device behind an adb server."""
        return adb_rungs(self.adb, self._restart_adb, self._usb)

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """Do `work` on a cool phone with its knobs set, which stay set until `close`; say whether it kept its pace."""
        result, steadiness = self.keeper.steadily(work, limits)
        return result, replace(steadiness, facts={**steadiness.facts, "cores": self.binding.message})

    @cached_property
    def binding(self) -> Binding:
        """Cores on which the server runs; determined once."""
        return bound_to_big_cores(self.transport, self._system)

    def _command(self) -> Sequence[str]:
        return *self.binding.prefix, *self.program

    @contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[RpcSession]:
        """Yield a fresh server process with these toggles, connected.

        What the phone knows of its crash is evidence of it.
        """
        node, before = f"{self._system}/{RESET_COUNT}", lambda: self.keeper.reset_count
        with explain_crash(self.transport, node, before), super().session(toggles, timeout_s=timeout_s) as session:
            yield session

    def pulses(self, limits: ThermalLimits) -> Callable[[], Pulse]:
        """Return what the phone says of its heat and pace, look by look."""
        return pulses(self.keeper.glance, limits.thermal_status)

    def close(self) -> None:
        """Restore what was set on the phone."""
        self.keeper.close()

    def _identity(self, opencl: Mapping[str, Any]) -> Identity:
        values = properties(self.transport)
        gpu = opencl["gpu"] if re.search(r"\d", opencl["gpu"]) else self._kernels_gpu() or opencl["gpu"]
        return phone_identity(
            self._kind,
            self.name,
            values,
            values.get(ABI_PROPERTY) or machine(self.transport),
            emulated=self._emulated,
            runtime=self._runtime,
            **chip_and_board(self.transport, self._system),
            **{**opencl, "gpu": gpu},
        )

    def _kernels_gpu(self) -> str:
        """Return what the kernel calls the GPU, where OpenCL names no model (a QCS8550); empty if it does not say."""
        answer = self.transport.shell(["cat", f"{self._system}/{GPU_MODEL}"], timeout_s=PROPERTIES_TIMEOUT_S)
        return "" if answer.code else one_line(answer.stdout)


def phone_identity(kind: str, name: str, values: Mapping[str, str], abi: str, **fields: Any) -> Identity:
    """Who a phone is, from its properties and what else was found out of it."""
    return Identity(
        kind=kind,
        serial=values.get("ro.serialno") or name,
        soc=values.get("ro.soc.model") or values.get("ro.board.platform", ""),
        rom=values.get("ro.build.fingerprint", ""),
        abi=abi,
        vendor=values.get("ro.vendor.build.fingerprint", ""),
        **fields,
    )


def properties(transport: Transport) -> dict[str, str]:
    """Android's system properties."""
    return properties_in(transport.shell(["getprop"], timeout_s=PROPERTIES_TIMEOUT_S).stdout)


def properties_in(printed: str) -> dict[str, str]:
    """Android's system properties in what `getprop` printed."""
    return dict(re.findall(r"^\[(.*?)\]: \[(.*?)\]\s*$", printed, re.MULTILINE))


def abi_of(transport: Transport) -> str:
    """`arm64-v8a` on a phone, `aarch64` on a Linux board, which has no properties."""
    return properties(transport).get(ABI_PROPERTY) or machine(transport)


def machine(transport: Transport) -> str:
    """Return the processor as the kernel calls it; empty if that cannot be asked."""
    answer = transport.shell(["uname", "-m"], timeout_s=PROPERTIES_TIMEOUT_S)
    return "" if answer.code else answer.stdout.strip()
