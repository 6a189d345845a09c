"""Listening for hosts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from pathlib import Path

from device_runner.private_sockets import is_foreign
from device_runner.stand_ins.virtual import services
from device_runner.stand_ins.virtual.clock import Clock
from device_runner.stand_ins.virtual.fault_file import POLL_S
from device_runner.stand_ins.virtual.packet import MAX_PAYLOAD_BYTES, ProtocolError
from device_runner.stand_ins.virtual.transport import HostConnection, Phone, Router, TaskSet

LOOPBACK = "127.0.0.1"
EMULATOR_PORTS = range(5555, 5586)
"""An adb server looks for emulators here and would show the phone twice."""

log = logging.getLogger(__name__)


def listening_socket() -> socket.socket:
    """Return a socket on a free port of the loopback, never one that adb scans."""
    while True:
        listener = socket.create_server((LOOPBACK, 0))
        if listener.getsockname()[1] not in EMULATOR_PORTS:
            return listener
        listener.close()


async def serve(listener: socket.socket, phone: Phone, route: Router = services.find) -> None:
    """Serve hosts until cancelled."""
    transports: set[HostConnection] = set()
    tasks = TaskSet()
    clock = Clock(Path(phone.root))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        if phone.faults.now.offline or is_foreign(connection):
            writer.transport.abort()
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = HostConnection(reader, writer, phone, route, tasks)
        transports.add(transport)
        try:
            await transport.run()
        except ProtocolError as error:
            log.warning("connection dropped: %s", error)
        except Exception:
            log.exception("connection dropped")
        finally:
            transports.discard(transport)

    server = await asyncio.start_server(connected, sock=listener, limit=MAX_PAYLOAD_BYTES)
    try:
        while True:
            await asyncio.sleep(POLL_S)
            clock.set_ahead(phone.faults.now.clock_jump_s)
            if phone.faults.now.offline:
                for transport in tuple(transports):
                    transport.drop()
    finally:
        server.close()
        for transport in tuple(transports):
            transport.drop()
        with contextlib.suppress(asyncio.CancelledError):
            await tasks.cancel()
