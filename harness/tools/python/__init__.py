"""The Python interface: what `adreno_bench` offers, on the functions that the commands call."""
