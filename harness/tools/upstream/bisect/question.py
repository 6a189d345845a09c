"""What was asked, and what is known so far: kept in a file, so that a killed bisection goes on where it ended.

<cache>/bisect/<key>/state.json      the question, and every inspection
<cache>/bisect/<key>/records.jsonl   the record of every session
<cache>/bisect/<key>/kernels.diff    in the end: what the compiler made on both sides
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from device_runner.failures import RigFailure
from device_runner.files import write_whole
from device_runner.store import key_of
from harness.tools.shared.revision_search import RevisionState
from harness.tools.upstream.bisect.judging import Inspection

STATE, RECORDS, DIFF = "state.json", "records.jsonl", "kernels.diff"


@dataclass
class BisectionStore:
    """The inspections of one question, on disk after each."""

    folder: Path
    question: dict[str, Any]
    inspections: dict[str, Inspection]

    def add(self, inspection: Inspection) -> None:
        """Keep one more inspection."""
        self.inspections[inspection.name] = inspection
        facts = {"question": self.question, "looks": list(map(dataclasses.asdict, self.inspections.values()))}
        write_whole(self.folder / STATE, json.dumps(facts, indent=1))


@contextlib.contextmanager
def bisection_store(cache: Path, question: dict[str, Any], *, fresh: bool) -> Iterator[BisectionStore]:
    """Yield what is known of a question, nothing if `fresh`. Raises RigFailure while somebody else works on it."""
    folder = cache / "bisect" / key_of(question)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_suffix(".lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RigFailure("another bisection asks the same", hint="wait for it, or end it") from None
    try:
        if fresh:
            shutil.rmtree(folder)
            folder.mkdir()
        (folder / "title").write_text(f"bisection of {question.get('case')}\n", encoding="utf-8")
        yield BisectionStore(folder, question, _load(folder / STATE))
    finally:
        lock.release()


def _load(file: Path) -> dict[str, Inspection]:
    if not file.exists():
        return {}
    try:
        looks = json.loads(file.read_text(encoding="utf-8"))["looks"]
        return {look["name"]: Inspection(**{**look, "state": RevisionState(look["state"])}) for look in looks}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RigFailure(
            f"{file} is damaged ({type(error).__name__}: {error})", hint="--fresh starts the bisection anew"
        ) from error
