"""The runner: what runs one turn of a bundle where there is no Python, a program of C against tvm-ffi's C interface."""

from device_runner.runtimes.runner.library import program

__all__ = ["program"]
