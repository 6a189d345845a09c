"""The vocabulary as frozen data, and what every part stands on: cache, processes, failures, tables."""
