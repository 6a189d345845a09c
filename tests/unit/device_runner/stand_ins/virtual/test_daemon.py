"""The daemon as a host sees it on the wire: rules kept, rules broken, and garbage."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.stand_ins.virtual import daemon, faults, services
from device_runner.stand_ins.virtual.fault_file import FaultFile
from device_runner.stand_ins.virtual.faults import Faults
from device_runner.stand_ins.virtual.packet import (
    HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    VERSION,
    AdbCommand,
    Header,
    checksum,
    decode_header,
    encode_header,
)
from device_runner.stand_ins.virtual.transport import MAX_PENDING, Phone, Service, Stream, StreamRefused

ANSWER_DEADLINE_S = 20
VERSION_WITH_CHECKSUM = VERSION - 1


async def echo(stream: Stream) -> None:
    await stream.accept()
    while data := await stream.read():
        await stream.write(data)


async def deaf(stream: Stream) -> None:
    await stream.accept()
    await stream.closed.wait()


async def closed(stream: Stream) -> None:
    raise StreamRefused("closed")


async def broken(stream: Stream) -> None:
    raise ZeroDivisionError


HARMLESS: dict[str, Service] = {"echo": echo, "deaf": deaf, "closed": closed, "broken": broken}


def route(destination: str) -> Service | None:
    return services.find(destination) if destination.startswith("reverse:") else HARMLESS.get(destination)


class Host:
    """The host's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.check = False

    def say(self, command: AdbCommand, arg0: int = 0, arg1: int = 0, payload: bytes = b"") -> None:
        self.writer.write(encode_header(command, arg0, arg1, payload, check=self.check) + payload)

    async def hear(self) -> tuple[Header, bytes]:
        header = decode_header(await asyncio.wait_for(self.reader.readexactly(HEADER_BYTES), ANSWER_DEADLINE_S))
        return header, await self.reader.readexactly(header.length)

    async def expect(self, command: AdbCommand) -> tuple[Header, bytes]:
        header, payload = await self.hear()
        assert header.command is command
        return header, payload

    async def meet(self, version: int = VERSION) -> bytes:
        self.check = version < VERSION
        self.say(AdbCommand.CNXN, version, MAX_PAYLOAD_BYTES, b"host::features=shell_v2")
        return (await self.expect(AdbCommand.CNXN))[1]

    async def open(self, destination: str, local_id: int = 7) -> int:
        self.say(AdbCommand.OPEN, local_id, 0, destination.encode() + b"\0")
        return (await self.expect(AdbCommand.OKAY))[0].arg0

    async def is_dropped(self) -> bool:
        """Whether the daemon ends the connection, whatever it still says."""
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(self.reader.read(-1), ANSWER_DEADLINE_S)
        return True


class Daemon:
    def __init__(self, port: int, faults_path: Path) -> None:
        self.port = port
        self._faults_path = faults_path

    @contextlib.asynccontextmanager
    async def host(self) -> AsyncIterator[Host]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Host(reader, writer)
        finally:
            writer.transport.abort()

    async def is_well(self) -> bool:
        async with self.host() as host:
            await host.meet()
            remote = await host.open("echo")
            host.say(AdbCommand.WRTE, 7, remote, b"well")
            await host.expect(AdbCommand.OKAY)
            return (await host.expect(AdbCommand.WRTE))[1] == b"well"

    def inject(self, injected: Faults) -> None:
        faults.write(self._faults_path, injected)


Run = Callable[[Callable[[Daemon], Awaitable[object]]], object]


@pytest.fixture
def talk(tmp_path: Path) -> Run:
    """Runs a conversation with a fresh daemon that has only harmless services, and sees that it is well afterwards."""

    async def run(conversation: Callable[[Daemon], Awaitable[object]]) -> None:
        listener = daemon.listening_socket()
        phone = Phone(str(tmp_path), {}, FaultFile(tmp_path / "faults.json"), {"ro.product.model": "test"})
        serving = asyncio.create_task(daemon.serve(listener, phone, route))
        running = Daemon(listener.getsockname()[1], tmp_path / "faults.json")
        try:
            await conversation(running)
            running.inject(Faults())
            assert await running.is_well()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    return lambda conversation: asyncio.run(run(conversation))


