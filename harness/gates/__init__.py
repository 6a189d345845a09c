"""Correctness gates for pytest: one test for each case. `pytest --pyargs harness.gates --suite my.toml --device D`."""
