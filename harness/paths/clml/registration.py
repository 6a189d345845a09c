"""`register` for the `reproduce.py` that earlier versions of `reduce` wrote."""

from harness.paths.clml import register

__all__ = ["register"]
