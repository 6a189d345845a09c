"""An RPC server that answers as an honest one did, up to a step, and then as it is told to.

Arguments: a folder with the honest answers, `server`, and the flags of TVM's server. In the folder, `manner` has the
number of the answer at which it turns (0 is the greeting) and how; `served` appears if the client served it. Without
`answers` there, it starts the honest server of the command in `honest`, leads its client there, and writes them down.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HUGE = 10_000_000_000
RETURN, EXCEPTION = 4, 5


def packet(form: str, *fields: float) -> bytes:
    """A packet with its size before it."""
    return struct.pack("<Q", struct.calcsize(form)) + struct.pack(form, *fields)


def half(connection: socket.socket, answer: bytes) -> None:
    """The beginning of the right answer."""
    connection.sendall(answer[: len(answer) // 2])
    sys.exit()


def drip(connection: socket.socket, answer: bytes) -> None:
    """One byte a second."""
    for byte in answer:
        connection.sendall(bytes([byte]))
        time.sleep(1)


def endless(connection: socket.socket, answer: bytes) -> None:
    """The right answer, and again, and again."""
    while True:
        connection.sendall(answer * (1 + 65536 // len(answer)))


def huge(connection: socket.socket, _: bytes) -> None:
    """10 GB, and all of them."""
    connection.sendall(struct.pack("<Qii", HUGE, RETURN, 1))
    while True:
        connection.sendall(bytes(1 << 20))


def serve(connection: socket.socket, _: bytes) -> None:
    """A call of the client's own functions: `InitServer`, which an honest client never answers."""
    version = b"0.8.0"
    connection.sendall(packet(f"<iQ{len(version)}si", 2, len(version), version, 0))  # type: ignore[arg-type]
    size, code = struct.unpack("<Qi", receive(connection, 12))
    if size and code in (RETURN, EXCEPTION):
        (FOLDER / "served").touch()


def say(data: bytes) -> Callable[[socket.socket, bytes], None]:
    """Send this."""
    return lambda connection, _: connection.sendall(data)


MANNERS: dict[str, Callable[[socket.socket, bytes], None]] = {
    "close": lambda connection, _: connection.shutdown(socket.SHUT_RDWR),
    "exit": lambda connection, _: sys.exit(),
    "silence": lambda connection, _: time.sleep(600),
    "half": half,
    "drip": drip,
    "endless": endless,
    "huge": huge,
    "serve": serve,
    "other protocol": say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "zeros": say(bytes(64)),
    "ones": say(b"\xff" * 64),
    "nothing thrown": say(packet("<ii", EXCEPTION, 0)),
    "nothing returned": say(packet("<ii", RETURN, 0)),
    "many values": say(packet("<ii", RETURN, 1 << 30)),
    "foreign pointer": say(packet("<iiiQ", RETURN, 1, 68, 0x4141414141414141)),
    "tensor as value": say(packet("<iiiqiQiiiBBHQ", RETURN, 2, 1, 7, 7, 4096, 1, 0, 0, 2, 32, 1, 0)),
    "long text": say(packet("<iiiqiQ", RETURN, 2, 1, 9, 9, HUGE)),
    "large tensor": say(packet("<iiiqiQiiiBBHqQiQ", RETURN, 3, 1, 70, 7, 1, 1, 0, 1, 2, 32, 1, 1 << 40, 0, 4, 1)),
}


def receive(connection: socket.socket, size: int) -> bytes:
    """So many bytes."""
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            sys.exit()
        data += piece
    return bytes(data)


def packets(data: bytes) -> Iterator[bytes]:
    """What a server sent, in pieces: the greeting, then each answer."""
    at = 8 + struct.unpack_from("<i", data, 4)[0]
    yield data[:at]
    while at < len(data):
        end = at + 8 + struct.unpack_from("<Q", data, at)[0]
        yield data[at:end]
        at = end


def record(client: socket.socket) -> None:
    """Lead the client to an honest server, and write down what that says."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    flags = ["server", "--host=127.0.0.1", f"--port={port}", f"--port-end={port + 1}"]
    flags += [word for word in sys.argv if word.startswith("--work-dir=")]
    subprocess.Popen([*json.loads((FOLDER / "honest").read_text()), *flags])
    while True:
        try:
            server = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    threading.Thread(target=pump, args=(client, server, Path(os.devnull)), daemon=True).start()
    pump(server, client, FOLDER / "answers")


def pump(source: socket.socket, sink: socket.socket, notes: Path) -> None:
    """Pass on what one end says, and write it down."""
    with notes.open("ab") as file:
        while data := source.recv(1 << 20):
            file.write(data)
            file.flush()
            sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def main() -> None:
    """Meet one client."""
    (port,) = (int(word.partition("=")[2]) for word in sys.argv if word.startswith("--port="))
    connection, _ = socket.create_server(("127.0.0.1", port)).accept()
    if not (FOLDER / "answers").exists():
        record(connection)
        return
    step, manner = (FOLDER / "manner").read_text().split(maxsplit=1)
    answers = list(packets((FOLDER / "answers").read_bytes()))
    for number, answer in enumerate(itertools.chain(answers, itertools.repeat(answers[-1]))):
        if number:
            receive(connection, struct.unpack("<Q", receive(connection, 8))[0])
        else:
            receive(connection, struct.unpack("<ii", receive(connection, 8))[1])
        if number == int(step):
            MANNERS[manner](connection, answer)
            time.sleep(600)
        connection.sendall(answer)


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    main()
