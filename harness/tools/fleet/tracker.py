"""A TVM RPC tracker, as this program asks it: where it is, which devices it has, and the next free one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from device_runner.failures import DeviceBusy, RigFailure
from device_runner.rpc_server.tracker import ANSWER_TIMEOUT_S, Address, Code, Connection
from harness.base.failures import UsageError


def address_of(text: str) -> Address:
    """Parse `HOST:PORT`. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(f"{text!r} is not HOST:PORT", hint="for instance 127.0.0.1:9190")
    return host.strip("[]"), int(port)


@contextmanager
def connected(address: Address, timeout_s: float = ANSWER_TIMEOUT_S) -> Iterator[Connection]:
    """Yield a connection for as long as the context. Raises `RigFailure` in one line if there is no tracker."""
    where = f"the TVM RPC tracker at {address[0]}:{address[1]}"
    try:
        connection = Connection(address, timeout_s)
    except (OSError, ValueError) as error:
        host, port = address
        hint = f"start one: `python -m tvm.exec.rpc_tracker --host {host} --port {port} --port-end {port + 1}`"
        raise RigFailure(f"{where} does not answer: {error or 'too late'}", hint=hint) from error
    try:
        yield connection
    except TimeoutError as error:
        raise RigFailure(f"{where} did not answer in time") from error
    except (OSError, ValueError) as error:
        raise RigFailure(f"{where} cannot be used: {error}") from error
    finally:
        connection.close()


def request(address: Address, key: str, timeout_s: float) -> tuple[Address, str]:
    """Return the next free server of a key, waited for: where it is, and what to name there.

    Raises `DeviceBusy` if none is free within `timeout_s`, `RigFailure` if there is no tracker.
    """
    with connected(address) as tracker:
        try:
            code, (host, port, match_key) = tracker.ask(Code.REQUEST, key, "", 1, timeout_s=timeout_s)
        except TimeoutError:
            raise DeviceBusy(f"no device of {key} became free within {timeout_s:g} s") from None
        except TypeError as error:
            raise ValueError(f"it answered something else to REQUEST ({error})") from error
        if code != Code.SUCCESS:
            raise ValueError(f"it answered {code!r:.80} to REQUEST")
        return (str(host), int(port)), str(match_key)
