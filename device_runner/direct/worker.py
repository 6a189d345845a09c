"""The process of a session: loads TVM's runtime, and does what it is asked through a pipe, one thing after the other.

    python -c "from device_runner.direct.worker import main; main()" PARENT REPLIES LIBRARY...

Requests come on standard input, answers go to the file descriptor REPLIES, and what TVM and drivers print to the log.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from device_runner.direct.ffi import CPU, OPENCL, Device, Error, Ffi, Object
from device_runner.direct.wire import packed, unpacked
from device_runner.lifetime import die_with_parent

if TYPE_CHECKING:
    from device_runner.device import Array

DEVICES = {"cpu": CPU, "opencl": OPENCL}
POOLED = 2
"""TVM's number of the VM's usual allocator (vm.py)."""
EXIST, DEVICE_NAME, DRIVER_VERSION = 0, 5, 12
"""TVM's numbers of attributes (device_api.h, DeviceAttrKind)."""


def main() -> None:
    """Serve until standard input ends."""
    parent, replies, *libraries = sys.argv[1:]
    die_with_parent(signal.SIGKILL, int(parent))
    answers = os.fdopen(int(replies), "wb")
    try:
        worker: Worker | None = Worker([Path(library) for library in libraries])
        greeting: dict[str, Any] = {"ok": None}
    except (OSError, Error) as error:
        worker, greeting = None, {"error": str(error)}
    answers.write(packed(greeting))
    answers.flush()
    while worker:
        try:
            told, arrays, blob = unpacked(lambda size: _exactly(sys.stdin.buffer, size))
        except EOFError:
            break
        answers.write(worker.answer(told, arrays, blob))
        answers.flush()
    os._exit(0)  # a driver's own clean-up has been seen to hang


def _exactly(file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise EOFError
    return content


class Worker:
    """What has been loaded, and what can be asked of it: each method `do_` is one thing."""

    def __init__(self, libraries: list[Path]) -> None:
        self._ffi = Ffi(libraries)
        self._modules: list[Object] = []
        self._machines: list[Object] = []
        self._kinds: list[int] = []

    def answer(self, told: dict[str, Any], arrays: list[Array], blob: bytes) -> bytes:
        """The answer to a request, be it an error."""
        try:
            do = getattr(self, f"do_{told.pop('do')}")
            result = do(**told, **({"arrays": arrays} if arrays else {}), **({"blob": blob} if blob else {}))
        except Error as error:
            return packed({"error": str(error)})
        if isinstance(result, bytes):
            return packed({"bytes": True}, blob=result)
        if isinstance(result, tuple):
            return packed({"ok": result[1]}, result[0])
        return packed({"ok": result})

    def do_module(self, path: str) -> int:
        """Load a library; returns its number."""
        self._modules.append(self._ffi.function("ffi.ModuleLoadFromFile")(path))
        return len(self._modules) - 1

    def do_call(self, module: int, function: str, values: list[Any], blob: bytes = b"") -> Any:
        """What a module's function returns.

        A value `{"module": number}` stands for a module, and
        `{"machine": number}` for a virtual machine.
        """
        given = [self._meant(value) if isinstance(value, dict) else value for value in values]
        return _plain(self._modules[module][function](*given, *([blob] if blob else [])))

    def do_machine(self, module: int, device: str, vdevices: int) -> int:
        """A virtual machine of a library on a device; returns its number."""
        kind = DEVICES[device]
        machine = self._modules[module]["vm_load_executable"]()
        machine["vm_initialization"](*[kind, 0, POOLED] * vdevices, CPU, 0, POOLED)
        self._machines.append(machine)
        self._kinds.append(kind)
        self._sync(kind)
        return len(self._machines) - 1

    def do_run(
        self, machine: int, entry: str, entries: list[str], arrays: Sequence[Array] = ()
    ) -> tuple[list[Array], float]:
        """Give all entries their inputs and run one: its outputs and ms."""
        running, kind = self._machines[machine], self._kinds[machine]
        for name in entries:
            running["set_input"](name, *arrays)
        invoke = running["invoke_stateful"]
        began = time.perf_counter()
        invoke(entry)
        self._sync(kind)
        elapsed_ms = (time.perf_counter() - began) * 1e3
        return [tensor.numpy() for tensor in _outputs(running, entry)], elapsed_ms

    def do_samples(self, machine: int, entry: str, clock: str, repeat: int) -> list[float]:
        """Samples in ms by TVM's own evaluator: of the host's clock, or of the device's timer."""
        evaluator = self._ffi.function("runtime.RPCTimeEvaluator")
        took = evaluator(self._machines[machine], "invoke_stateful", DEVICES[clock], 0, 1, repeat, 0, 100, 0, 1, 0, "")
        return [1e3 * seconds for seconds in struct.unpack(f"={repeat}d", took(entry))]

    def do_names(self) -> list[str] | None:
        """Name and driver version of the OpenCL device; None without one."""
        attribute = self._ffi.function("runtime.GetDeviceAttr")
        if not attribute(OPENCL, 0, EXIST):
            return None
        return [str(attribute(OPENCL, 0, which) or "") for which in (DEVICE_NAME, DRIVER_VERSION)]

    def do_global(self, function: str) -> Any:
        """What a global function without arguments returns; None if there is none."""
        try:
            found = self._ffi.function(function)
        except Error:
            return None
        return _plain(found())

    def _meant(self, value: dict[str, int]) -> Object:
        return self._modules[value["module"]] if "module" in value else self._machines[value["machine"]]

    def _sync(self, kind: int) -> None:
        self._ffi.function("runtime.Device_StreamSync")(Device(kind), 0)


def _outputs(machine: Object, entry: str, *place: int) -> Iterator[Object]:
    """The tensors of an answer, whatever tuples they are in."""
    count = machine["get_output_arity"](entry, *place)
    if count == -1:
        yield machine["get_output"](entry, *place)
    for index in range(count):
        yield from _outputs(machine, entry, *place, index)


def _plain(value: Any) -> Any:
    """A value that can be sent; of an object only that it is one."""
    return True if isinstance(value, Object) else value
