"""What a machine's kernel calls its chip and its board: the same files on a phone and on a Linux board.

Sources: Linux drivers/base/soc.c and drivers/soc/qcom/socinfo.c for `soc0`; the property `model` of a device tree's
root. `soc0/serial_number` is left alone: it names one owner's phone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from device_runner.transport.batch import run_batch
from device_runner.transport.quoting import quoted

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

CHIP = ("machine", "family", "soc_id", "revision")
LONGEST = 120
"""Characters that are kept of either."""


def chip_and_board(transport: Transport, system: str = "") -> dict[str, Any]:
    """`chip` and `board` as `Identity` has them, each empty if the machine does not tell.

    `system` is where `/sys` begins. Raises `DeviceFailure` or `RigFailure` if the machine does not answer.
    """
    texts = {
        "chip": f"{quoted('cd', f'{system}/sys/devices/soc0')} && {quoted('cat', *CHIP)}",
        "board": quoted("cat", f"{system}/sys/firmware/devicetree/base/model"),
    }
    answers = run_batch(transport, {name: f"{{ {text}; }} 2>/dev/null" for name, text in texts.items()})
    return {name: one_line(answer.text) for name, answer in answers.items()}


def one_line(text: str) -> str:
    """One line of printable words; texts of a device tree end with NUL."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:LONGEST]
