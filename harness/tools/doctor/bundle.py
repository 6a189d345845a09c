"""A report to attach to a bug: what the doctor found and what the device prints, without anything that names its owner.

Only properties of a list of harmless ones are taken, because nobody knows what makers put into the others. Serial
numbers, accounts, addresses and names of this host are cut out of what is left.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from device_runner.failures import Failure
from harness.tools.shared.finding import DoctorFinding

HARMLESS = re.compile(
    r"ro\.(product\.(model|device|name|brand|manufacturer|board|cpu\..*)|soc\..*|board\.platform|hardware(\..*)?"
    r"|build\.version\..*|build\.(fingerprint|type|id)|vendor\.build\.fingerprint|opengles\.version)"
)
SERIALS = re.compile(r"ro\.(boot\.)?serialno|ro\.ril\.oem\..*|.*(imei|meid|mac_?addr).*", re.IGNORECASE)

PATTERNS = {
    "account": re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    "mac": re.compile(r"\b[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}\b"),
    "address": re.compile(r"\b(?!127\.0\.0\.1\b)\d{1,3}(?:\.\d{1,3}){3}\b"),
    "imei": re.compile(r"\b\d{15}\b"),
}
SHORTEST_SECRET = 4
"""Cutting out a shorter name would take half of the report with it."""

PAGE_LIMIT = 20_000


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without these words, and without what looks like an account, an address or a serial number."""
    for secret in sorted({word for word in secrets if len(word) >= SHORTEST_SECRET}, key=len, reverse=True):
        text = re.sub(re.escape(secret), "<removed>", text, flags=re.IGNORECASE)
    for name, pattern in PATTERNS.items():
        text = pattern.sub(f"<{name}>", text)
    return text


def write_bundle(file: Path, name: str, findings: Sequence[DoctorFinding], cache: Path) -> None:
    """Write the report on a device. Raises OSError if the file cannot be written."""
    secrets = [name, *_host_names()] if name not in ("virtual", "local") else _host_names()
    sections = [
        ("versions", _versions()),
        ("host", f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}"),
        ("findings", "\n".join(f"{f.state.value:8}{f.what:18}{f.seen}" for f in findings)),
    ]
    try:
        pages, serials = _device_pages(name, cache)
    except Failure as failure:
        pages, serials = [("device", str(failure))], []
    text = "\n".join(f"== {title}\n{body.strip()[:PAGE_LIMIT]}\n" for title, body in (*sections, *pages))
    file.write_text(redacted(text, [*secrets, *serials]), encoding="utf-8")


def _versions() -> str:
    from harness.compile.compiler.releases import HARNESS, harness_version, versions

    try:
        return "\n".join(f"{what} {release}" for what, release in ({HARNESS: harness_version()} | versions()).items())
    except Failure as failure:
        return str(failure)


def _device_pages(name: str, cache: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Return what the device prints, and its serial numbers."""
    from device_runner.adb_device import AdbDevice, properties
    from device_runner.registry import open_device
    from device_runner.stability.sources import BOOT

    with open_device(name, cache, timeout_s=0, runtime=False) as device:
        if not isinstance(device, AdbDevice):
            return [], []
        values, serial = properties(device.transport), device.transport.name
        harmless = "\n".join(f"{key} {value}" for key, value in values.items() if HARMLESS.fullmatch(key))
        texts = device.keeper.sources.read()
        pages = [("properties", harmless), *((source, text) for source, text in texts.items() if source != BOOT)]
        numbers = [value for key, value in values.items() if SERIALS.fullmatch(key)]
        return pages, [serial, serial.rpartition(":")[0], *numbers]


def _host_names() -> list[str]:
    """Return the texts in paths and messages that identify the user."""
    names = [platform.node(), str(Path.home())]
    with suppress(OSError, KeyError, ImportError):  # a user id without a name
        names.append(getpass.getuser())
    return [name for name in names if name.strip("/") != "root"]
