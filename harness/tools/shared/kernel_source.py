"""The source of an artifact's kernels, piece by piece."""

from __future__ import annotations

import re

_BEGINNING = re.compile(r"^// Function: (\w+)$", re.MULTILINE)
"""Before each kernel. TVM's runtime, too, cuts the source after it, and hands the device one piece at a time."""


def pieces(source: str) -> dict[str, str]:
    """Return the source that the device compiles, by kernel.

    Lines count as in the device's build log.
    """
    beginnings = list(_BEGINNING.finditer(source))
    ends = [*(match.start() for match in beginnings[1:]), len(source)]
    return {match[1]: source[match.end() + 1 : end] for match, end in zip(beginnings, ends, strict=True)}
