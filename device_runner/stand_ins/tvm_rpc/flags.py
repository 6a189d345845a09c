"""The server's command line as TVM's reads it: `--name=value` alone, the first of a name, and unknown ones passed over.

Source: apache/tvm, apps/cpp_rpc/main.cc.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from device_runner.rpc_server import KEY_VARIABLE
from device_runner.rpc_server.tracker import Address

USAGE = """tvm_rpc server [--host=ADDRESS] [--port=9090] [--port-end=9099] [--tracker=HOST:PORT] [--key=KEY]
  [--custom-addr=ADDRESS] [--work-dir=FOLDER] [--silent]"""
MAX_PORT = 65535


class WrongFlag(Exception):
    """A flag has no such value; the text is what the server says of it."""


@dataclass(frozen=True)
class Flags:
    """What the server was asked for."""

    host: str = "127.0.0.1"
    """TVM's default is every address; ours serves this one alone."""
    port: int = 9090
    port_end: int = 9099
    """The first port that is not tried any more."""
    tracker: Address | None = None
    key: str = ""
    custom_addr: str = ""
    """Address that the tracker gives to clients."""
    work_dir: Path | None = None
    """Uploads go to its `.cache`."""
    silent: bool = False
    """Has no effect, as in TVM's server."""

    def lines(self) -> list[str]:
        """Return the lines that the server begins its log with."""
        values = {**vars(self), "work_dir": self.work_dir or ""}
        texts = {name: "" if value is None else str(value) for name, value in values.items()}
        return [f"{name:<11} = {text}" for name, text in texts.items()]


def parse(arguments: Sequence[str]) -> Flags:
    """Return the flags of a command line. Raises WrongFlag."""
    texts = {name: _value(arguments, f"--{name.replace('_', '-')}=") for name in _READERS}
    read = {name: _READERS[name](text) for name, text in texts.items() if text}
    return Flags(**read, silent=any(argument.startswith("--silent") for argument in arguments))


def with_secret_key(flags: Flags) -> Flags:
    """Return the flags with the key that the environment has, if it has one.

    What this process starts does not get it.
    """
    return replace(flags, key=os.environ.pop(KEY_VARIABLE, flags.key))


def _value(arguments: Sequence[str], flag: str) -> str:
    return next((argument[len(flag) :] for argument in arguments if argument.startswith(flag)), "")


def _address(text: str, complaint: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise WrongFlag(complaint) from None


def _number(text: str, complaint: str) -> int:
    if not text.isdecimal() or int(text) > MAX_PORT:
        raise WrongFlag(complaint)
    return int(text)


def _tracker(text: str, complaint: str) -> Address:
    host, _, port = text.rpartition(":")
    return _address(host, complaint), _number(port, complaint)


_READERS: dict[str, Callable[[str], Any]] = {
    "host": partial(_address, complaint="Wrong host address format."),
    "port": partial(_number, complaint="Wrong port number."),
    "port_end": partial(_number, complaint="Wrong port-end number."),
    "tracker": partial(_tracker, complaint="Wrong tracker address format."),
    "key": str,
    "custom_addr": partial(_address, complaint="Wrong custom address format."),
    "work_dir": Path,
}
