"""Asks the installed TVM which known defects it has: each probe in a fork of its own, because TVM may crash.

The answers of a release stay in the store: they change with TVM and with our own sources, as what is compiled does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from device_runner.failures import Failure
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.keys import probe_job
from harness.compile.artifacts.pool import Builder, Watcher
from harness.compile.quirks import QUIRKS, Presence, ProbeAnswer, Quirk

LIMITS = Limits(build_s=60.0, build_memory_gb=8.0)
"""A probe takes less than a second; one that takes a minute hangs."""
ANSWER = "answer.json"


def probe(quirk_id: str, out: Path) -> None:
    """Worker only: ask the TVM of this process, and leave the answer in a folder."""
    quirk = next(quirk for quirk in QUIRKS if quirk.id == quirk_id)
    (out / ANSWER).write_text(json.dumps(asdict(quirk.probe())), encoding="utf-8")


@contextlib.contextmanager
def probe_answers(
    quirks: Sequence[Quirk], cache: Path, watch: Watcher, limits: Limits = LIMITS
) -> Iterator[Iterator[ProbeAnswer]]:
    """Yield the answers in the order of the quirks, each as soon as it is there. Nothing that TVM does raises."""
    with Builder(cache, limits, watch=watch) as builder:
        futures = [builder.begin(probe_job(quirk.id)) for quirk in quirks]
        yield (_answer(future.result()) for future in futures)


def _answer(result: Answers | Artifact | Failure) -> ProbeAnswer:
    if isinstance(result, Failure):
        return ProbeAnswer(Presence.CANNOT_TELL, result.message)
    assert isinstance(result, Answers)
    said = json.loads((result.folder / ANSWER).read_text(encoding="utf-8"))
    return ProbeAnswer(Presence(said["state"]), said["seen"])
