"""What a phone itself knows of a crash: what its own crash handler wrote, and how often its GPU was reset.

Android's handler writes a backtrace of a process that dies of its own fault into a log of its own (`logcat -b crash`;
AOSP system/core, debuggerd), which says more than the exit code that arrives here. One that was killed leaves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from device_runner.failures import EVIDENCE_LIMIT_BYTES, DeviceCrash, Failure, Hang, ProgramFailure

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

ASK_TIMEOUT_S = 5.0
CRASH_BYTES = EVIDENCE_LIMIT_BYTES // 2
"""How much of the crash log is kept: its end. The other half of the evidence is the server's own log."""
MARGIN_S = 2
"""The log is asked from so much before the session on: a time in whole seconds is cut off."""

SCRIPT = """
read -r resets <"$2" && echo "GPU resets since the phone booted: $resets$3"
command -v logcat >/dev/null || exit 0
crashes=$(logcat -b crash -d -T "$(($(date +%s) - $1)).0" | tail -c "$4")
[ "$crashes" ] && echo "the phone's crash log since this session began:
$crashes"
exit 0
"""
"""Arguments: seconds since the session began, the node that counts resets, what is known of it, bytes of the log. The
time is by the phone's own clock, as those in its log are; logcat takes seconds with a fraction since Android 7."""


@contextmanager
def explained(transport: Transport, reset_count: str, resets_before: Callable[[], int | None]) -> Iterator[None]:
    """Add to the evidence of a crash, a hang or a program's error what the phone knows of it.

    `reset_count` is the kernel's node, `resets_before` tells what it said last.
    """
    began_s = time.monotonic()
    try:
        yield
    except (DeviceCrash, Hang, ProgramFailure) as failure:
        with suppress(Failure):  # a phone that is gone knows nothing
            seconds = int(time.monotonic() - began_s) + MARGIN_S
            before = resets_before()
            known = "" if before is None else f" ({before} when it was looked at last)"
            arguments = [str(seconds), reset_count, known, str(CRASH_BYTES)]
            command = ["sh", "-c", SCRIPT, "read its crash log", *arguments]
            _add(failure, transport.shell(command, timeout_s=ASK_TIMEOUT_S).stdout)
        raise


def _add(failure: Failure, told: str) -> None:
    told = told.strip()[-CRASH_BYTES:]
    if told:
        failure.evidence = f"{failure.evidence[-(EVIDENCE_LIMIT_BYTES - len(told) - 1) :]}\n{told}".strip()
