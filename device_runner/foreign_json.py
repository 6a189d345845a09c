"""JSON that others wrote: a file, a device, another host. Read within bounds."""

from __future__ import annotations

import json
from typing import Any

MOST_VALUES = 1_000_000
"""Most values of a text. Each takes some 100 bytes of memory, however few it takes in the text."""


def read_json(text: str | bytes) -> Any:
    """Return what a text holds. Raises ValueError if it is no JSON, holds too many values, or is nested too deep."""
    try:
        string = text if isinstance(text, str) else text.decode()
        if string.count(",") + string.count("[") + string.count("{") > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES} values")
        return json.loads(string)
    except RecursionError:
        raise ValueError("nested too deep") from None
