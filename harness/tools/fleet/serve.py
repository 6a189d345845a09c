"""A host offers one of its devices to others through a TVM RPC tracker.

The tracker only says who is next. That client calls us with the key that the tracker gave out, and that connection is
its lease: when it ends, for whatever reason, the device is free again. While it stands, further connections that name
its token reach services of this one device's adbd: a shell, file sync, TCP ports; nothing of the adb server itself. So
the device is used exactly as if it hung on the client's own host, push, logs and all.
"""

from __future__ import annotations

import logging
import secrets
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from device_runner import installed_tvm
from device_runner.adb_device import AdbDevice
from device_runner.deadline import Deadline, receive
from device_runner.failures import DeviceLost, Failure
from device_runner.rpc_server import handshake
from device_runner.rpc_server.tracker import Address, Code, Connection, receive_json, send_json
from device_runner.transport.adb import AdbRefusal
from harness.tools.fleet.greeting import HandshakeFailure, read_name
from harness.tools.fleet.offer import FIELD, Grant, Offer

SERVICES = ("shell,v2,raw:", "sync:", "tcp:")
"""What a session needs of a device. `reboot:`, `root:`, `tcpip:` and the rest stay with its host."""

LOOK_EVERY_S = 2.0
LOOK_TIMEOUT_S = 2.0
OPEN_TIMEOUT_S = 20.0
RETRY_S = 5.0
UNUSED_PERIODS = 3
CHUNK_BYTES = 262_144
LONGEST_REQUEST_BYTES = 0xFFFF

log = logging.getLogger("fleet")

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Lender:
    """The host that offers a device: where, and under which name."""

    tracker: Address
    address: str
    """Our own address, by which clients reach us and on which alone we listen."""
    host: str
    """Our name in records."""


def serve(device: AdbDevice, lender: Lender, tell: Tell, say: Callable[[str], None], stop: threading.Event) -> None:
    """Offer a device that we hold, until `stop` is set. If the device or the tracker does not answer, try again later.

    `tell` shows its use to people on this host, `say` is for the person who serves.
    """
    offer = Offer(device.name, lender.host, device.identity)
    with socket.create_server((lender.address, 0)) as listener:
        say(f"{offer.name} is offered as {offer.key} on {lender.address}:{listener.getsockname()[1]}")
        trouble = ""
        while not stop.is_set():
            tell("", trouble or "offered through the tracker")
            lending = _Lending(device, lender, offer, listener, tell, stop)
            before, trouble = trouble, ""
            try:
                lending.run()
            except Failure as failure:
                trouble = failure.message
            except (OSError, ValueError) as error:
                trouble = f"the tracker does not answer: {error or 'too late'}"
            if trouble != before:
                say(f"{offer.name}: {trouble or 'is offered again'}")
            if trouble:
                stop.wait(RETRY_S)


