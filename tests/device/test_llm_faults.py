"""What may end a long prefill on a phone: each has a name, and an owner."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from phone_processes import alive, processes_of
from waiting import LONG_S

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.failures import Failure
from device_runner.stand_ins.virtual import FailingKernels, Kernels, SlowKernels, VirtualPhone
from device_runner.store import sha256_of
from harness.base.outcome import Outcome, Owner
from harness.compile.artifacts.compile import export
from harness.tools.llm.build import weights_folder
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.conversation import Conversation, Machine
from harness.tools.llm.lowering import MLC, build_executable, target_of
from harness.tools.llm.network import CREATE, PAGE, PREFILL, build_module
from harness.tools.llm.run import load_library
from harness.tools.llm.weights import FORMATS, SeededWeights

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.usefixtures("warm_driver")]
CONFIG = LlmConfig(1, 64, 2, 1, 32, 64, 64)
FORM = FORMATS["float32"]
PROMPT = np.zeros(32, np.int32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llm")
    mod, _ = build_module(CONFIG, FORM, target_of(None))
    export(build_executable(mod, target_of(None), MLC, [], lambda _: None), folder / "lib.so", None)
    return folder / "lib.so"


@contextlib.contextmanager
def conversing(device: AdbDevice, library: Path) -> Iterator[Conversation]:
    folder = weights_folder(SeededWeights(CONFIG), FORM, library.parent)
    with device.session({}, timeout_s=LONG_S) as session:
        yield load_library(session, Loadable(library, sha256_of(library), 1), folder, LONG_S)


def outcome_of(failure: Failure) -> tuple[Outcome, Owner]:
    outcome = Outcome(failure.outcome)
    return outcome, outcome.owner


@pytest.mark.parametrize(
    ("code", "hint"), [(-5, "ended a kernel that ran too long: take shorter steps"), (-54, "work-group"), (-61, "room")]
)
def test_a_step_that_the_driver_ends_or_refuses_is_the_paths(
    code: int, hint: str, phone: VirtualPhone, device: AdbDevice, library: Path
) -> None:
    phone.fault(failing_kernels=(FailingKernels(kernel="*prefill*", code=code),))
    with conversing(device, library) as conversation, pytest.raises(Failure, match=f"code={code}") as caught:
        conversation.step(PREFILL, PROMPT)
    assert outcome_of(caught.value) == (Outcome.RUNTIME_ERROR, Owner.PATH)
    assert "running prefill of lib.so failed" in caught.value.message
    assert hint in caught.value.hint


def test_a_buffer_of_more_than_1_gib_is_refused_by_the_device(device: AdbDevice, library: Path) -> None:
    with conversing(device, library) as conversation:
        machine = conversation.machine
        sizes = [machine.shape(size) for size in (1, 1 << 23, 512, PAGE, 0)]
        with pytest.raises(Failure, match="code=-61") as caught:
            machine.call(CREATE, *sizes)
    assert outcome_of(caught.value) == (Outcome.RUNTIME_ERROR, Owner.PATH)
    assert "no room for a buffer of this size" in caught.value.hint


def test_a_process_that_dies_in_a_prefill_is_a_crash(phone: VirtualPhone, device: AdbDevice, library: Path) -> None:
    phone.fault(hang_kernels=Kernels(kernel="*prefill*"))

    def end_server() -> None:
        for process in alive(processes_of(phone.home, psutil.Process())):
            with contextlib.suppress(psutil.Error):
                if "tvm_rpc" in " ".join(process.cmdline()):
                    process.kill()

    with conversing(device, library) as conversation:
        threading.Timer(0.5, end_server).start()
        with pytest.raises(Failure) as caught:
            conversation.step(PREFILL, PROMPT)
    assert outcome_of(caught.value) == (Outcome.DEVICE_CRASH, Owner.PATH)
    assert "while running prefill of lib.so" in caught.value.message


def test_a_prefill_that_never_ends_is_a_hang(phone: VirtualPhone, device: AdbDevice, library: Path) -> None:
    phone.fault(hang_kernels=Kernels(kernel="*prefill*"))
    with conversing(device, library) as conversation:
        conversation.machine.timeout_s = 1.0
        with pytest.raises(Failure) as caught:
            conversation.step(PREFILL, PROMPT)
    assert outcome_of(caught.value) == (Outcome.HANG, Owner.PATH)


def test_a_library_of_another_tvm_than_the_runtimes_is_the_rigs(device: AdbDevice, tmp_path: Path) -> None:
    library = tmp_path / "other.so"
    export(caller("vm.builtin.kv_state_of_another_tvm"), library, None)
    loadable = Loadable(library, sha256_of(library), 1)
    with device.session({}, timeout_s=LONG_S) as session, pytest.raises(Failure) as caught:
        Machine(session, loadable, LONG_S)
    assert outcome_of(caught.value) == (Outcome.INFRA_ERROR, Owner.RIG)
    assert "the library does not fit TVM's runtime" in caught.value.message


def caller(function: str) -> Any:
    """Compile a program that calls a function of the runtime."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    with builder.function("main", [x], pure=False):
        builder.emit(relax.Call(relax.ExternFunc(function), [x], ty_args=[relax.TupleType([])]))
        builder.emit_func_output(x)
    return relax.build(builder.finalize(), target_of(None))


def test_a_slow_device_gets_steps_that_end_before_its_watchdog(
    phone: VirtualPhone, device: AdbDevice, library: Path
) -> None:
    phone.fault(slow_kernels=(SlowKernels(kernel="*prefill*", least_s=1.1),))
    with conversing(device, library) as conversation:
        first, largest = conversation.choose_chunk()
        assert first is largest
        assert min(first.first_ms, first.ms) >= 1100
        assert (conversation.chunk, conversation.length) == (1, 0)
