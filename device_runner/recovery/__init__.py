"""Bringing a lost device back: what is tried in which order, and when it is given up."""

from __future__ import annotations

from device_runner.recovery.ladder import RecoveryStep, climb
from device_runner.recovery.quarantine import Quarantine, Recovery

__all__ = ["Quarantine", "Recovery", "RecoveryStep", "climb"]
