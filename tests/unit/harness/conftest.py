"""What the tests of commands and of the Python interface share."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing


@pytest.fixture(autouse=True, scope="session")
def _make_the_program_once() -> Iterator[None]:
    """Make the commands of a program when it is first invoked, and not each of the 1,300 times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory and cache, and no device that may be opened."""

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("a device was opened")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("device_runner.registry.open_device", opened)
