"""Listening for clients, one session at a time, each in a worker process of its own.

What it prints, and how it ends, was held side by side with TVM's own server. Source: apps/cpp_rpc/rpc_server.cc.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from device_runner.failures import SetupMissing
from device_runner.private_sockets import is_foreign
from device_runner.stand_ins.tvm_rpc import flags, runtime
from device_runner.stand_ins.tvm_rpc.clients import LOOPBACK, ClientRefusal, ServerError, Tracker, meet
from device_runner.stand_ins.tvm_rpc.flags import Flags
from device_runner.stand_ins.tvm_rpc.runtime import Behaviour, SessionBehaviour

log = logging.getLogger("tvm_rpc")
SIGNALS_S = 0.5
"""Between two looks for Ctrl-C. A signal that comes just before a wait does not end it: Python sees it afterwards."""


def main(argv: Sequence[str] | None = None, behaviour: Behaviour | None = None) -> int:
    """Run `tvm_rpc server`, a healthy one unless its behaviour is given; returns an exit code."""
    behaviour, arguments = behaviour or Behaviour(), sys.argv[1:] if argv is None else argv
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(name)s: %(message)s", datefmt="%H:%M:%S")
    if unlinked := behaviour.why_not_started():
        log.error(unlinked)
        return 1
    if arguments[:1] != ["server"]:
        log.info(flags.USAGE)
        return 0
    try:
        options = flags.parse(arguments[1:])
    except flags.WrongFlag as error:
        _warn(str(error))
        log.info(flags.USAGE)
        return 1
    if options.host != LOOPBACK:
        _warn(f"refusing to listen on {options.host}: the server has no authentication, use {LOOPBACK}")
        return 1
    for line in options.lines():
        log.info(line)
    options = flags.with_secret_key(options)
    log.info("Starting CPP Server, Press Ctrl+C to stop.")
    signal.signal(signal.SIGINT, _leave)
    try:
        runtime.load()
    except (OSError, ImportError, SetupMissing) as error:
        log.error("%s", error)
        return 1
    listener = _bind(options.port, options.port_end, behaviour)
    log.info("Bind to %s:%d", LOOPBACK, listener.getsockname()[1] if listener else -1)
    with listener or socket.create_server((LOOPBACK, 0), backlog=1) as listener:
        _listen(listener, options, behaviour)
    return 0


def _leave(*_: object) -> NoReturn:
    log.info("\nUser pressed Ctrl+C, Exiting")
    os._exit(1)


def _warn(text: str) -> None:
    log.warning("Warning: %s", text)


def _bind(first: int, end: int, behaviour: Behaviour) -> socket.socket | None:
    """Return the first free port before `end`; None if there is none.

    TVM's server then goes on all the same, at a port of the kernel's choice that nobody knows, and on every address;
    ours on this host's own.
    """
    for port in range(first, end):
        try:
            if behaviour.is_taken(port):
                raise OSError
            return socket.create_server((LOOPBACK, port), backlog=1)
        except OSError:
            _warn(f"Bind failed to {LOOPBACK}:{port}")
    return None


def _listen(listener: socket.socket, options: Flags, behaviour: Behaviour) -> None:
    folder = options.work_dir / ".cache" if options.work_dir else Path.cwd() / "rpc"
    tracker = Tracker(options.tracker, options.key, options.custom_addr or None, listener) if options.tracker else None
    while True:
        match_key = tracker.wait_for_client() if tracker else options.key
        while not select.select([listener], [], [], SIGNALS_S)[0]:
            pass
        connection, (host, port) = listener.accept()
        address = f"{host}:{port}"
        with connection:
            if is_foreign(connection):
                _warn(f"Another user of this host was sent away: {address}")
                continue
            try:
                behaviour.meet(connection)
                client = meet(connection, address, options.key, match_key)
            except ClientRefusal as refusal:
                (_warn if refusal.loud else log.info)(str(refusal))
                continue
            except (ServerError, OSError) as error:
                if tracker:
                    tracker.forget()
                _warn(f"Exception standard: {error}")
                continue
            log.info("New session from %s", address)
            try:
                timeout_s = client.timeout_s
            except ValueError as error:
                sys.stderr.write(f"terminate called after throwing: {error}\n")
                os.abort()
            _serve(connection, address, folder, timeout_s, behaviour.session())
            log.info("End session with %s", address)


def _serve(connection: socket.socket, address: str, folder: Path, timeout_s: int, session: SessionBehaviour) -> None:
    worker = os.fork()
    if worker == 0:
        _work(connection, address, folder, session)
    message, status = _oversee(worker, timeout_s, session.kill_after_s)
    session.ended(worker, status)
    log.info("Child pid=%d %s", worker, message)


def _work(connection: socket.socket, address: str, folder: Path, session: SessionBehaviour) -> NoReturn:
    """Live as the worker. Its exit code is 0 whatever comes to pass in the session, as that of TVM's."""
    began = time.monotonic()
    try:
        _make(folder)
        runtime.serve(connection.fileno(), folder, session)
        log.info("Finished serving %s after %g sec", address, time.monotonic() - began)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        sys.stderr.flush()
        os._exit(0)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _warn(f"Failed to create directory {folder} : {error.strerror}")
    with contextlib.suppress(OSError):
        folder.chmod(0o777)


def _oversee(worker: int, timeout_s: int, kill_after_s: float | None) -> tuple[str, int]:
    """Wait for a worker; returns how it ended in TVM's words, and the status of `waitpid`.

    They differ with and without a limit, after which the worker is told to end and waited for however long that takes.
    """
    message = "finished, status = %d" if timeout_s else "exited, status =%d"
    pidfd = os.pidfd_open(worker)
    try:
        if kill_after_s is not None and not _ends(pidfd, kill_after_s):
            os.kill(worker, signal.SIGKILL)
        elif not _ends(pidfd, timeout_s or None):
            message = f"killed (timeout = {timeout_s} sec), status = %d"
            os.kill(worker, signal.SIGTERM)
    finally:
        os.close(pidfd)
    status = os.waitpid(worker, 0)[1]
    return message % status, status


def _ends(pidfd: int, within_s: float | None) -> bool:
    return bool(select.select([pidfd], [], [], within_s)[0])
