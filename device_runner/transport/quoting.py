"""The one place that turns arguments into shell text.

Nothing else in this package may import `shlex`, because what is quoted in many places is forgotten in one
(tests/unit/device_runner/transport/test_quoting.py).
"""

from __future__ import annotations

import shlex


def quoted(*arguments: str) -> str:
    """Text that a shell (POSIX, so mksh and toybox too) takes for exactly these arguments, whatever is in them."""
    return shlex.join(arguments)
