"""Fields of records of schema 1, which had no parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED = {"ramp_ms": "warm_up_ms", "settled": "warmed_up"}
"""Former names of fields."""
MOVED: Mapping[str, Mapping[str, str]] = {
    "sampling": {name: name for name in ("warm_up_ms", "warmed_up", "inferences")},
    "reference": {"reference": "kernel", "reference_ms": "ms", "slowed_ms": "slowed_ms"},
    "batches": {name: name for name in ("batch", "batched_ms", "synced_ms", "launches")},
    "memory": {"peak_memory_bytes": "process_bytes", "peak_gpu_memory_bytes": "gpu_bytes"},
}
"""By part: the fields that went there, and their names in it. Those in `_ms` are lists."""
WHOLE = ("witness", "top_one", "offload", "sustained")
"""Fields that are parts as they were."""


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record of schema 1 as schema 2 has them."""
    fields = {RENAMED.get(name, name): value for name, value in record.items()}
    parts = {name: fields.pop(name, None) for name in WHOLE}
    for part, names in MOVED.items():
        moved = {new: fields.pop(old, [] if old.endswith("_ms") else None) for old, new in names.items()}
        parts[part] = moved if any(moved.values()) else None
    codes, identity = fields.pop("isa", None), fields.get("identity")
    parts["isa"] = {"codes": codes} if codes else None
    of_no_run = isinstance(identity, dict) and identity.get("kind") == "compiler"
    alone = parts["sustained"] is not None or of_no_run
    return {**fields, "schema": 2, "standalone": alone, "parts": {n: part for n, part in parts.items() if part}}
