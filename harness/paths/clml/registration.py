"""Where `reproduce.py` of folders that earlier versions of `reduce` wrote looks for `register`."""

from harness.paths.clml import register

__all__ = ["register"]
