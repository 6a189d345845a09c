"""What the tests of commands and of the Python interface share."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory and cache, and no device that may be opened."""

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("a device was opened")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("device_runner.registry.open_device", opened)
