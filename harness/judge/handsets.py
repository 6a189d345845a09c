"""Handsets of one model: their keys say that they are, and no latency of one is held to another's."""

from __future__ import annotations

import re
from collections.abc import Iterable

_HANDSET = re.compile(r"^(phone-.+-[0-9a-f]{8})-[0-9a-f]{5}$")


def model_of(identity_key: str) -> str:
    """An identity's key without its handset: the same for all phones of one model, driver and ROM."""
    return _HANDSET.sub(r"\1", identity_key)


def of_one_model(some: Iterable[str], others: Iterable[str]) -> str:
    """What to say of two sides' identity keys that differ in the handset alone; empty if there are none."""
    models = {model_of(key) for key in some} & {model_of(key) for key in others}
    return f"{', '.join(sorted(models))} ran on two handsets, which are two series" if models else ""
