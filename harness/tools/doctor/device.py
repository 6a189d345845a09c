"""What a phone lets us do and what it lacks, found by doing it; the virtual device is examined in the same way.

What needs no runtime of ours comes first, so that a phone without one is still examined; then a session on it.
"""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.deadline import Deadline
from harness.base.tables import grouped
from harness.tools.doctor.opencl import examine_opencl
from harness.tools.shared.finding import Condition, DoctorFinding, guarded

if TYPE_CHECKING:
    from device_runner.adb_device import AdbDevice

SHELL_TIMEOUT_S = 10.0
SESSION_TIMEOUT_S = 60.0
ROOM_NEEDED_BYTES = 500_000_000
LOW_BATTERY_PERCENT = 20
FIRST_API_WITH_MODES = 30
"""Android 11 has fixed-performance mode and a command for airplane mode."""

CHECKS_S = 30.0
"""Time limit of all checks of a phone; a healthy one takes 3 s."""
SPACE_SCRIPT = 'mkdir -p "$1" && df -k "$1"'
EXECUTE_SCRIPT = """
for tool in /system/bin/toybox /usr/bin/true /bin/true; do [ -x "$tool" ] && break; done
mkdir -p "$1/doctor" && cp "$tool" "$1/doctor/true" && "$1/doctor/true"
code=$?
rm -rf "$1/doctor"
exit $code
"""
_FIXES = {
    "unauthorized": "unlock its screen and allow USB debugging for this computer",
    "offline": "plug it in again, or `adb reconnect offline`",
    "no permissions": "install the udev rules for Android (`sudo apt-get install android-sdk-platform-tools-common`)",
    "recovery": "start Android on it",
    "busy": "wait for the run that uses it, or end that",
}


def examine_device(name: str, cache: Path) -> Iterator[DoctorFinding]:
    """Yield all findings on one device, as they are made. Raises `UnknownDevice` if there is none of this name."""
    from device_runner.adb_device import AdbDevice
    from device_runner.registry import list_devices, open_device

    entry = next((entry for entry in list_devices(cache) if entry.name == name), None)
    if entry:
        fix = "" if entry.state == "ready" else _FIXES.get(entry.state, "see `adb devices`")
        yield DoctorFinding.of("state", entry.state, fix, Condition.MISSING)
        if fix:
            return
    with open_device(name, cache, timeout_s=0, runtime=False) as device:
        if isinstance(device, AdbDevice):
            in_time = yield from examine_phone(device)
            if not in_time:
                return
            if entry is None or entry.kind == "phone":
                yield from guarded("linker", examine_linker(device))
    yield from guarded("runtime", _session(name, cache))


def examine_phone(device: AdbDevice) -> Generator[DoctorFinding, None, bool]:
    """Yield what a phone's checks find, in order; whether it answered them within `CHECKS_S`."""
    deadline = Deadline(CHECKS_S)
    for place, (what, check) in enumerate(PHONE_CHECKS.items()):
        if not deadline.remaining_s:
            text = f"it answered {place} of {len(PHONE_CHECKS)} checks within {CHECKS_S:.0f} s"
            yield DoctorFinding("slow", Condition.MISSING, text, "restart it, or try another cable or hub")
            return False
        yield from guarded(what, check(device))
    return True


def _android(device: AdbDevice) -> Iterator[DoctorFinding]:
    from device_runner.adb_device import properties

    values = properties(device.transport)
    sdk = values.get("ro.build.version.sdk", "")
    release, model = values.get("ro.build.version.release", "?"), values.get("ro.product.model", "?")
    soc = values.get("ro.soc.model") or values.get("ro.board.platform", "?")
    text = (
        f"{release} (API {sdk or '?'}) on {model}, SoC {soc}, ABI {values.get('ro.product.cpu.abi', '?')}, by getprop"
    )
    old = sdk.isdigit() and int(sdk) < FIRST_API_WITH_MODES
    fix = "none: fixed-performance mode and airplane mode by command came with API 30" if old else ""
    yield DoctorFinding.of("android", text, fix)


def _space(device: AdbDevice) -> Iterator[DoctorFinding]:
    root = device.transport.root
    answer = device.transport.shell(["sh", "-c", SPACE_SCRIPT, "space", root], timeout_s=SHELL_TIMEOUT_S)
    match = re.search(r"(\d+)\s+-?\d+%", answer.stdout)
    if answer.code or not match:
        complaint = (answer.stderr or answer.stdout).strip() or "df printed nothing"
        yield DoctorFinding(
            "space", Condition.MISSING, f"{root} cannot be made or seen: {complaint}", "is its storage read-only?"
        )
        return
    free_bytes = int(match[1]) * 1024
    fix = f"`adb shell rm -r {root}` removes what was pushed before" if free_bytes < ROOM_NEEDED_BYTES else ""
    yield DoctorFinding.of("space", f"{free_bytes / 1e9:.1f} GB free in {root}", fix, Condition.MISSING)


def _executes(device: AdbDevice) -> Iterator[DoctorFinding]:
    root = device.transport.root
    answer = device.transport.shell(["sh", "-c", EXECUTE_SCRIPT, "execute", root], timeout_s=SHELL_TIMEOUT_S)
    if answer.code:
        complaint = (answer.stderr or answer.stdout).strip() or f"exit code {answer.code}"
        fix = "its ROM forbids it: measurements need a ROM whose shell may execute there"
        yield DoctorFinding("executable", Condition.MISSING, f"a program in {root} does not run: {complaint}", fix)
    else:
        yield DoctorFinding("executable", Condition.OK, f"a program copied to {root} runs")


