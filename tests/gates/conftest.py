"""The project's own correctness tests: those of the installed plugin, on the suite file beside them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.pytest_plugin.fixtures import adreno_bench, adreno_complaint, adreno_record, pytest_generate_tests
from harness.pytest_plugin.plugin import add_options as pytest_addoption

__all__ = ["adreno_bench", "adreno_complaint", "adreno_record", "pytest_addoption", "pytest_generate_tests"]


@pytest.fixture(scope="session", autouse=True)
def its_own_cache(cache: Path) -> Iterator[None]:
    """Build where the other tests build."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADRENO_BENCH_CACHE", str(cache))
        yield
