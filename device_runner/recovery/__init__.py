"""Bringing a lost device back: what is tried in which order, and when it is given up."""

from __future__ import annotations

from device_runner.recovery.ladder import Quarantine, Recovery, RecoveryStep, climb

__all__ = ["Quarantine", "Recovery", "RecoveryStep", "climb"]
