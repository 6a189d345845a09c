"""Correctness tests for pytest, one test for each case: `pytest --pyargs harness.pytest_plugin --device D`."""
