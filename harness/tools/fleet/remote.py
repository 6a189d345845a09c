"""Devices of other hosts: which are offered through a TVM RPC tracker, and how one is used as if it were ours."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from device_runner import installed_tvm
from device_runner.adb_device import AdbDevice, abi_of
from device_runner.deadline import Deadline
from device_runner.device import Rung
from device_runner.failures import DeviceBusy, DeviceLost, RigFailure
from device_runner.recovery.rungs import retry
from device_runner.registry import WAIT_FOR_DEVICE_S, UnknownDevice
from device_runner.rpc_server.tracker import (
    ANSWER_TIMEOUT_S,
    Address,
    Code,
    receive_json,
    send_json,
)
from device_runner.runtimes import probe
from device_runner.runtimes.phone import RuntimeStore, install
from device_runner.selection import ALL, Say, is_ready, labels_of, matches, parse_labels
from device_runner.transport.adb_transport import AdbTransport
from harness.tools.fleet import greeting
from harness.tools.fleet.offer import FIELD, PREFIX, Grant, Offer, entry_of, grant_of, offer_of
from harness.tools.fleet.tracker import address_of, connected, request

MEET_TIMEOUT_S = 10.0
TELL_TIMEOUT_S = 2.0

Tell = Callable[[str, str], None]


def offers(tracker: Address, *, timeout_s: float = ANSWER_TIMEOUT_S) -> list[Offer]:
    """Return what all hosts offer through a tracker, sorted by name. Raises `RigFailure` if there is no tracker."""
    with connected(tracker, timeout_s) as connection:
        answer = connection.ask(Code.SUMMARY, timeout_s=timeout_s)
        try:
            servers = answer[1]["server_info"]
            ours = [server.get(FIELD) for server in servers if str(server["key"]).startswith(f"server:{PREFIX}")]
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"it answered something else to SUMMARY ({error})") from error
    return sorted((offer for value in ours if (offer := offer_of(value))), key=lambda offer: offer.name)


@dataclass(frozen=True)
class RemoteDevices:
    """The devices behind one tracker, for workers (`device_runner.workers.DeviceSource`)."""

    tracker: Address

    @classmethod
    def at(cls, address: str) -> RemoteDevices:
        """Return the devices behind the tracker at HOST:PORT. Raises UsageError."""
        return cls(address_of(address))

    def names(self, texts: Sequence[str], cache: Path, say: Say) -> list[str]:
        """Resolve names and labels to names of workers. Raises `UnknownDevice`, RigFailure.

        Such a name holds the key that is asked for: which of its devices a tracker gives out is not known before.
        """
        chosen = select_offers(texts, offers(self.tracker), say)
        return [f"{offer.key} #{number}" for number, offer in enumerate(chosen, 1)]

    def open(self, name: str, cache: Path, say: Say) -> AbstractContextManager[tuple[AdbDevice, Tell]]:
        """Hold the next free device of the key in a worker's name. Raises as `open_remote` does."""
        return open_remote(tracker_key(name), self.tracker, cache, timeout_s=WAIT_FOR_DEVICE_S, say=say)


def tracker_key(worker: str) -> str:
    """Return the key in the name of a worker."""
    return worker.rpartition(" #")[0]


def select_offers(texts: Sequence[str], offers: Sequence[Offer], say: Say = lambda _: None) -> list[Offer]:
    """Return the free devices of other hosts that are meant. Raises `UnknownDevice` if one of `texts` matches none.

    A tracker gives out any device of an identity, so a name means one that is as good as the one of that name.
    """
    ready = [offer for offer in offers if is_ready(entry_of(offer), say)]
    matches_by_name: dict[str, Offer] = {}
    for text in texts:
        labels = {} if text == ALL else (parse_labels(text) or {"name": text})
        meant = [offer for offer in ready if matches(labels_of(entry_of(offer), offer.identity), labels)]
        if not meant:
            there = ", ".join(f"{offer.name} ({'busy' if offer.used_by else offer.identity.soc})" for offer in offers)
            raise UnknownDevice(f"no free device at the tracker matches {text!r}", hint=f"there are: {there or 'none'}")
        matches_by_name.update((offer.name, offer) for offer in meant)
    return list(matches_by_name.values())


