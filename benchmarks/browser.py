"""Chromium without a window, spoken to through a pipe in the protocol of its developer tools: no port, no driver.

Source: https://chromedevtools.github.io/devtools-protocol/ and `--remote-debugging-pipe` of Chromium, which reads file
descriptor 3 and writes 4; messages are JSON that a zero byte ends.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

NAMES = ("chromium", "chromium-headless-shell", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
DEADLINE_S = 30.0
LOADED = "document.readyState === 'complete'"


class BrowserError(Exception):
    """The browser ended, did not answer in time, or could not do what it was asked."""


@dataclass
class Page:
    """One page. `complaints` are the errors and warnings of its console."""

    reading: int
    writing: int
    process: int
    """The browser's process id."""
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _last: int = 0
    _unread: bytes = b""

    def open(self, file: Path, width_px: int, height_px: int, *, touch: bool = False) -> None:
        """Show a file in a window of this size, and wait until it is loaded."""
        size = {"width": width_px, "height": height_px, "deviceScaleFactor": 1, "mobile": touch}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        told = self.call("Page.navigate", url=file.resolve().as_uri())
        if "errorText" in told:
            raise BrowserError(f"{file}: {told['errorText']}")
        self.wait_for(f"location.pathname.endsWith('/{file.name}') && {LOADED}")

    def ask(self, expression: str) -> Any:
        """Return what a JavaScript expression comes to, a promise's result included."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise BrowserError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until an expression is true."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.ask(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"not within {DEADLINE_S:g} s: {expression}")
            time.sleep(0.02)

    def picture(self, file: Path) -> None:
        """Return a picture of the window, as PNG."""
        told = self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(told["data"]))

    def cpu_s(self) -> float:
        """Processor time that the browser's processes took so far: tells more than a clock where others work, too."""
        own = psutil.Process(self.process)
        times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
        return sum(time.user + time.system for time in times)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._last:
                if "error" in heard:
                    raise BrowserError(f"{method}: {heard['error']['message']}")
                result: dict[str, Any] = heard["result"]
                return result
            self._note(heard)

    def _hear(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self.reading], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self.reading, 1 << 20) if ready else b""
            if not piece:
                raise BrowserError("the browser ended" if ready else f"no answer within {DEADLINE_S:g} s")
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        heard: dict[str, Any] = json.loads(message)
        return heard

    def _note(self, heard: dict[str, Any]) -> None:
        told = heard.get("params", {})
        if heard.get("method") == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif heard.get("method") == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.complaints.append(" ".join(str(one.get("value")) for one in told["args"]))
        elif heard.get("method") == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])


@contextmanager
def browser(home: Path) -> Iterator[Page]:
    """Yield a browser with one empty page; its files go to `home`. Raises BrowserError where none is installed."""
    if PROGRAM is None:
        raise BrowserError(f"none of {', '.join(NAMES)} is installed")
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={home}"]
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", PROGRAM, *flags],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        os.close(to_browser)
        os.close(from_browser)
        yield _first_page(Page(reading, writing, process.pid))
    finally:
        os.close(writing)
        os.close(reading)
        process.kill()
        process.wait()


def _first_page(page: Page) -> Page:
    target = page.call("Target.createTarget", url="about:blank")["targetId"]
    page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        page.call(f"{domain}.enable")
    return page
