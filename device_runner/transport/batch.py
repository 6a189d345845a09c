"""Several small commands in one round trip: a script that says after each what it printed and how it ended.

A round trip to a phone costs tens of milliseconds, a command in a script a few. Each command has a deadline of its own,
so that one that hangs spoils no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from device_runner.transport.quoting import quoted

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

EACH_S = 5
START_S = 10
TOO_LATE = 124
"""The exit code of a command that did not end in time, as `timeout` says it."""
TEXT_LIMIT = 65_536
"""Characters kept of what one command printed."""

MARK = "@adreno-bench"
_EXCEPTION = re.compile(r"(Caused by: )?([a-z]\w*\.)+\w*(Exception|Error)\b")
_SECTION = re.compile(rf"^{MARK} (\S+)\n(.*?)\n{MARK} (\d+)$", re.MULTILINE | re.DOTALL)

# The command's shell tells its code itself, through a pipe: `timeout` of toybox 0.8.8 and 0.8.9, which Android releases
# of 2023 are made of, says 127 of a command that ends before it has noted whom it waits for (mended in acac56a2).
# That of Android 11 ends its child alone. What the child has started, an `su` that waits for its dialog, would hold the
# output open: the child ends its whole group, which `setsid` made. Shells report the dead on their own standard error.
_LIMITED = f"""limited() {{
  group= limit=
  command -v timeout >/dev/null && limit="timeout {EACH_S}" && command -v setsid >/dev/null && group=setsid
  {{ code=$($group $limit sh -c '[ -z "$2" ] || trap "kill -s KILL 0" TERM
exec 2>/dev/null
(eval "$1") 2>&1 3>&- &
wait $!; echo $? >&3' sh "$1" "$group" 3>&1 >&4 2>&4 4>&-); }} 4>&1 2>/dev/null
  return "${{code:-{TOO_LATE}}}"
}}"""


@dataclass(frozen=True)
class BatchAnswer:
    """What one command of a batch printed on both streams, and its exit code."""

    text: str = ""
    code: int = 255
    """255 also for a command that the device said nothing of."""

    @property
    def complaint(self) -> str:
        """Why it failed, in one line: Java's exception, which stands above its stack, or the last line."""
        lines = self.text.strip().splitlines() or [f"exit code {self.code}"]
        return next(filter(_EXCEPTION.match, lines), lines[-1]).strip()[:200]


def run_batch(
    transport: Transport, commands: Mapping[str, str], *, shell: Sequence[str] = ("sh", "-c")
) -> dict[str, BatchAnswer]:
    """Run shell texts in order, by name, each whatever came of the others. Raises `DeviceFailure` or `RigFailure`.

    `shell` is what takes the script; `su -c` runs all of it as root.
    """
    if not commands:
        return {}
    lines = [_LIMITED]
    for name, text in commands.items():
        lines += [f"echo '{MARK} {name}'", f"limited {quoted(text)} </dev/null", f'echo "\n{MARK} $?"']
    timeout_s = START_S + EACH_S * len(commands)
    output = transport.shell([*shell, "\n".join(lines)], timeout_s=timeout_s).stdout
    answers = sections(output)
    return {name: answers.get(name, BatchAnswer()) for name in commands}


def sections(output: str) -> dict[str, BatchAnswer]:
    """Return what such a script printed, by the name of the command."""
    matches = _SECTION.findall(output.replace("\r\n", "\n"))
    return {name: BatchAnswer(text[:TEXT_LIMIT], int(code)) for name, text, code in matches}
