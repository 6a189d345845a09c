"""`register` for the `reproduce.py` that earlier versions of `reduce` wrote."""

from harness.compile.paths.clml import register

__all__ = ["register"]
