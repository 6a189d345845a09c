"""A library with several functions, and state that stays in the server's process between their calls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from device_runner.deadline import Deadline
from device_runner.failures import DeviceFull
from device_runner.session.rpc_session import RpcProgram, RpcSession, copy_tensors
from device_runner.store import sha256_of

if TYPE_CHECKING:
    from pathlib import Path

    from device_runner.device import Array, Launch, Loadable

RPC_MASK = 128
"""What TVM's RPC adds to the type of a device of another process."""

MOST_BATCHES = 64
"""Most batches that the probe times in a call."""
LINK_SCRIPT = 'mkdir -p "$0" && cd "$0" && while [ "$1" ]; do ln -sf "$1" "$2" || exit 1; shift 2; done'
"""Arguments: the folder, then path and name of each file."""


class Machine(RpcProgram):
    """A library with functions that share a state on the device."""

    weights_bytes = 0
    """Size of the weights that were brought."""

    def runtime(self, function: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a global function of the runtime, such as one that changes a state."""
        with self._session.calling(function, timeout_s):
            return self._session.remote.get_function(function)(*arguments)

    def parameters(self, files: Mapping[str, Path], names: Sequence[str], *, timeout_s: float) -> Any:
        """Push a folder of TVM's tensor cache by hash, and return its tensors of these names on the device."""
        deadline = Deadline(timeout_s)
        folder = bring_folder(self._session, files, deadline)
        self.weights_bytes = sum(file.stat().st_size for file in files.values())
        with self._session.calling("loading weights", deadline.remaining_s):
            function = self._session.remote.get_function
            function("vm.builtin.tensor_cache.load")(folder, self._device.dlpack_device_type() % RPC_MASK, 0)
            parameters = function("vm.builtin.param_array_from_cache_by_name_unpacked")(*names)
            function("vm.builtin.tensor_cache.clear")()
            return parameters

    def call(self, function: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a function of the library with what is on the device, and return what stays there."""
        import tvm.runtime

        with self._session.calling(f"calling {function} of {self._loadable.library.name}", timeout_s):
            values = [tvm.runtime.tensor(a, self._device) if isinstance(a, np.ndarray) else a for a in arguments]
            return self._vm.module[function](*values)

    def shape(self, *extents: int) -> Any:
        """Return a shape on the device."""
        return self._session.remote.get_function("ffi.Shape")(*extents)

    def synced_ms(self, function: str, repeat: int, *, timeout_s: float) -> list[float]:
        """Return samples on the last arguments, by the device's clock: each call waits for the GPU. Raises RigFailure.

        TVM's own timer would not wait for a function that leaves its answer on the GPU.
        """
        deadline, samples = Deadline(timeout_s), list[float]()
        while (left := repeat - len(samples)) > 0:
            count = min(MOST_BATCHES, -(-left // 2))  # of each of two kinds, which are one for batches of a call
            for times in self._session.probe.batches(self._vm.module, function, 1, count, deadline):
                samples += times
        return samples[:repeat]

    def invoke(self, function: str, *arguments: Any, timeout_s: float, first: bool = False) -> list[Array]:
        """Call a function of the library with arrays, states and parameters; return its tensors, or the `first`."""
        import tvm.runtime

        with self._session.calling(f"running {function} of {self._loadable.library.name}", timeout_s):
            values = [tvm.runtime.tensor(a, self._host) if isinstance(a, np.ndarray) else a for a in arguments]
            self._vm.set_input(function, *values)
            self._vm.invoke_stateful(function)
            self._device.sync()
            outputs = self._vm.module["get_output"](function, 0) if first else self._vm.get_outputs(function)
            return copy_tensors(outputs)

    def function_ms(self, function: str, repeat: int, *, timeout_s: float, kernels: bool = False) -> list[float]:
        """Return samples on the last arguments, after one call that is not timed; of its `kernels`, or of all."""
        return self._samples(self._device if kernels else self._host, function, repeat, timeout_s)

    def function_launches(self, function: str, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of each of so many calls on the last arguments, after one more; see `launches`."""
        deadline, probe = Deadline(timeout_s), self._session.probe
        probe.watch_kernels(deadline)
        self.function_ms(function, repeat, timeout_s=deadline.remaining_s, kernels=True)
        return probe.inferences(repeat, deadline)


def load_machine(session: RpcSession, loadable: Loadable, *, timeout_s: float) -> Machine:
    """Push (by hash), load and initialise such a library."""
    deadline = Deadline(timeout_s)
    session.probe.count(deadline)
    pushed = session.bring(loadable.library, loadable.sha256, deadline)
    return Machine(session, loadable, pushed, timeout_s=deadline.remaining_s)


def bring_folder(session: RpcSession, files: Mapping[str, Path], deadline: Deadline) -> str:
    """Push files by hash; return a folder of the device in which they have these names."""
    hashes = {name: sha256_of(file) for name, file in files.items()}
    pushed = {name: session.bring(file, hashes[name], deadline).path for name, file in files.items()}
    digest = hashlib.sha256(" ".join(hashes.values()).encode()).hexdigest()
    folder = f"{session.transport.root}/folders/{digest[:24]}"
    links = [word for name, path in pushed.items() for word in (path, name)]
    answer = session.transport.shell(["sh", "-c", LINK_SCRIPT, folder, *links], timeout_s=deadline.remaining_s)
    if answer.code:
        raise DeviceFull(f"{session.transport.name} refuses the folder {folder}: {answer.stderr.strip()}")
    return folder
