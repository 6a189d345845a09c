"""The phone's `tvm_rpc`: flags and log of TVM's C++ server, sessions of the real runtime, and how they end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from adb_backends import backend_of
from waiting import LONG_S, eventually

from device_runner.stand_ins.virtual import Faults, VirtualPhone, faults, virtual_phone

pytestmark = pytest.mark.device
MAGIC = 0xFF271
START = "import sys; from device_runner.stand_ins.virtual.tvm_rpc.server import main; sys.exit(main())"


@dataclass
class Server:
    process: subprocess.Popen[str]
    port: int
    seen: list[str]
    """Lines of the log so far."""

    def log_has(self, pattern: str) -> bool:
        return eventually(lambda: any(re.search(pattern, line) for line in self.seen))


@contextlib.contextmanager
def server(
    folder: Path, *flags: str, ports: tuple[int, int] = (20000, 32000), env: dict[str, str] | None = None
) -> Iterator[Server]:
    command = [
        sys.executable,
        "-c",
        START,
        "server",
        f"--work-dir={folder}",
        f"--port={ports[0]}",
        f"--port-end={ports[1]}",
        *flags,
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, **(env or {})}
    )
    assert process.stderr is not None
    running = Server(process, 0, [])
    reader = threading.Thread(target=lambda: running.seen.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        assert running.log_has(r"Bind to 127\.0\.0\.1:\d+"), running.seen
        running.port = int(re.findall(r"Bind to 127\.0\.0\.1:(\d+)", "".join(running.seen))[0])
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LONG_S)
        reader.join(60)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adds one to 1024 numbers, on the CPU."""
    import tvm
    from tvm import te

    numbers = te.placeholder((1024,), name="numbers")
    function = te.create_prim_func([numbers, te.compute((1024,), lambda i: numbers[i] + 1.0)])
    module = tvm.IRModule({"add_one": function.with_attr("global_symbol", "add_one")})
    path = tmp_path_factory.mktemp("library") / "add_one.so"
    tvm.compile(module, target="llvm").export_library(str(path))
    return path


def add_one(session: Any, name: str) -> Any:
    import tvm

    function = session.load_module(name)
    device = session.cpu(0)
    numbers = tvm.runtime.tensor(np.arange(1024, dtype="float32"), device)
    result = tvm.runtime.tensor(np.zeros(1024, dtype="float32"), device)
    function["add_one"](numbers, result)
    np.testing.assert_array_equal(result.numpy(), np.arange(1024, dtype="float32") + 1)
    return function.time_evaluator("add_one", device, number=2, repeat=3)(numbers, result)