def test_the_banner_names_product_and_features(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            banner = await host.meet()
        assert banner.startswith(b"device::ro.product.model=test;features=shell_v2,cmd,")
        assert b"delayed_ack" not in banner

    talk(conversation)


def test_an_old_host_gets_checksums(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet(VERSION_WITH_CHECKSUM)
            remote = await host.open("echo")
            host.say(AdbCommand.WRTE, 7, remote, b"sum me")
            await host.expect(AdbCommand.OKAY)
            header, payload = await host.expect(AdbCommand.WRTE)
            assert header.check == checksum(payload)

    talk(conversation)


def test_a_small_maxdata_is_respected(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            host.say(AdbCommand.CNXN, VERSION, 4, b"host::")
            await host.expect(AdbCommand.CNXN)
            remote = await host.open("echo")
            host.say(AdbCommand.WRTE, 7, remote, b"0123456789")
            await host.expect(AdbCommand.OKAY)
            pieces = []
            for _ in range(3):
                pieces.append((await host.expect(AdbCommand.WRTE))[1])
                host.say(AdbCommand.OKAY, 7, remote)
            assert pieces == [b"0123", b"4567", b"89"]

    talk(conversation)


def test_one_write_waits_for_the_answer_to_the_last(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            remote = await host.open("echo")
            for text in (b"first", b"second"):
                host.say(AdbCommand.WRTE, 7, remote, text)
                await host.expect(AdbCommand.OKAY)
                if text == b"first":
                    assert (await host.expect(AdbCommand.WRTE))[1] == text
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(host.hear(), 0.1)
            host.say(AdbCommand.OKAY, 7, remote)
            assert (await host.expect(AdbCommand.WRTE))[1] == b"second"

    talk(conversation)


def test_a_service_that_does_not_read_holds_its_sender_back(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            host.say(AdbCommand.WRTE, 7, await host.open("deaf"), b"unread")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(host.hear(), 0.1)

    talk(conversation)


def test_an_open_that_wants_delayed_answers_is_closed(talk: Run) -> None:
    """They were not announced."""

    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            host.say(AdbCommand.OPEN, 9, 1 << 20, b"echo\0")
            header, _ = await host.expect(AdbCommand.CLSE)
            assert (header.arg0, header.arg1) == (0, 9)

    talk(conversation)


def test_an_open_without_an_id_is_passed_over(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            host.say(AdbCommand.OPEN, 0, 0, b"echo\0")
            await host.open("echo", 8)

    talk(conversation)


@pytest.mark.parametrize("destination", ["closed", "broken", "unknown:service", "", "\udcff"])
def test_what_is_not_served_is_closed(talk: Run, destination: str) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            host.say(AdbCommand.OPEN, 9, 0, destination.encode("utf-8", "surrogateescape") + b"\0")
            header, _ = await host.expect(AdbCommand.CLSE)
            assert (header.arg0, header.arg1) == (0, 9)

    talk(conversation)


def test_of_late_answers_to_a_closed_stream_an_okay_is_told_that_it_is_closed(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            remote = await host.open("echo")
            for command in (AdbCommand.CLSE, AdbCommand.OKAY, AdbCommand.WRTE, AdbCommand.CLSE):
                host.say(command, 7, remote, b"late" if command is AdbCommand.WRTE else b"")
            header, _ = await host.expect(AdbCommand.CLSE)
            assert (header.arg0, header.arg1) == (remote, 7)
            await host.open("echo", 8)

    talk(conversation)


@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        encode_header(AdbCommand.OPEN, 1, 0, b"echo\0") + b"echo\0",
        encode_header(AdbCommand.CNXN, VERSION, 0, bytes(5000)) + bytes(5000),
        bytes(HEADER_BYTES),
    ],
    ids=["http", "open-before-connect", "huge-banner", "zeros"],
)
def test_a_wrong_opening_ends_the_connection(talk: Run, opening: bytes) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            host.writer.write(opening)
            assert await host.is_dropped()

    talk(conversation)


def test_a_host_that_closes_need_not_wait_with_its_last_data(talk: Run) -> None:
    heard = bytearray()

    async def record(stream: Stream) -> None:
        await stream.accept()
        await asyncio.sleep(0.05)
        while data := await stream.read():
            heard.extend(data)

    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            remote = await host.open("record")
            for text in (b"one", b"two", b"three"):
                host.say(AdbCommand.WRTE, 7, remote, text)
            host.say(AdbCommand.CLSE, 7, remote)
            await host.open("echo", 8)
            while len(heard) < 11:
                await asyncio.sleep(0.01)

    HARMLESS["record"] = record
    talk(conversation)
    assert heard == b"onetwothree"


def test_a_host_that_never_waits_is_dropped(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            remote = await host.open("deaf")
            for _ in range(MAX_PENDING + 1):
                host.say(AdbCommand.WRTE, 7, remote, b"more")
            assert await host.is_dropped()

    talk(conversation)


def test_a_wrong_checksum_ends_the_connection(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet(VERSION_WITH_CHECKSUM)
            host.check = False
            host.say(AdbCommand.OPEN, 7, 0, b"echo\0")
            assert await host.is_dropped()

    talk(conversation)


def test_unauthorised_turns_to_welcome(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        running.inject(Faults(unauthorized=True))
        async with running.host() as host:
            host.say(AdbCommand.CNXN, VERSION, MAX_PAYLOAD_BYTES, b"host::")
            for _ in range(2):
                header, token = await host.expect(AdbCommand.AUTH)
                assert (header.arg0, len(token)) == (1, 20)
                host.say(AdbCommand.AUTH, 2, 0, bytes(256))
            host.say(AdbCommand.AUTH, 3, 0, b"a public key")
            await host.expect(AdbCommand.AUTH)
            running.inject(Faults())
            await host.expect(AdbCommand.CNXN)

    talk(conversation)


def test_frozen_answers_nothing_until_it_thaws(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            running.inject(Faults(frozen=True))
            host.say(AdbCommand.OPEN, 7, 0, b"echo\0")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(host.reader.read(1), 0.2)
            running.inject(Faults())
            await host.expect(AdbCommand.OKAY)

    talk(conversation)


def test_offline_cuts_and_refuses(talk: Run) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            running.inject(Faults(offline=True))
            assert await host.is_dropped()
        async with running.host() as host:
            assert await host.is_dropped()

    talk(conversation)


packets = st.builds(
    lambda command, arg0, arg1, payload, check: encode_header(command, arg0, arg1, payload, check=check) + payload,
    st.sampled_from(AdbCommand),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from([b"echo\0", b"deaf\0", b"broken\0", b"", b"x" * 5000]) | st.binary(max_size=64),
    st.booleans(),
)
conversations = st.lists(packets | st.binary(max_size=40), max_size=12).map(b"".join)


@given(data=st.data())
def test_no_conversation_kills_the_daemon(talk: Run, data: st.DataObject) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            if data.draw(st.booleans()):
                await host.meet()
            host.writer.write(data.draw(conversations))
            host.writer.write_eof()
            assert await host.is_dropped()

    talk(conversation)


reverse_requests = st.tuples(
    st.sampled_from(["forward:", "list-forward", "killforward:", "killforward-all", ""]),
    st.sampled_from(["", "norebind:"]),
    st.sampled_from(["tcp:0", "tcp:-1", "tcp:99999999", "tcp:", "localabstract:x", ""])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.sampled_from(["", ";", ";tcp:1", ";x;y"]),
).map(lambda parts: "reverse:" + "".join(parts))


@given(requests=st.lists(reverse_requests, min_size=1, max_size=6))
def test_reverse_answers_every_request(talk: Run, requests: list[str]) -> None:
    async def conversation(running: Daemon) -> None:
        async with running.host() as host:
            await host.meet()
            for local_id, request in enumerate(requests, 1):
                host.say(AdbCommand.OPEN, local_id, 0, request.encode("utf-8", "surrogateescape") + b"\0")
                opened, _ = await host.expect(AdbCommand.OKAY)
                _, answer = await host.expect(AdbCommand.WRTE)
                assert answer[:4] in (b"OKAY", b"FAIL") or int(answer[:4], 16) == len(answer) - 4
                host.say(AdbCommand.OKAY, local_id, opened.arg0)
                await host.expect(AdbCommand.CLSE)

    talk(conversation)
