"""Nothing of a phone outlives the process that has it, however that ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from adb_backends import backend_of
from phone_processes import alive, processes_of
from waiting import eventually

from device_runner.failures import RigFailure, SetupMissing
from device_runner.stand_ins.virtual import Faults, VirtualPhone, private_adb, sandbox, virtual_phone

pytestmark = pytest.mark.device

HOST = """
import json, sys, time
from pathlib import Path
from device_runner.transport.adb import Adb
from device_runner.stand_ins.virtual import virtual_phone
with virtual_phone(Path(sys.argv[1]), sandboxed=json.loads(sys.argv[2])) as phone:
    adb = Adb(phone.serial, phone.adb_server)
    adb.shell(["sh", "-c", "nohup setsid sleep 600 >/dev/null 2>&1 </dev/null &"], timeout_s=300)
    job = adb.spawn(["tvm_rpc", "server", "--port=20000", "--port-end=32000"], environment={}, timeout_s=300)
    while "Bind to" not in job.output():
        time.sleep(0.02)
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_phone_starts_with_a_python_whose_path_leads_through_a_folder_of_the_host_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / os.path.relpath(sys.executable, tmp_path)))
    with virtual_phone(tmp_path / "phone") as phone:
        assert phone.serial


def sleeps(process: psutil.Process) -> bool:
    """Whether it is the one that `nohup setsid sleep 600` becomes; toybox keeps its first name."""
    with contextlib.suppress(psutil.Error):
        return process.cmdline()[-2:] == ["sleep", "600"] and process.name() != "bwrap"
    return False


@pytest.mark.parametrize("sandboxed", [True, False], ids=["sandboxed", "in-a-plain-folder"])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_host(tmp_path: Path, signum: signal.Signals, sandboxed: bool) -> None:
    if sandboxed and (reason := sandbox.why_not()):
        pytest.skip(f"no sandbox here: {reason}")
    command = [sys.executable, "-c", HOST, str(tmp_path), json.dumps(sandboxed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        started = processes_of(tmp_path, psutil.Process(host.pid))
        assert "adb" in {process.name() for process in started}
        assert any(sleeps(process) for process in started)
        assert len(started) >= 4
        os.kill(host.pid, signum)
        host.wait(300)
    try:
        assert eventually(lambda: not alive(started)), alive(started)
    finally:
        for process in alive(started):
            process.kill()


def test_the_context_ends_everything(tmp_path: Path) -> None:
    us = psutil.Process()
    before = us.children(recursive=True)
    with virtual_phone(tmp_path) as running:
        adb = backend_of(running)
        adb.adb("shell", "nohup setsid sleep 600 >/dev/null 2>&1 </dev/null &")
        assert eventually(lambda: any(sleeps(process) for process in processes_of(tmp_path, us)))
        started = [process for process in processes_of(tmp_path, us) if process not in before]
    assert eventually(lambda: not alive(started))


def test_the_phone_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        phones: list[VirtualPhone] = []
        thread = threading.Thread(target=lambda: phones.append(stack.enter_context(virtual_phone(tmp_path))))
        thread.start()
        thread.join()
        assert backend_of(phones[0]).shell("echo alive") == "alive\n"


def test_what_was_pushed_is_there_the_next_time(tmp_path: Path) -> None:
    with virtual_phone(tmp_path) as running:
        backend_of(running).adb("shell", f"echo kept >{running.root}/file")
    with virtual_phone(tmp_path) as running:
        assert backend_of(running).shell(f"cat {running.root}/file") == "kept\n"


def test_the_environment_reaches_every_process(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime/libopencl.so"
    runtime.parent.mkdir()
    runtime.write_text("a library")
    with virtual_phone(tmp_path / "phone", opencl_runtime=runtime, env={"GREETING": "hello world"}) as running:
        adb = backend_of(running)
        assert adb.shell("echo $GREETING; cat $ADRENO_BENCH_OPENCL_RUNTIME") == "hello world\na library"
        assert adb.shell("echo ${PYTHONPATH-none} ${POCL_CACHE_DIR-none}") == "none none\n"


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_the_host_ignores_ends_processes_of_the_phone(tmp_path: Path, signum: signal.Signals) -> None:
    """As under `nohup`, whose commands ignore SIGHUP, and so does all that they start."""
    before = signal.signal(signum, signal.SIG_IGN)
    try:
        with virtual_phone(tmp_path) as running:
            ended = backend_of(running).shell(f"sh -c 'kill -{signum.value} $$'; echo $?")
    finally:
        signal.signal(signum, before)
    assert ended == f"{128 + signum}\n"


def test_the_memory_of_the_host_is_not_the_phones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes while a virtual machine runs, and with it the images of PoCL, for which artifacts are built."""
    monkeypatch.delenv("POCL_MEMORY_LIMIT", raising=False)
    with virtual_phone(tmp_path) as running:
        assert backend_of(running).shell("echo $POCL_MEMORY_LIMIT") == "8\n"


@pytest.mark.skipif(bool(sandbox.why_not()), reason="no sandbox here")
class TestSandbox:
    def test_is_androids_shell_user_in_androids_folders(self, tmp_path: Path) -> None:
        with virtual_phone(tmp_path) as running:
            adb = backend_of(running)
            assert running.sandboxed
            assert running.root == "/data/local/tmp/adreno-bench"
            assert adb.shell("id -u") == "2000\n"
            assert adb.shell("ls /sys/class/kgsl/kgsl-3d0/gpuclk") == "/sys/class/kgsl/kgsl-3d0/gpuclk\n"

    def test_writes_only_to_its_data(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("of the host")
        with virtual_phone(tmp_path / "phone") as running:
            adb = backend_of(running)
            for place in ("/usr/x", "/system/x", "/x", str(Path(sys.prefix) / "x"), "/sys/class/kgsl/kgsl-3d0/gpuclk"):
                assert adb.adb("shell", f"echo 1 >{place}", check=False).returncode != 0, place
            assert adb.adb("shell", f"cat {tmp_path}/secret", check=False).returncode != 0
            assert adb.adb("shell", f"kill -0 {os.getpid()}", check=False).returncode != 0


def test_a_phone_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\necho no python >&2\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(RigFailure, match="did not start") as raised, virtual_phone(tmp_path, sandboxed=False):
        pass
    assert "no python" in raised.value.evidence


def test_a_phone_that_does_not_answer_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("device_runner.stand_ins.virtual.handle.ANSWER_DEADLINE_S", 1.0)
    with (
        pytest.raises(RigFailure, match="did not answer over adb"),
        virtual_phone(tmp_path, injected=Faults(unauthorized=True)),
    ):
        pass


def test_without_adb_the_hint_is_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupMissing, match="apt-get install adb"):
        private_adb.adb_binary()
