"""Having a virtual phone: start all of it, hand it out, end all of it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import device_runner
from device_runner import installed_tvm
from device_runner.failures import RigFailure
from device_runner.installed_tvm import EXTRA_LIBRARIES
from device_runner.runtimes.phone import PhoneRuntime, started_in
from device_runner.stand_ins.virtual import faults, opencl, phone, private_adb, processes, sandbox, userland
from device_runner.stand_ins.virtual.faults import Faults
from device_runner.stand_ins.virtual.heat import heating
from device_runner.stand_ins.virtual.phone import FAULTS_JSON, GPU_ZONE, INJECTED_JSONL, PROGRAMS, PhoneState
from device_runner.stand_ins.virtual.processes import Children
from device_runner.stand_ins.virtual.tvm_rpc.server import FAULTS
from device_runner.transport.quoting import quoted

START_DEADLINE_S = 60.0
"""Deadline for the daemon to listen, also on a busy host."""
ANSWER_DEADLINE_S = 15.0
"""Deadline for it to answer over adb."""
REMOTE_ROOT = "data/local/tmp/adreno-bench"
EMULATED = ("soc", "gpu", "clocks", "thermal", "battery")
"""What is not real on this phone."""
HOST_SHELL = "shell"
"""What is not real either where mksh and toybox are not installed."""
SIMULATED = "inference time"
"""What is not real either while inferences wait instead of computing, or follow a clock that heat slows down."""

MEMORY_VARIABLE, MEMORY_GIB = "POCL_MEMORY_LIMIT", "8"
"""Most memory of its OpenCL device. With it, PoCL's images end at 8192 x 8192 on every host."""

_OURS = Path(device_runner.__file__).parent
_INSTALLED = ("numpy", "tvm", "tvm_ffi")
"""The packages installed here that run on the phone."""


@dataclass(frozen=True)
class VirtualPhone:
    """A running virtual phone."""

    serial: str
    """`127.0.0.1:PORT`, as adb knows it."""
    adb_server: int | Path
    """Where the private adb server listens that is connected to it: a Unix socket, or a port of 127.0.0.1."""
    root: str
    """Folder on the phone for our files: `/data/local/tmp/adreno-bench`, or its real path without a sandbox."""
    home: Path
    """Folder on the host that is the phone. It persists, so what was pushed stays."""
    sandboxed: bool
    restart_adb: Callable[[], None]
    """Ends the private adb server, if it still lives, and starts it again where it was; it knows no phone then."""
    kill_adb: Callable[[], None]
    """Kills the private adb server."""
    original: PhoneRuntime | None = None
    """TVM's own software that it runs, if it is not our stand-ins."""

    @property
    def emulated(self) -> tuple[str, ...]:
        """What is not real, with the faults that are injected now."""
        shell = [] if userland.is_stock(self.home / PROGRAMS) else [HOST_SHELL]
        injected = faults.read(self.home / FAULTS_JSON)
        heat = injected.heat
        simulated = [SIMULATED] if injected.simulate_inference_s is not None or heat else []
        hastened = [f"heat at {heat.speed:g} times its pace"] if heat and heat.speed != 1 else []
        return (*EMULATED, *shell, *simulated, *hastened)

    def state(self) -> PhoneState:
        """Return the phone's state now."""
        return phone.load(self.home)

    def update(self, **changes: Any) -> PhoneState:
        """Change the state, mapping by mapping: `update(gpu={"thermal_level": 2}, thermal_status=3)`."""
        return phone.edit(self.home, lambda state: state.changed(changes))

    def injected(self) -> list[dict[str, Any]]:
        """Return the mishaps that really happened since the phone was started, in order, with `time_s` (Unix)."""
        return [json.loads(line) for line in (self.home / INJECTED_JSONL).read_text().splitlines()]

    def fault(self, **changes: Any) -> Faults:
        """Inject faults (`fault(frozen=True)`), or end them by setting their default. Others stay as they are.

        Raises NeedsStandIn for what does not befall TVM's own software.
        """
        path = self.home / FAULTS_JSON
        injected = replace(faults.read(path), **changes)
        if self.original:
            faults.require_stand_ins_for(injected)
        faults.write(path, injected)
        return injected


