"""The project's own gates: those of the installed plugin, on the suite file beside them."""

from collections.abc import Iterator

import kept_kernels
import pytest

from harness.tools.correctness.fixtures import add_options as pytest_addoption
from harness.tools.correctness.fixtures import adreno_bench, adreno_complaint, adreno_record, pytest_generate_tests

__all__ = ["adreno_bench", "adreno_complaint", "adreno_record", "pytest_addoption", "pytest_generate_tests"]


@pytest.fixture(scope="session")
def warm_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, bool]]:
    """Warm the driver before `adreno_bench` starts the phone, which is once for all tests: nothing follows them."""
    with kept_kernels.warm_driver(tmp_path_factory.mktemp("driver")) as faults:
        yield faults
