"""The project's own gates: those of the installed plugin, on the suite file beside them."""

from harness.tools.correctness.fixtures import add_options as pytest_addoption
from harness.tools.correctness.fixtures import adreno_bench, adreno_complaint, adreno_record, pytest_generate_tests

__all__ = ["adreno_bench", "adreno_complaint", "adreno_record", "pytest_addoption", "pytest_generate_tests"]