@contextlib.contextmanager
def virtual_phone(
    home: Path,
    *,
    opencl_runtime: Path | None = None,
    opencl_layer: Path | None = None,
    clml_runtime: Path | None = None,
    original: PhoneRuntime | None = None,
    env: Mapping[str, str] | None = None,
    injected: Faults | None = None,
    sandboxed: bool | None = None,
    adb_by_tcp: bool = False,
) -> Iterator[VirtualPhone]:
    """Yield a virtual phone with its folder at `home`, connected to an adb server of its own.

    `opencl_runtime` is the library with TVM's OpenCL device API, `opencl_layer` what limits the driver to an Adreno's
    abilities, `clml_runtime` the model of its CLML runtime,
    `original` a build of TVM's own server and OpenCL runtime for this host, which takes the place of ours, `env` goes
    into every process on the phone, `injected` are the faults to begin with,
    `sandboxed` forces or forbids the sandbox (None: where it can be had). With `adb_by_tcp` every user of
    this host can reach its adb server, and programs that know only ports. All processes end with the context, or with
    this process if it is killed. Raises SetupMissing or RigFailure.
    """
    injected = injected or Faults()
    if original:
        faults.require_stand_ins_for(injected)
    home = home.resolve()
    state = phone.prepare(home)
    (home / PROGRAMS / "tvm_rpc").write_text(_original(original, clml_runtime) if original else _stand_in())
    (home / PROGRAMS / "tvm_rpc").chmod(0o755)
    faults.write(home / FAULTS_JSON, injected)
    if sandboxed is None:
        sandboxed = not sandbox.why_not()
    root = Path("/") if sandboxed else home
    (home / REMOTE_ROOT).mkdir(parents=True, exist_ok=True)
    runtimes = [library.resolve() for library in (opencl_runtime, clml_runtime) if library]
    layers = [opencl_layer.resolve()] if opencl_layer else []
    readable = [library.parent for library in (*runtimes, *layers)] + ([original.folder.resolve()] if original else [])
    stock = userland.is_stock(home / PROGRAMS)
    environment = {**_environment(root, stock, runtimes, injected.driver_keeps_programs), **(env or {})}
    if layers:
        environment[opencl.VARIABLE] = ":".join(map(str, layers))
    with contextlib.ExitStack() as stack:
        if not sandboxed:
            stack.callback(processes.end_all_of, environment[processes.PHONE_ID])
        log = stack.enter_context((home / "phone.log").open("wb"))
        children = stack.enter_context(Children())
        adb = private_adb.PrivateServer(children, home / "adb", log, tcp=adb_by_tcp)
        argv = _python("device_runner.stand_ins.virtual.__main__:main", "--root", str(root))
        if sandboxed:
            argv = sandbox.command(home, [*_ours(), *readable], argv, rooted=state.rooted)
        daemon = children.start(argv, env=environment, stdout=subprocess.PIPE, stderr=log)
        serial = f"127.0.0.1:{_port(daemon, home / 'phone.log')}"
        assert daemon.stdout is not None
        Events(daemon.stdout, home)
        stack.enter_context(heating(home))
        private_adb.connect(adb.address, serial, ANSWER_DEADLINE_S)
        yield VirtualPhone(
            serial, adb.address, str(root / REMOTE_ROOT), home, sandboxed, adb.restart, adb.kill, original
        )


def _port(daemon: subprocess.Popen[bytes], log: Path) -> int:
    assert daemon.stdout is not None
    ready, _, _ = select.select([daemon.stdout], [], [], START_DEADLINE_S)
    line = daemon.stdout.readline() if ready else b""
    if not line:
        raise RigFailure(
            "the virtual phone did not start",
            hint=f"its log is {log}",
            evidence=log.read_text(errors="replace"),
        )
    port: int = json.loads(line)["port"]
    return port


def _environment(root: Path, stock: bool, runtimes: Sequence[Path], driver_keeps_programs: bool) -> dict[str, str]:
    home, programs = str(root / "data/local/tmp"), str(root / PROGRAMS)
    return {
        "PATH": programs if stock else f"{programs}:{userland.HOST_PATH}",
        "HOME": home,
        "TMPDIR": home,
        "USER": "shell",
        "SHELL": f"{programs}/sh",
        "LANG": "C.UTF-8",
        "ANDROID_ROOT": str(root / "system"),
        "ANDROID_DATA": str(root / "data"),
        # A phone's OpenCL driver keeps no compiled kernels between processes (the reason for apache/tvm #13868), so
        # PoCL must not either: a first run would be cold once and warm ever after.
        "POCL_KERNEL_CACHE": str(int(driver_keeps_programs)),
        # PoCL derives the limits of images from the host's memory, and a virtual machine's memory comes and goes: an
        # artifact for one limit would not be found again under the other.
        MEMORY_VARIABLE: os.environ.get(MEMORY_VARIABLE, MEMORY_GIB),
        # The clang inside PoCL looks here for the linker, which is not in a phone's PATH.
        "COMPILER_PATH": userland.HOST_PATH,
        processes.PHONE_ID: secrets.token_hex(8),
        EXTRA_LIBRARIES: ":".join(map(str, runtimes)),
        **{name: os.environ[name] for name in (installed_tvm.LIBRARY_PATH,) if os.environ.get(name)},
    }


