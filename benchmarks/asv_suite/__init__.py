"""The asv suites: thin classes over `harness.measure.runner`. docs/how-to/history.md explains them.

They have a folder of their own because asv imports every module that lies beside them.
"""
