"""Names and devices: what there is to run on, and how a name becomes a device that is ours for a while."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.device import Device, DeviceEntry, Identity
from device_runner.failures import Failure
from device_runner.lease import Holder, holder_of, holders, lease, queue_length
from device_runner.lease import tell as lease_note
from device_runner.names import load, suggestion

if TYPE_CHECKING:
    from device_runner.adb_device import AdbDevice
    from device_runner.transport.adb_transport import AdbTransport, Progress

VIRTUAL, LOCAL = "virtual", "local"

_OPEN_VIRTUAL = "device_runner.stand_ins.virtual.device:open_virtual"
_OPEN_LOCAL = "device_runner.stand_ins.local:open_local"
CARDS_SCRIPT = "device_runner.stand_ins.host_gpu:CARDS_SCRIPT"
"""A shell script that prints what a Linux host says of its graphics cards."""
PACE_BETWEEN = "device_runner.stand_ins.host_gpu:pace_between"
"""Returns how a GPU of a host held its pace between two looks at it, or why that is not known."""
WHY_NO_SANDBOX = "device_runner.stand_ins.virtual.sandbox:why_not"
"""Returns why the virtual phone runs in a plain folder on this host; empty if it has a sandbox."""
WHY_NO_USERLAND = "device_runner.stand_ins.virtual.userland:why_not"
"""Returns why the virtual phone has this host's shell and tools, not a phone's; empty if it has mksh and toybox.

