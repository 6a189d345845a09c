"""What was tried, kept as it happens: one line for each trial, so that a search that was killed goes on where it was.

<cache>/trials/<key>/trials.jsonl     of one network on one device: its tasks under one release, and one identity
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from device_runner.disk import disk_full
from device_runner.failures import RigFailure
from device_runner.files import append_lines
from device_runner.store import key_of
from harness.tools.tune.search import Trial

KIND = "trials"
FILE = "trials.jsonl"
LONGEST_LINE_BYTES = 16_384


class TrialLog:
    """The trials of one network on one device."""

    def __init__(self, cache: Path, tasks_key: str, identity_key: str, title: str) -> None:
        self._folder = cache / KIND / key_of({"tasks": tasks_key, "identity": identity_key})
        self._title = title

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else adds to it meanwhile. Raises RigFailure if somebody does."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "title").write_text(f"{self._title}\n", encoding="utf-8")
            file = os.open(self._folder, os.O_RDONLY)
        except OSError as error:
            raise self._not_written(error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise RigFailure(f"{self._title} is being tuned already", hint="wait for it, or end it") from None
        finally:
            os.close(file)

    def read(self) -> Iterator[Trial]:
        """Yield all trials so far. A line that was torn by a kill is left out: it is tried again."""
        file = self._folder / FILE
        if not file.exists():
            return
        with file.open("rb") as lines:
            for line in lines:
                if len(line) <= LONGEST_LINE_BYTES:
                    try:
                        yield Trial.model_validate_json(line)
                    except ValidationError:
                        continue

    def append(self, trial: Trial) -> None:
        """Keep a trial. Raises RigFailure if the disk refuses it."""
        try:
            append_lines(self._folder / FILE, trial.model_dump_json(exclude_defaults=True).encode() + b"\n")
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> RigFailure:
        return disk_full(error, self._folder.parent) or RigFailure(
            f"cannot keep trials in {self._folder}: {error.strerror}", hint="set ADRENO_BENCH_CACHE to another folder"
        )
