"""How probes of these tests answer."""

from __future__ import annotations

from harness.tools.upstream.probe_answer import Presence, ProbeAnswer


def presence(present: bool, seen: str, otherwise: str = "") -> ProbeAnswer:
    """Return the answer of a probe that can tell, with what it saw if the defect is there, and otherwise."""
    return ProbeAnswer(Presence.PRESENT, seen) if present else ProbeAnswer(Presence.ABSENT, otherwise or seen)
