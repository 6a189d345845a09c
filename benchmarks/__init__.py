"""Benchmarks: asv suites, and scripts that print ratios of one run."""