@pytest.fixture(scope="module", params=["sandboxed", "in a plain folder"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualPhone]:
    forced = None if request.param == "sandboxed" else False
    with virtual_phone(tmp_path_factory.mktemp("phone"), sandboxed=forced) as phone:
        yield phone


def test_the_phone_runs_what_is_uploaded_and_what_is_pushed(running: VirtualPhone, library: Path) -> None:
    from tvm import rpc

    adb = backend_of(running)
    adb.adb("push", str(library), f"{running.root}/pushed.so")
    start = f"cd {running.root} && exec tvm_rpc server --port=20000 --port-end=32000 --work-dir=. 2>&1"
    with subprocess.Popen(adb.command("shell", start), stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        bound = next(filter(None, (re.search(r"Bind to .*:(\d+)", line) for line in shell.stdout)))
        local = int(adb.adb("forward", "tcp:0", f"tcp:{bound[1]}").stdout)
        session = rpc.connect("127.0.0.1", local, session_timeout=60)
        session.upload(str(library))
        assert len(add_one(session, library.name).results) == 3
        add_one(session, f"{running.root}/pushed.so")
        session.get_function("CloseRPCConnection")()
        assert any(re.search(r"Child pid=\d+ finished, status = 0$", line) for line in shell.stdout)
        shell.kill()
    # SIGHUP reached it: the port of the phone is closed again.
    with socket.socket() as probe:
        assert eventually(lambda: probe.connect_ex(("127.0.0.1", int(bound[1]))) != 0)


def greet(port: int, key: bytes = b"client:") -> tuple[socket.socket, int]:
    connection = socket.create_connection(("127.0.0.1", port), 20)
    connection.sendall(struct.pack("<ii", MAGIC, len(key)) + key)
    return connection, struct.unpack("<i", connection.recv(4, socket.MSG_WAITALL))[0]


class TestServer:
    def test_a_worker_that_is_killed_leaves_its_signal_in_the_log(self, tmp_path: Path) -> None:
        with server(tmp_path) as running:
            connection, code = greet(running.port)
            assert code == MAGIC
            assert running.log_has(r"New session from 127\.0\.0\.1:\d+$")
            assert eventually(lambda: bool(psutil.Process(running.process.pid).children()))
            psutil.Process(running.process.pid).children()[0].kill()
            assert running.log_has(r"Child pid=\d+ exited, status =9$")
            assert running.log_has("End session with")
            connection.close()
            again, code = greet(running.port)
            again.close()
            assert code == MAGIC

    def test_an_injected_crash_ends_a_session_as_a_kill(self, tmp_path: Path) -> None:
        faults.write(tmp_path / "faults.json", Faults(crash_session_after_s=0.1))
        with server(tmp_path, env={"ADRENO_BENCH_PHONE_FAULTS": str(tmp_path / "faults.json")}) as running:
            connection, _ = greet(running.port)
            assert running.log_has(r"exited, status =9$")
            connection.close()

    def test_a_session_ends_at_the_time_that_its_client_set(self, tmp_path: Path) -> None:
        with server(tmp_path) as running:
            connection, _ = greet(running.port, b"client: -timeout=1")
            assert running.log_has(r"Child pid=\d+ killed \(timeout = 1 sec\), status = 15$")
            connection.close()

    def test_a_wrong_key_is_told_and_refused(self, tmp_path: Path) -> None:
        with server(tmp_path, "--key=secret") as running:
            connection, code = greet(running.port, b"client:guessed")
            assert code == MAGIC + 2
            assert connection.recv(1) == b""
            connection, code = greet(running.port, b"client:secret")
            assert code == MAGIC
            connection.close()

    @pytest.mark.parametrize("garbage", [b"", b"\x71", b"GET / HTTP/1.1\r\n\r\n", struct.pack("<ii", MAGIC, -1)])
    def test_garbage_is_shown_out(self, tmp_path: Path, garbage: bytes) -> None:
        with server(tmp_path) as running:
            told = socket.create_connection(("127.0.0.1", running.port), 20)
            with told as connection, contextlib.suppress(OSError):  # it may hang up before all is said
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1) == b""
            connection, code = greet(running.port)
            connection.close()
            assert code == MAGIC

    def test_a_limit_that_is_no_whole_number_ends_the_server(self, tmp_path: Path) -> None:
        with server(tmp_path) as running:
            connection, _ = greet(running.port, b"client: -timeout=0.5")
            assert running.process.wait(LONG_S) == -signal.SIGABRT
            connection.close()

    def test_nobody_is_served_behind_a_client_that_is_silent(self, tmp_path: Path) -> None:
        with server(tmp_path) as running, socket.create_connection(("127.0.0.1", running.port), 20) as silent:
            behind = socket.create_connection(("127.0.0.1", running.port), 20)
            behind.sendall(struct.pack("<ii", MAGIC, 7) + b"client:")
            behind.settimeout(0.3)
            with pytest.raises(TimeoutError):
                behind.recv(4)
            silent.close()
            behind.settimeout(LONG_S)
            assert struct.unpack("<i", behind.recv(4))[0] == MAGIC
            behind.close()

    def test_a_session_that_breaks_ends_with_code_0_and_says_nothing(self, tmp_path: Path) -> None:
        with server(tmp_path) as running:
            connection, _ = greet(running.port)
            connection.sendall(b"garbage" * 10)
            connection.close()
            assert running.log_has(r"Child pid=\d+ exited, status =0$")
            assert not any("Finished serving" in line for line in running.seen)

    def test_the_worker_outlives_a_server_that_is_killed(self, tmp_path: Path) -> None:
        """So whoever kills the server has to kill its group."""
        with server(tmp_path) as running:
            connection, _ = greet(running.port)
            assert eventually(lambda: bool(psutil.Process(running.process.pid).children()))
            worker = psutil.Process(running.process.pid).children()[0]
            running.process.kill()
            running.process.wait(LONG_S)
            assert not eventually(lambda: not worker.is_running(), 0.3)
            worker.kill()
            connection.close()

    def test_ctrl_c_ends_it_with_code_1(self, tmp_path: Path) -> None:
        with server(tmp_path) as running:
            running.process.send_signal(signal.SIGINT)
            assert running.process.wait(LONG_S) == 1

    def test_a_taken_port_is_passed_over(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with server(tmp_path, ports=(port, port + 100)) as running:
                assert running.port != port
                assert any(f"Warning: Bind failed to 127.0.0.1:{port}" in line for line in running.seen)

    def test_without_a_free_port_it_says_so_and_goes_on(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", START, "server", f"--work-dir={tmp_path}", "--port=20000", "--port-end=20000"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert next(line for line in process.stderr if "Bind to" in line).endswith("Bind to 127.0.0.1:-1\n")
            assert process.poll() is None
            process.kill()

    def test_uploads_are_removed_with_the_session(self, tmp_path: Path, library: Path) -> None:
        from tvm import rpc

        with server(tmp_path) as running:
            session = rpc.connect("127.0.0.1", running.port)
            session.upload(str(library))
            assert (tmp_path / ".cache" / library.name).exists()
            session.get_function("CloseRPCConnection")()
            assert eventually(lambda: not (tmp_path / ".cache").exists())

    @pytest.mark.parametrize(
        ("flags", "says"),
        [
            (["server", "--host=0.0.0.0"], "no authentication"),
            (["server", "--tracker=nonsense"], "Wrong tracker address format."),
            ([], "tvm_rpc server [--host"),
            (["client"], "tvm_rpc server [--host"),
        ],
    )
    def test_wrong_flags_are_explained(self, flags: list[str], says: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", START, *flags], capture_output=True, text=True, timeout=LONG_S, check=False
        )
        assert done.returncode == (1 if flags[:1] == ["server"] else 0)
        assert says in done.stderr

    def test_a_missing_opencl_runtime_is_named(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-c", START, "server", "--port=20000", "--port-end=32000"],
            env={**os.environ, "ADRENO_BENCH_OPENCL_RUNTIME": str(tmp_path / "gone.so")},
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        assert done.returncode == 1
        assert "gone.so" in done.stderr

    def test_it_is_found_through_a_tracker(self, tmp_path: Path, library: Path) -> None:
        from tvm import rpc
        from tvm.rpc.tracker import Tracker

        tracker = Tracker("127.0.0.1", port=20000, port_end=32000)
        try:
            with server(tmp_path, f"--tracker=127.0.0.1:{tracker.port}", "--key=virtual"):
                known = rpc.connect_tracker("127.0.0.1", tracker.port)
                for _ in range(2):
                    session = known.request("virtual", session_timeout=60)
                    session.upload(str(library))
                    add_one(session, library.name)
                    session.get_function("CloseRPCConnection")()
        finally:
            tracker.terminate()