@dataclass(eq=False)
class _Lending:
    """The loan of a device: from its offer to the end of one client's use."""

    device: AdbDevice
    lender: Lender
    offer: Offer
    listener: socket.socket
    tell: Tell
    stop: threading.Event
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    ended: threading.Event = field(default_factory=threading.Event)
    streams: set[socket.socket] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Raise `DeviceLost` if the free device does not answer, OSError or ValueError if the tracker does not."""
        self._look()
        tracker = Connection(self.lender.tracker, LOOK_TIMEOUT_S)
        try:
            self._introduce(tracker, "")
            client, peer = self._wait_for_client(tracker)
            if client is None:
                return
            with client:
                log.info("%s is used by %s", self.offer.name, peer)
                with suppress(OSError, ValueError):  # it only shows it to others
                    self._introduce(tracker, peer)
                self.tell("", f"used by {peer}")
                self._look_after(client)
            self._cut_all()
            if left := self.device.keeper.put_back():  # its user may have been killed
                log.warning("%s was left changed by %s: %s", self.offer.name, peer, ", ".join(left))
        finally:
            tracker.close()
            self._cut_all()

    def _introduce(self, tracker: Connection, used_by: str) -> None:
        own = (self.lender.address, self.listener.getsockname()[1])
        about = asdict(replace(self.offer, used_by=used_by))
        tracker.tell(Code.UPDATE_INFO, {"key": f"server:{self.offer.key}", "addr": own, FIELD: about})

    def _wait_for_client(self, tracker: Connection) -> tuple[socket.socket | None, str]:
        own = (self.lender.address, self.listener.getsockname()[1])
        match_key, unused = tracker.offer(self.offer.key, own), 0
        while not self.stop.is_set():
            if select.select([self.listener], [], [], LOOK_EVERY_S)[0]:
                connection, (peer, *_) = self.listener.accept()
                if self._is_client(connection, match_key):
                    return connection, peer
                continue
            self._look()
            unused = 0 if match_key in tracker.ask(Code.GET_PENDING_MATCHKEYS) else unused + 1
            if unused > UNUSED_PERIODS:  # given to a client that never came
                match_key, unused = tracker.offer(self.offer.key, own), 0
        return None, ""

    def _is_client(self, connection: socket.socket, match_key: str) -> bool:
        try:
            self._greet(connection, match_key)
            serial, root = self.device.adb.serial, self.device.adb.root
            grant = Grant(self.offer, serial, root, self.token, installed_tvm.stated_version("tvm"))
            send_json(connection, asdict(grant), Deadline(LOOK_TIMEOUT_S))
        except (OSError, HandshakeFailure) as error:
            log.warning("%s: a connection was refused: %s", self.offer.name, error)
            connection.close()
            return False
        _keep_alive(connection)
        return True

    def _look(self) -> None:
        answer = self.device.adb.shell(["true"], timeout_s=LOOK_TIMEOUT_S)
        if answer.code:
            raise DeviceLost(f"{self.offer.device} cannot run `true`")

    def _look_after(self, client: socket.socket) -> None:
        """Serve one client until it ends its connection or we are asked to stop. This does not need the tracker."""
        while not self.stop.is_set():
            ready = select.select([client, self.listener], [], [], LOOK_EVERY_S)[0]
            if self.listener in ready:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._stream, args=(connection,), daemon=True).start()
            if client in ready and not self._hear(client):
                return

    def _hear(self, client: socket.socket) -> bool:
        """Pass on what the client says it is doing. Returns whether it is still there."""
        try:
            case, step = receive_json(client, Deadline(LOOK_TIMEOUT_S))
            self.tell(str(case), str(step))
        except (OSError, ValueError, TypeError):
            return False
        return True

    def _stream(self, connection: socket.socket) -> None:
        """Connect a client to a service of the device, and pump until one of the two ends."""
        with connection:
            try:
                self._greet(connection, self.token)
                service = _request(connection)
                sock = self._open_service(connection, service)
            except (OSError, ValueError, HandshakeFailure) as error:
                log.warning("%s: a stream was refused: %s", self.offer.name, error)
                return
            if sock:
                with sock:
                    self._pump(connection, sock)

    def _greet(self, connection: socket.socket, password: str) -> None:
        """Welcome a client that names the password. Raises HandshakeFailure for any other, which it refuses."""
        name, _ = read_name(connection)
        if not secrets.compare_digest(name.encode(), password.encode()):
            handshake.refuse(connection)
            raise HandshakeFailure("it names another key")
        handshake.welcome(connection, self.offer.key)

    def _open_service(self, connection: socket.socket, service: str) -> socket.socket | None:
        """Return the service's stream, after the client was told OKAY; None if it was told FAIL."""
        try:
            if not service.startswith(SERVICES):
                raise AdbRefusal(f"the host of this device offers no {service.partition(':')[0][:32]!r}")
            sock = self.device.adb.open(service, Deadline(OPEN_TIMEOUT_S))
        except (AdbRefusal, Failure, OSError) as error:
            reason = str(error).encode()[:LONGEST_REQUEST_BYTES]
            connection.sendall(b"FAIL%04x%b" % (len(reason), reason))
            return None
        connection.sendall(b"OKAY")
        return sock

    def _pump(self, here: socket.socket, other: socket.socket) -> None:
        with self.lock:
            if self.ended.is_set():
                return
            self.streams |= {here, other}
        for sock in (here, other):
            sock.settimeout(None)  # a stream may be silent for as long as an inference lasts
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_copy, args=(other, here), daemon=True)
        back.start()
        _copy(here, other)
        back.join()
        with self.lock:
            self.streams -= {here, other}

    def _cut_all(self) -> None:
        with self.lock:
            self.ended.set()
            for sock in self.streams:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


def _request(connection: socket.socket) -> str:
    """Return what a client of adb asks for: four hex digits, then a text."""
    deadline = Deadline(handshake.DEADLINE_S)
    size = int(receive(connection, 4, deadline), 16)
    return receive(connection, size, deadline).decode()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy until one of the two ends, then end both."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            sink.sendall(data)
    for sock in (source, sink):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _keep_alive(connection: socket.socket) -> None:
    """Let the kernel notice within half a minute that a client's host is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
