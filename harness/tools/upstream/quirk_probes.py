"""Asks the installed TVM which known defects it has: each probe in a fork of its own, because TVM may crash.

The answers of a release stay in the store: they change with TVM and with our own sources, as what is compiled does.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from device_runner.failures import Failure
from device_runner.names import load
from device_runner.store import key_of
from harness.base.plan import Job
from harness.base.suite import Limits
from harness.base.tool import tools
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.keys import ROOT, digest, module_version
from harness.compile.artifacts.pool import Builder, Watcher
from harness.compile.compiler.releases import versions
from harness.compile.quirks import Presence, ProbeAnswer, Quirk

if TYPE_CHECKING:
    from harness.tools.upstream.probes.sample import Probe

LIMITS = Limits(build_s=120.0, build_memory_gb=8.0)
"""A probe takes a second, or a few if it compiles a network; one that takes two minutes hangs."""
ANSWER = "answer.json"


def probe(job: dict[str, Any], out: Path) -> None:
    """Ask the TVM of this process, and leave the answer in a folder. Worker only."""
    (out / ANSWER).write_text(json.dumps(asdict(all_probes()[job["quirk"]]())), encoding="utf-8")


def all_probes() -> dict[str, Probe]:
    """Return the probe of each quirk, of the main job and of tools, by its id."""
    from harness.tools.upstream.probes import PROBES

    probes = dict(PROBES)
    for place in _places():
        probes |= load(place)
    return probes


@contextlib.contextmanager
def probe_answers(
    quirks: Sequence[Quirk], cache: Path, watch: Watcher, limits: Limits = LIMITS
) -> Iterator[Iterator[ProbeAnswer]]:
    """Yield the answers in the order of the quirks, each as soon as it is there. Nothing that TVM does raises."""
    with Builder(cache, limits, watch=watch) as builder:
        futures = [builder.begin(_job(quirk.id)) for quirk in quirks]
        yield (_answer(future.result()) for future in futures)


def _job(quirk: str) -> Job:
    """Return the job that asks the installed TVM whether it has a known defect."""
    key = key_of({"probe": quirk, **versions(), "sources": _sources()})
    return Job("probe", key, f"probe of {quirk}", {"quirk": quirk})


@functools.cache
def _sources() -> str:
    """Hash the sources that decide what a probe asks: faster to find than those of all that is compiled."""
    folders = [ROOT / "harness" / "compile" / name for name in ("quirks", "paths", "compiler")]
    folders.append(Path(__file__).parent / "probes")
    own = digest(ROOT, sorted(file for folder in folders for file in folder.rglob("*.py")))
    return key_of({"own": own, "tools": [module_version(place.partition(":")[0]) for place in _places()]})


def _places() -> list[str]:
    return [tool.quirk_probes for tool in tools() if tool.quirk_probes]


def _answer(result: Answers | Artifact | Failure) -> ProbeAnswer:
    if isinstance(result, Failure):
        return ProbeAnswer(Presence.CANNOT_TELL, result.message)
    assert isinstance(result, Answers)
    return msgspec.json.decode((result.folder / ANSWER).read_bytes(), type=ProbeAnswer)
