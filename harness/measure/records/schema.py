"""Records of schema 1, which had no parts: the one place that knows their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED = {"ramp_ms": "warm_up_ms", "settled": "warmed_up"}
"""Fields that had another name before."""
MOVED: Mapping[str, Mapping[str, str]] = {
    "sampling": {name: name for name in ("warm_up_ms", "warmed_up", "inferences")},
    "reference": {"reference": "kernel", "reference_ms": "ms", "slowed_ms": "slowed_ms"},
    "batches": {name: name for name in ("batch", "batched_ms", "synced_ms", "launches")},
    "memory": {"peak_memory_bytes": "process_bytes", "peak_gpu_memory_bytes": "gpu_bytes"},
}
"""By part: the fields that went there, and their names in it."""
WHOLE = ("witness", "top_one", "offload", "sustained")
"""Fields that are parts as they were."""


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record of schema 1 as schema 2 has them."""
    fields = {RENAMED.get(name, name): value for name, value in record.items()}
    parts = {name: _moved(fields, names) for name, names in MOVED.items()}
    parts |= {name: fields.pop(name, None) for name in WHOLE}
    codes, identity = fields.pop("isa", None), fields.get("identity")
    parts |= {"isa": {"codes": codes} if codes else None}
    compiled_only = isinstance(identity, dict) and identity.get("kind") == "compiler"
    standalone = parts["sustained"] is not None or compiled_only
    return {**fields, "schema": 2, "standalone": standalone, "parts": {n: part for n, part in parts.items() if part}}


def _moved(fields: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any] | None:
    """Take these fields out; None if they say nothing."""
    part = {new: fields.pop(old) for old, new in names.items() if old in fields}
    return part if any(value not in (None, "", []) for value in part.values()) else None