These are places, `MODULE:NAME`: nothing that `run` imports leads to what stands in for a phone."""

MOST_VIRTUAL = 64
"""`virtual-1` to `virtual-64` are further phones beside `virtual`, for trying a fleet."""

WAIT_FOR_DEVICE_S = 3600.0
"""How long a run waits for another one to free the device."""


Step = Callable[[str], None]
"""Shows what is being done, until the next step; an empty one ends it."""
Opener = Callable[[str, Path, "Progress | None", Step], AbstractContextManager[Device]]
"""Opens a device by its name, with a cache."""


class UnknownDevice(Failure):
    """There is no device of this name."""

    outcome = "usage"


def list_devices(cache: Path) -> list[DeviceEntry]:
    """Return the virtual device, this host, and every phone that the user's adb server knows, in whatever state.

    Starts an adb server only if a phone is attached to this host by USB. Raises `RigFailure` if the server does not
    answer.
    """
    from device_runner.transport.adb_server import known_devices

    built_in = [
        DeviceEntry(VIRTUAL, "virtual", "ready", {"what": "an Android-shaped sandbox on this host's OpenCL"}),
        DeviceEntry(LOCAL, "local", "ready", {"what": "this host's OpenCL, without adb"}),
    ]
    states = {"device": "ready", "no": "no permissions"}  # of which adb's list keeps the first word
    phones = [DeviceEntry(it.serial, "phone", states.get(it.state, it.state), it.tags) for it in known_devices()]
    return [*(_unless_busy(entry, cache) for entry in (*built_in, *phones)), *_numbered_in_use(cache)]


@contextmanager
def open_device(
    name: str,
    cache: Path,
    *,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    step: Step = lambda _: None,
    timeout_s: float = WAIT_FOR_DEVICE_S,
    runtime: bool = True,
) -> Iterator[Device]:
    """Hold a device and, if it is the virtual one, start it. Everything is undone when the context ends.

    `say` is told whom we wait for and our place in the queue, `progress` how far a push has come, and `step` at which
    of its steps the opening is, of which `identify` is the last. Without `runtime` nothing is brought to a phone: it
    can be looked at and put back, and has no sessions. Raises `UnknownDevice`, `DeviceBusy` if it is not free within
    `timeout_s`, `SetupMissing`, or `DeviceLost` if it cannot be reached.
    """
    opened = _opener(name, runtime)
    with lease(name, leases(cache), timeout_s=timeout_s, waiting=say), opened(name, cache, progress, step) as device:
        yield device


def identify(device: Device, step: Step) -> Identity:
    """Ask an opened device who it is, which takes a session of its own. Raises SetupMissing without OpenCL."""
    step("step 3 of 3: identifying it")
    identity = device.identity
    step("")
    return identity


def _opener(name: str, runtime: bool) -> Opener:
    if is_built_in(name):
        opener: Opener = load(_OPEN_LOCAL if name == LOCAL else _OPEN_VIRTUAL)
        return opener
    _require_known(name)
    return partial(_phone, runtime=runtime)


def is_built_in(name: str) -> bool:
    """Return whether this is a device that every host has: `virtual`, `local`, or a numbered virtual one."""
    numbered = re.fullmatch(rf"{VIRTUAL}-([1-9]\d?)", name)
    return name in (VIRTUAL, LOCAL) or bool(numbered and int(numbered[1]) <= MOST_VIRTUAL)


def tell(name: str, cache: Path, case: str, step: str) -> None:
    """Let `adreno-bench devices` show what we are doing on this device, which we hold."""
    lease_note(name, leases(cache), case, step)


def in_use(cache: Path) -> Mapping[str, Holder]:
    """Return the devices that processes of this host hold at this moment, and who holds them."""
    return holders(leases(cache))


@contextmanager
def _phone(serial: str, cache: Path, progress: Progress | None, step: Step, *, runtime: bool) -> Iterator[Device]:
    from device_runner.adb_device import PHONE_ROOT, AdbDevice
    from device_runner.transport.adb_server import default_port
    from device_runner.transport.adb_transport import AdbTransport

    transport = AdbTransport(serial, default_port(), PHONE_ROOT, progress)
    device = _with_runtime(serial, transport, cache, step) if runtime else AdbDevice(serial, transport, ["false"])
    with closing(device):
        yield device


def _with_runtime(serial: str, transport: AdbTransport, cache: Path, step: Step) -> AdbDevice:
    """Bring a phone the runtime for it."""
    from device_runner.adb_device import AdbDevice, abi_of
    from device_runner.runtimes import probe
    from device_runner.runtimes.phone import RuntimeStore, install
    from device_runner.transport.adb_server import usb_path

    step("step 1 of 3: looking for its runtime")
    abi = abi_of(transport)
    runtime = RuntimeStore(cache).runtime_for(abi)
    step("step 2 of 3: bringing the runtime to it")
    program = install(transport, runtime.folder, runtime.preload)
    make_probe = partial(probe.library, cache, abi)
    usb = usb_path(serial)  # while it is there: a phone that is lost can no longer be found
    return AdbDevice(serial, transport, program, make_probe, runtime=runtime.digest, usb=usb)


def _require_known(name: str) -> None:
    from device_runner.transport.adb_server import known_devices

    names = [VIRTUAL, LOCAL, *(entry.serial for entry in known_devices())]
    if name not in names:
        raise unknown(name, names)


def unknown(name: str, names: Sequence[str]) -> UnknownDevice:
    """Return the error for a name that no device has, with the nearest names."""
    hint = suggestion(name, names, otherwise="there are:")
    if not hint.startswith("did you mean") and all(map(is_built_in, names)):
        hint = (
            "no phone is attached. Switch on USB debugging in its developer options, and allow it on its screen. If "
            "`adreno-bench devices` says `no permissions`, `sudo apt-get install android-sdk-platform-tools-common` "
            "installs the udev rules"
        )
    return UnknownDevice(f"there is no device {name!r}", hint=hint)


def _unless_busy(entry: DeviceEntry, cache: Path) -> DeviceEntry:
    owner = holder_of(entry.name, leases(cache))
    if not owner:
        return entry
    state = "busy" if entry.state == "ready" else entry.state  # a phone that was lost in use is `offline`
    waiting = queue_length(entry.name, leases(cache))
    used = {"used by": str(owner)} | ({"waiting": str(waiting)} if waiting else {})
    return DeviceEntry(entry.name, entry.kind, state, {**entry.detail, **used}, owner)


def _numbered_in_use(cache: Path) -> list[DeviceEntry]:
    """Return the numbered virtual phones that are in use; idle ones are not listed."""
    names = [path.stem for path in leases(cache).glob(f"{VIRTUAL}-*.json")]
    numbered = sorted((name for name in names if is_built_in(name)), key=lambda name: int(name.rpartition("-")[2]))
    entries = [_unless_busy(DeviceEntry(name, "virtual", "ready"), cache) for name in numbered]
    return [entry for entry in entries if entry.owner]


def leases(cache: Path) -> Path:
    """Return the folder of the locks of devices."""
    return cache / "leases"
