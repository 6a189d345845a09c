"""What `adreno-bench history run` tells the processes that asv starts, as environment variables."""

DEVICE = "ADRENO_BENCH_DEVICE"
"""What to measure on, as after `--device`. The virtual device if it is not set."""

SUITE = "ADRENO_BENCH_SUITE"
"""Absolute path of the suite file."""

RECORDS = "ADRENO_BENCH_RECORDS"
"""Folder in which records are kept beside asv's results. Without it they live as long as asv's run."""

IDENTITY = "ADRENO_BENCH_IDENTITY"
"""The identity that the results are filed under, as JSON. Another one that answers is not measured."""

ISA_GPUS = "ADRENO_BENCH_ISA_GPUS"
"""Adreno GPUs that kernels are compiled for, between commas, if not those of `harness.history.machine_code`."""

REUSE = "ADRENO_BENCH_REUSE"
"""Not empty: a kept record that settles a case is taken instead of measuring again."""