@contextmanager
def open_remote(
    key: str, tracker: Address, cache: Path, *, timeout_s: float, say: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[AdbDevice, Tell]]:
    """Hold the next free device of a key, wherever it is. Yields it and a way to tell its host what is done on it.

    Raises `DeviceBusy` if none is free within `timeout_s`, `RigFailure` if tracker or host cannot be used.
    """
    address, match_key = request(tracker, key, timeout_s)
    control = _call(address, match_key)
    with control:
        grant = _grant(control, address)
        say(f"got {grant.offer.name}")
        transport = RemoteTransport(grant.serial, 0, grant.root, address=address, token=grant.token)
        name, identity = grant.offer.name, grant.offer.identity
        program, runtime = _program(grant, transport, cache)
        make_probe = partial(probe.library, cache, identity.abi)
        remote = RemoteDevice(
            name, transport, program, make_probe, kind=identity.kind, emulated=identity.emulated, runtime=runtime
        )
        with closing(remote) as device:
            yield device, _teller(control)


@dataclass(frozen=True)
class RemoteTransport(AdbTransport):
    """Reaches a device through the host that offers it. The serial is that host's."""

    address: Address = ("", 0)
    token: str = ""

    def _connect(self, deadline: Deadline) -> socket.socket:
        try:
            sock = socket.create_connection(self.address, max(deadline.remaining_s, 0.001))
        except OSError as error:
            where = f"{self.address[0]}:{self.address[1]}"
            raise DeviceLost(f"the host {where} of device {self.serial} does not answer: {error}") from error
        try:
            greeting.call(sock, self.token, deadline)
        except greeting.HandshakeFailure as refused:
            sock.close()
            message = f"the host of device {self.serial} gave it to somebody else: {refused}"
            raise DeviceLost(message) from refused
        except BaseException:
            sock.close()
            raise
        return sock

    def _choose_device(self, sock: socket.socket, deadline: Deadline) -> None:
        """Do nothing: the host knows which device it lent."""


class RemoteDevice(AdbDevice):
    """A device of another host."""

    @property
    def rungs(self) -> Sequence[Rung]:
        """Only wait for it: its adb server belongs to its host."""
        return [retry(self.transport)]


def _call(address: Address, match_key: str) -> socket.socket:
    where = f"{address[0]}:{address[1]}"
    try:
        control = socket.create_connection(address, MEET_TIMEOUT_S)
    except OSError as error:
        hint = "does its `adreno-bench fleet serve` name a --host that is reached from here?"
        raise RigFailure(f"the host {where} that the tracker names does not answer: {error}", hint=hint) from error
    try:
        greeting.call(control, match_key, Deadline(MEET_TIMEOUT_S))
    except greeting.HandshakeFailure as refused:
        control.close()
        raise DeviceBusy(
            f"the host {where} has given its device to another client: {refused}", hint="try again"
        ) from None
    except OSError as error:
        control.close()
        raise RigFailure(f"the host {where} that the tracker names hung up: {error}") from error
    return control


def _grant(control: socket.socket, address: Address) -> Grant:
    try:
        grant = grant_of(receive_json(control, Deadline(MEET_TIMEOUT_S)))
    except (OSError, ValueError) as error:
        message = f"the host {address[0]}:{address[1]} does not say what it offers"
        raise RigFailure(message, hint="do both hosts have the same adreno-bench?", evidence=str(error)) from error
    return grant


def _program(grant: Grant, transport: RemoteTransport, cache: Path) -> tuple[Sequence[str], str]:
    """Return the command that starts TVM's RPC server there, and the hash of the runtime pushed for it."""
    if grant.offer.identity.kind != "virtual":
        runtime = RuntimeStore(cache).runtime_for(abi_of(transport))
        return install(transport, runtime.folder, runtime.preload), runtime.digest
    if grant.tvm != (here := installed_tvm.stated_version("tvm")):
        message = f"{grant.offer.name} is a virtual device with TVM {grant.tvm}, here is {here}"
        raise RigFailure(message, hint="install the same on both hosts")
    return ["tvm_rpc"], ""


def _teller(control: socket.socket) -> Tell:
    def tell(case: str, step: str) -> None:
        with suppress(OSError):  # a host that is gone is met by the next thing that is done on the device
            send_json(control, (case, step), Deadline(TELL_TIMEOUT_S))

    return tell
