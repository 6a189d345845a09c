"""Whether a build with tuned schedules is another one than without them, by what the two builds themselves say.

The compiler says which functions took a record. That proves little: a record may be what TVM would have done anyway. So
the kernels of those functions are compared with the untuned build's, definition by definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from device_runner.failures import Failure
from harness.build.artifact import KERNELS, Artifact
from harness.paths.kernels import kernels

_KERNEL = re.compile(r"_kernel(_\d+)?$")


def facts_of(artifact: Artifact, untuned: object, sha256: str) -> dict[str, Any]:
    """What a record says of a build's schedules: which functions took one, whose kernels differ, and which did not."""
    told = artifact.compiled.schedules or {}
    mine, theirs = _definitions(artifact), _definitions(untuned) if isinstance(untuned, Artifact) else {}
    changed = [name for name in told.get("took", ()) if name in theirs and mine.get(name) != theirs[name]]
    return {"sha256": sha256, **told, "changed": changed}


def complaint_of(facts: Mapping[str, Any], untuned: object, tvm: str) -> str:
    """Why a build with the release `tvm` does not count as one with tuned schedules; empty if it does."""
    complaint = _complaint(facts, untuned)
    ported = f" (found with TVM {facts['ported_from']}, built with {tvm})" if facts.get("ported_from") else ""
    return f"{complaint}{ported}" if complaint else ""


def _complaint(facts: Mapping[str, Any], untuned: object) -> str:
    took, refused = facts.get("took", ()), facts.get("refused", {})
    if not took and not refused:
        return "the file of schedules has none for this network on this path"
    if isinstance(untuned, Failure):
        return f"the build with TVM's own schedules, to compare with, failed: {untuned.message}"
    if not took:
        return f"no task of it took a schedule of the file: {next(iter(refused.values()))}"
    if not facts["changed"]:
        return f"{len(took)} tasks took a schedule of the file, and their kernels are the same as without"
    return ""


def summary(facts: Mapping[str, Any]) -> str:
    """For people: how much of a build the schedules are in."""
    took, refused, changed = len(facts.get("took", ())), len(facts.get("refused", {})), len(facts.get("changed", ()))
    tasks = took + refused + len(facts.get("without", ()))
    ported = f", found with TVM {facts['ported_from']}" if facts.get("ported_from") else ""
    return f"{took} of {tasks} tasks took a schedule of the file{ported}, the kernels of {changed} changed" + (
        f"; {refused} could not take theirs" if refused else ""
    )


def _definitions(artifact: Artifact) -> dict[str, set[str]]:
    """The kernels of each function, by what they do."""
    file = artifact.loadable.library.parent / KERNELS
    found: dict[str, set[str]] = {}
    if file.exists():
        for kernel in kernels(file.read_text(encoding="utf-8")):
            found.setdefault(_KERNEL.sub("", kernel.name), set()).add(kernel.code)
    return found