def _ours() -> list[Path]:
    """Host folders that the phone's programs are made of: Python, its packages, ours."""
    interpreter = Path(sys.executable).resolve().parent.parent
    libraries = (folder for package in ("tvm", "tvm_ffi") for folder in installed_tvm.library_folders(package))
    return [Path(sys.prefix), Path(sys.base_prefix), interpreter, *_package_folders(), *libraries, _OURS]


def _package_folders() -> set[Path]:
    specs = (importlib.util.find_spec(name) for name in _INSTALLED)
    return {Path(folder).parent for spec in specs if spec for folder in spec.submodule_search_locations or ()}


def _python(call: str, *arguments: str) -> list[str]:
    """Command line that calls `module:function` of ours in this Python, without its environment and current folder."""
    module, _, function = call.partition(":")
    folders = [str(folder) for folder in (*sorted(_package_folders()), _OURS.parent)]
    code = f"import sys; sys.path += {folders!r}; from {module} import {function}; sys.exit({function}())"
    python = os.path.normpath(sys.executable)  # a `..` in it leads through a folder that the sandbox may not have
    return [python, "-I", "-B", "-c", code, *arguments]


def _original(runtime: PhoneRuntime, clml_runtime: Path | None) -> str:
    """TVM's own server. There is no OpenCL ML for this host's processor, so the model of it comes along."""
    preload = (*runtime.preload, *([str(clml_runtime.resolve())] if clml_runtime else []))
    return f'#!/bin/sh\nexec {quoted(*started_in(str(runtime.folder.resolve()), preload))} "$@"\n'


def _stand_in() -> str:
    return f"""#!/bin/sh
export {FAULTS}="${{0%/*}}/../etc/faults.json"
exec {quoted(*_python("device_runner.stand_ins.virtual.tvm_rpc.server:main"))} "$@"
"""


MAX_LINE_BYTES = 4096
MAX_LOG_BYTES = 16 << 20
HOT_MC = {GPU_ZONE: 95_000, "skin-therm": 52_000}
SEVERE = 3
THROTTLED_LEVEL = 2


class Events:
    """Carries out what the daemon tells, in a thread that ends with its output.

    That is what it cannot change itself, and what it injected: one line of JSON each, on its standard output. The
    phone's programs could write there too, so nothing but these few things can be asked for.
    """

    def __init__(self, pipe: IO[bytes], home: Path) -> None:
        self._pipe = pipe
        self._home = home
        self._before: PhoneState | None = None
        self._handlers: Mapping[str, Callable[[], object]] = {
            "reset_gpu": lambda: phone.edit(home, _reset),
            "overheat": lambda: phone.edit(home, self._heated),
            "cool": lambda: phone.edit(home, self._cooled),
            "reboot": lambda: phone.reboot(home),
        }
        threading.Thread(target=self._listen, name="virtual-phone-events", daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(ValueError):  # the output is closed when the daemon is ended
            while line := self._pipe.readline(MAX_LINE_BYTES):
                with contextlib.suppress(ValueError, TypeError, AttributeError):  # not the daemon's
                    self._carry_out(json.loads(line))

    def _carry_out(self, message: dict[str, Any]) -> None:
        event = message.pop("event", None)
        if event == "injected":
            with (self._home / INJECTED_JSONL).open("a") as log:
                if log.tell() < MAX_LOG_BYTES:
                    log.write(json.dumps({"time_s": round(time.time(), 3), **message}) + "\n")
        elif event in self._handlers:
            self._handlers[event]()

    def _heated(self, state: PhoneState) -> PhoneState:
        self._before = self._before or state
        level = min(THROTTLED_LEVEL, len(state.gpu.levels_mhz) - 1)
        return replace(
            state,
            gpu=replace(state.gpu, thermal_level=level),
            temperatures_mc={**state.temperatures_mc, **HOT_MC},
            thermal_status=SEVERE,
        )

    def _cooled(self, state: PhoneState) -> PhoneState:
        before, self._before = self._before or state, None
        return state.changed(
            {
                "gpu": {"thermal_level": before.gpu.thermal_level},
                "temperatures_mc": asdict(before)["temperatures_mc"],
                "thermal_status": before.thermal_status,
            }
        )


def _reset(state: PhoneState) -> PhoneState:
    return replace(state, gpu=replace(state.gpu, resets=state.gpu.resets + 1))
