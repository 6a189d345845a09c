"""A phone at a steady pace: cool before it is measured, held while it is, and evidence that it was."""

from __future__ import annotations

from device_runner.stability.cooling import too_hot, wait_until_cool
from device_runner.stability.judge import judge
from device_runner.stability.keeper import Keeper
from device_runner.stability.reading import Reading, reading

__all__ = ["Keeper", "Reading", "wait_until_cool", "judge", "reading", "too_hot"]
