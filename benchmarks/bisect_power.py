"""How often a bisection names the right commit, and what it takes. Run: python -m benchmarks.bisect_power [TRIALS].

Each trial is a line of 64 commits of which one makes the case slower. The bisection is the product's own
(`harness.tools.upstream.bisect`), down to its search, judge and engine. Only the device is simulated: its sessions
differ by noise of a known size, and have ten samples each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.tables import table
from harness.judge.confirm import MOST_SESSIONS
from harness.judge.stats.engine import TurnPlan
from harness.judge.stats.pair import Rules
from harness.measure.records.record import Record, RecordFile
from harness.tools.shared.revision_search import RevisionSearch
from harness.tools.shared.toolchain import CaseBuild
from harness.tools.upstream.bisect.bisection import MORE_INSPECTIONS, WRONG_RATE, BisectionStore, find_first_bad
from harness.tools.upstream.bisect.judging import Inspection, Reason, RevisionJudge, RevisionRunner

COMMITS = 64
WITHIN = 0.01
SIZES = ((0.10, 0.02), (0.10, 0.01), (0.05, 0.015), (0.05, 0.01), (0.20, 0.03))
"""Change, and standard deviation between sessions."""
EXAMPLE = Path(__file__).parent.parent / "docs/example/results"


def main() -> None:
    """Print a row for each change and noise."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    example = next(r for r in RecordFile(next(EXAMPLE.glob("*/*.jsonl"))).load().records if r.outcome is Outcome.OK)
    rows = [study(example, change, noise, trials) for change, noise in SIZES]
    print(table(rows, ("change", "noise", "right", "one of several", "wrong", "end not confirmed", "sessions")))


def study(example: Record, change: float, noise: float, trials: int) -> tuple[str, ...]:
    """Shares of what the trials came to, and the mean number of sessions."""
    ended: Counter[str] = Counter()
    sessions = 0
    for seed in range(trials):
        device = Device(example, change, noise, np.random.default_rng([seed, 1]))
        ended[answer(device)] += 1
        sessions += len(device.taken)
    shares = (f"{ended[what] / trials:.1%}" for what in ("right", "several", "wrong", "end"))
    return (f"{change:.0%}", f"{noise:.1%}", *shares, f"{sessions / trials:.0f}")


@dataclass
class Device:
    """Runs every commit; those from a random one on are slower."""

    example: Record
    change: float
    noise: float
    generator: np.random.Generator
    taken: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first_bad = int(self.generator.integers(1, COMMITS))

    def open(self, name: str) -> RevisionRunner:
        """One commit, by its number."""
        return _Commit(self, name)

    def session(self, name: str) -> Record:
        """Ten samples, all off by what this session is off by."""
        slower = self.change if int(name) >= self.first_bad else 0.0
        bias = self.noise * self.generator.normal()
        wall_ms = 20 * (1 + slower) * np.exp(bias + WITHIN * self.generator.normal(size=10))
        return self.example.model_copy(update={"wall_ms": wall_ms.tolist(), "artifact": name})


@dataclass
class _Commit:
    device: Device
    name: str

    def build(self, cases: Sequence[str]) -> dict[str, CaseBuild]:
        identity = self.device.example.identity_key
        return {case: CaseBuild(case, identity, self.name, self.name, Outcome.OK, "") for case in cases}

    def run(self, _: Sequence[str]) -> list[Record]:
        return [self.device.session(self.name)]


class _Unkept(BisectionStore):
    """On no disk."""

    def add(self, inspection: Inspection) -> None:
        self.inspections[inspection.name] = inspection


def answer(device: Device) -> str:
    """Return the result of a bisection of the device's commits."""
    line = [str(number) for number in range(COMMITS)]
    rules = Rules(alpha=WRONG_RATE / (RevisionSearch(line).inspections_left + MORE_INSPECTIONS))
    plan = TurnPlan(rules, MOST_SESSIONS)
    keep, kept = device.taken.append, lambda: device.taken
    judge = RevisionJudge(device.example.case, Reason.SLOWER, line[0], device.open, plan, keep, kept)
    try:
        found = find_first_bad(line, judge, _Unkept(Path(), {}, {}), lambda _: None)
    except UsageError:
        return "end"
    if len(found.candidates) > 1:
        return "several" if str(device.first_bad) in found.candidates else "wrong"
    return "right" if found.bad == str(device.first_bad) else "wrong"


if __name__ == "__main__":
    main()