def examine_linker(device: AdbDevice) -> Iterator[DoctorFinding]:
    """Yield whether artifacts can be made for its processor.

    Raises `SetupMissing`, whose hint is the command that helps.
    """
    from device_runner.adb_device import abi_of
    from device_runner.runtimes.cross_linker import TRIPLES, linker

    abi = abi_of(device.transport)
    if abi == platform.machine():
        yield DoctorFinding("linker", Condition.OK, f"this host's own, for {abi}")
    elif abi in TRIPLES:
        yield DoctorFinding("linker", Condition.OK, f"{linker(TRIPLES[abi]).version}, for {abi}")
    else:
        fix = f"none: devices with {' or '.join(TRIPLES)} can be used"
        yield DoctorFinding("linker", Condition.MISSING, f"no artifact can be made for the ABI {abi}", fix)


def _root(device: AdbDevice) -> Iterator[DoctorFinding]:
    shell = device.keeper.phone.root_shell
    text = f"by `{' '.join(shell)}`" if shell else "no, which is normal: the GPU's clock cannot be held by its driver"
    yield DoctorFinding("root", Condition.OK if shell else Condition.NOTE, text)


def _gpu_nodes(device: AdbDevice) -> Iterator[DoctorFinding]:
    from device_runner.stability.sources import GPU_NODES

    texts = device.keeper.sources.read()
    readable = [name for name in GPU_NODES if texts.get(name)]
    hidden = [name for name in GPU_NODES if name not in readable]
    text = f"readable: {', '.join(readable) or 'none'}" + (f"; denied or absent: {', '.join(hidden)}" if hidden else "")
    blind = not {"thermal_pwrlevel", "max_clock_mhz"} & set(readable)
    fix = "none without root: throttling will show only in Android's thermal status" if blind else ""
    yield DoctorFinding.of("GPU nodes", text, fix)


def _temperatures(device: AdbDevice) -> Iterator[DoctorFinding]:
    reading, notes = device.keeper.look()
    sensors = [
        f"{name} {value:g}{unit}"
        for name, value, unit in (
            ("GPU", reading.gpu_c, " °C"),
            ("battery", reading.battery_c, " °C"),
            ("thermal status", reading.thermal_status, ""),
        )
        if value is not None
    ]
    blind = reading.gpu_c is None and reading.thermal_status is None
    fix = "none: no sensor can be read, so let it rest between runs" if blind else ""
    yield DoctorFinding.of("temperature", ", ".join(sensors) or "no sensor found", fix)
    for note in notes:
        what, _, command = note.partition(": ")
        yield DoctorFinding("temperature", Condition.NOTE, what, f"adb shell {command.strip('`')}")
    if reading.battery_percent is not None:
        low = reading.battery_percent < LOW_BATTERY_PERCENT
        charge = {True: ", charging", False: "", None: ""}[reading.charging]
        fix = "charge it: many phones slow down on a low battery" if low else ""
        yield DoctorFinding.of("battery", f"{reading.battery_percent} %{charge}", fix)


def _knobs(device: AdbDevice) -> Iterator[DoctorFinding]:
    """Set everything that a run would, and put it back."""
    from device_runner.stability.knobs import complains

    left = device.keeper.put_back()
    if left:
        yield DoctorFinding("left over", Condition.OK, f"a killed run had changed {', '.join(left)}: put back")
    report = device.keeper.hold()
    refused = {name: came for name, came in report.items() if complains(came)}
    if done := [name for name in report if name not in refused]:
        yield DoctorFinding("controllable", Condition.OK, ", ".join(done))
    for reason, names in grouped(refused, refused.__getitem__).items():
        fix = "none: records say what could not be set"
        if "permission" in reason.lower():
            fix = "some makers hide this behind a developer option such as `USB debugging (Security settings)`"
        yield DoctorFinding("not controllable", Condition.NOTE, f"{', '.join(names)}: {reason}", fix)
    still = {
        name: came for name, came in device.keeper.put_back().items() if came.startswith(("refused", "reads back"))
    }
    if still:
        text = "; ".join(f"{name}: {came}" for name, came in still.items())
        yield DoctorFinding("put back", Condition.MISSING, text, "`adreno-bench devices --restore`, or set it by hand")


PHONE_CHECKS: Mapping[str, Callable[[AdbDevice], Iterator[DoctorFinding]]] = {
    "android": _android,
    "space": _space,
    "executable": _executes,
    "root": _root,
    "GPU nodes": _gpu_nodes,
    "temperature": _temperatures,
    "controllable": _knobs,
}
"""Checks of a phone; each builds on those before it."""


def _session(name: str, cache: Path) -> Iterator[DoctorFinding]:
    """Push the runtime, start a server, and ask it."""
    from device_runner.registry import open_device
    from device_runner.rpc_device import RpcDevice
    from device_runner.runtimes.clml import INFO as CLML_INFO

    with open_device(name, cache, timeout_s=0) as device:
        assert isinstance(device, RpcDevice)
        began = time.monotonic()
        with device.session({}, timeout_s=SESSION_TIMEOUT_S) as session:
            text = f"loads and answers; a session starts in {time.monotonic() - began:.1f} s"
            yield DoctorFinding("runtime", Condition.OK, text)
            emulated = session.call(CLML_INFO, timeout_s=SESSION_TIMEOUT_S)
        yield from guarded("OpenCL", examine_opencl(device, bool(emulated and json.loads(emulated).get("emulated"))))
