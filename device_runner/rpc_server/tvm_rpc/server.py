"""Listening for clients, one session at a time, each in a worker process of its own."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import select
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from device_runner.lifetime import die_with_parent
from device_runner.rpc_server import handshake
from device_runner.rpc_server.tvm_rpc import runtime
from device_runner.rpc_server.tvm_rpc.behaviour import Behaviour, SessionBehaviour
from device_runner.rpc_server.tvm_rpc.tracker import Tracker

LOOPBACK = "127.0.0.1"
TERM_DEADLINE_S = 2.0

log = logging.getLogger("tvm_rpc")


def main(argv: Sequence[str] | None = None, behaviour: Behaviour | None = None) -> int:
    """Run `tvm_rpc server`, a healthy one unless its behaviour is given; returns an exit code."""
    behaviour = behaviour or Behaviour()
    options = _parser().parse_args(argv)
    level = logging.WARNING if options.silent else logging.INFO
    logging.basicConfig(level=level, format="[%(asctime)s] %(name)s: %(message)s", datefmt="%H:%M:%S")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if options.host != LOOPBACK:
        log.error("refusing to listen on %s: the server has no authentication, use %s", options.host, LOOPBACK)
        return 1
    for name, value in vars(options).items():
        log.info("%-11s = %s", name, value)
    if unlinked := behaviour.why_not_started():
        log.error(unlinked)
        return 1
    try:
        runtime.load()
    except (OSError, ImportError) as error:
        log.error("%s", error)
        return 1
    listener = _bind(options.port, options.port_end, behaviour)
    log.info("Bind to %s:%d", LOOPBACK, listener.getsockname()[1] if listener else -1)
    with listener or socket.create_server((LOOPBACK, 0), backlog=1) as listener:
        _listen(listener, options, behaviour)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tvm_rpc", allow_abbrev=False, description="TVM RPC server of the phone")
    parser.add_argument("command", choices=["server"])
    parser.add_argument("--host", default=LOOPBACK, help="only 127.0.0.1 is accepted")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--port-end", type=int, default=9099, help="end of the search for a free port")
    parser.add_argument("--tracker", type=_address, default=None, metavar="HOST:PORT")
    parser.add_argument("--key", default="", help="name of the device type at the tracker")
    parser.add_argument("--custom-addr", default=None, help="address that the tracker gives to clients")
    parser.add_argument("--work-dir", type=Path, default=None, help="uploads go to its .cache; default $HOME/rpc")
    parser.add_argument("--silent", action="store_true", help="log only warnings and errors")
    return parser


def _address(text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def _bind(first: int, end: int, behaviour: Behaviour) -> socket.socket | None:
    """The first port that is free; None if none is, after which TVM's server goes on, at a port that nobody knows.

    Source: apps/cpp_rpc/rpc_server.cc, Start; its socket then listens on every address, ours on this host's own.
    """
    for port in range(first, max(end, first + 1)):
        try:
            if behaviour.is_taken(port):
                raise OSError
            return socket.create_server((LOOPBACK, port), backlog=1)
        except OSError:
            log.warning("Bind failed to %s:%d", LOOPBACK, port)
    return None


def _listen(listener: socket.socket, options: argparse.Namespace, behaviour: Behaviour) -> None:
    folder = options.work_dir / ".cache" if options.work_dir else Path(os.environ.get("HOME", ".")) / "rpc"
    tracker = Tracker(options.tracker, options.key, options.custom_addr, listener) if options.tracker else None
    while True:
        match_key = tracker.wait_for_client() if tracker else options.key
        connection, (host, port) = listener.accept()
        with connection:
            try:
                behaviour.meet(connection)
                request = handshake.greet(connection, options.key, match_key)
            except (OSError, handshake.Unwelcome) as error:
                log.warning("connection from %s:%d refused: %s", host, port, error)
                continue
            log.info("Connection success %s:%d", host, port)
            _serve(listener, connection, folder, request.timeout_s, behaviour.session)
            log.info("Socket Connection Closed")


def _serve(
    listener: socket.socket,
    connection: socket.socket,
    folder: Path,
    timeout_s: float | None,
    behaviour: Callable[[], SessionBehaviour],
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # as TVM's server, which goes on without
        folder.mkdir(parents=True)
    session = behaviour()
    worker = os.fork()
    if worker == 0:
        _work(listener, connection, folder, session)
    try:
        told, status = _oversee(worker, timeout_s, session.kill_after_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    session.ended(worker, status)
    log.info("Child pid=%d %s", worker, told)


def _work(listener: socket.socket, connection: socket.socket, folder: Path, session: SessionBehaviour) -> None:
    """The worker's life. Does not return."""
    code = 1
    try:
        die_with_parent(signal.SIGKILL)
        listener.close()
        runtime.serve(connection.fileno(), folder, session)
        code = 0
    except Exception as error:
        log.error("session ended: %s", error)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _oversee(worker: int, timeout_s: float | None, kill_after_s: float | None) -> tuple[str, int]:
    """Wait for a worker, at most `timeout_s`; returns how it ended in TVM's words, and the status of `waitpid`.

    Source: apps/cpp_rpc/rpc_server.cc, whose words differ with and without a limit.
    """
    told = "exited, status =%d" if timeout_s is None else "finished, status = %d"
    pidfd = os.pidfd_open(worker)
    try:
        if kill_after_s is not None and not _ends(pidfd, kill_after_s):
            os.kill(worker, signal.SIGKILL)
        elif not _ends(pidfd, timeout_s):
            told = f"killed (timeout = {timeout_s:g} sec), status = %d"
            os.kill(worker, signal.SIGTERM)
            if not _ends(pidfd, TERM_DEADLINE_S):
                os.kill(worker, signal.SIGKILL)
    finally:
        os.close(pidfd)
    status = os.waitpid(worker, 0)[1]
    return told % status, status


def _ends(pidfd: int, within_s: float | None) -> bool:
    return bool(select.select([pidfd], [], [], within_s)[0])
