"""A phone at a steady pace: cool before it is measured, held while it is, and evidence that it was."""

from __future__ import annotations

from device_runner.stability.cooling import cooled, too_hot
from device_runner.stability.judge import judge
from device_runner.stability.keeper import Keeper
from device_runner.stability.reading import Reading, reading

__all__ = ["Keeper", "Reading", "cooled", "judge", "reading", "too_hot"]
