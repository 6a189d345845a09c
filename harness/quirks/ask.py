"""Runs a quirk's probe in a process of its own, because TVM may crash: `python -m harness.quirks.ask ID`."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from harness.quirks import QUIRKS, Presence, ProbeAnswer, Quirk

PROBE_LIMIT_S = 60.0


def ask(quirk: Quirk, limit_s: float = PROBE_LIMIT_S) -> ProbeAnswer:
    """Whether the installed TVM still has the defect. Never raises for what TVM does."""
    command = [sys.executable, "-m", __name__, quirk.id]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return ProbeAnswer(Presence.CANNOT_TELL, f"the probe did not end within {limit_s:g} s")
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        return ProbeAnswer(Presence(answer["state"]), answer["seen"])
    except (ValueError, KeyError, IndexError):
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        return ProbeAnswer(Presence.CANNOT_TELL, f"the probe ended with code {done.returncode}: {last}")


def _main(quirk_id: str) -> None:
    quirk = next(quirk for quirk in QUIRKS if quirk.id == quirk_id)
    sys.stdout.write(json.dumps(asdict(quirk.probe())) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1])
