"""From a network that is wrong to the first operator that is off, and to the smallest network around it that shows it.

Two searches. The first is over the network's beginnings: its first operators, with every tensor that crosses the cut
as an output. It ends with two neighbours, one that is right and one that is not. What a cut does to fusion may hide a
defect or make one, so the second search takes the operator that was added, fed with the oracle's values: alone, then
with ever more of those that lead to it, until it is off again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.base.outcome import Outcome, Owner
from harness.base.tables import counted
from harness.tools.explain.pieces import CuttableNetwork, NetworkOperator, Piece
from harness.tools.explain.trial import Finding, PieceTrial
from harness.tools.shared.revision_search import Pace, RevisionSearch, RevisionState

MOST_STEPS = 16
"""How far the second search looks back from the operator that was found."""

Try = Callable[[Piece, str], PieceTrial]
"""Runs a piece under a name."""


@dataclass(frozen=True)
class Divergence:
    """What was found."""

    finding: Finding
    """The finding of the whole network, which the search looks for."""
    candidates: tuple[NetworkOperator, ...]
    """The first operator with which the network comes to that outcome; several where cuts between them came to others.
    The last one is certain."""
    beginnings: tuple[PieceTrial, ...]
    """The beginnings that were tried, the shortest first."""
    around: tuple[PieceTrial, ...] = field(default=())
    """The last candidate with ever more of what leads to it, in the order tried."""

    @property
    def first(self) -> NetworkOperator:
        """The operator with which the outcome is certain."""
        return self.candidates[-1]

    @property
    def smallest(self) -> PieceTrial | None:
        """The smallest network that was found to show it; None if no piece around the operator does."""
        trials = [trial for trial in self.around if Finding.of(trial.record) == self.finding]
        return min(trials, key=lambda trial: len(trial.piece.operators), default=None)


def locate(network: CuttableNetwork, finding: Finding, run: Try, say: Callable[[str], None]) -> Divergence:
    """Find the first operator with which a network comes to what the whole of it does."""
    last = len(network.operators)
    beginnings: dict[int, PieceTrial] = {}
    search, pace = RevisionSearch([str(count) for count in range(last + 1)]), Pace()
    while name := search.next:
        left = search.inspections_left
        say(f"trying the first {name} of {last} operators, about {counted(left, 'cut')} to go{pace.left(left)}")
        with pace.step():
            trial = beginnings[int(name)] = run(network.first(int(name)), f"first_{name}")
        search = RevisionSearch(search.line, {**search.states, name: _state(trial, finding)})
    candidates = tuple(network.operators[int(name) - 1] for name in search.candidates)
    tried = tuple(beginnings[count] for count in sorted(beginnings))
    return Divergence(finding, candidates, tried, _around(network, candidates[-1], finding, run, say))


def _around(
    network: CuttableNetwork, operator: NetworkOperator, finding: Finding, run: Try, say: Callable[[str], None]
) -> tuple[PieceTrial, ...]:
    """Pieces around an operator, twice as deep each time, until one shows it; then the smallest that does."""
    depths = [depth for depth in (1, 2, 4, 8, MOST_STEPS) if depth == 1 or _grows(network, operator.number, depth)]
    tried: dict[int, PieceTrial] = {}

    def shows(depth: int) -> bool:
        piece = network.around(operator.number, depth)
        before = len(piece.operators) - 1
        say(f"trying {operator} {f'after the {before} that lead to it' if before else 'alone'}")
        tried[depth] = run(piece, f"around_{operator.number}_{depth}")
        return Finding.of(tried[depth].record) == finding

    depth = next((depth for depth in depths if shows(depth)), None)
    if depth is not None:
        shallow, deep = depth // 2, depth
        while deep - shallow > 1:
            middle = (shallow + deep) // 2
            shallow, deep = (shallow, middle) if shows(middle) else (middle, deep)
    return tuple(tried.values())


def _grows(network: CuttableNetwork, number: int, depth: int) -> bool:
    """Return whether looking so far back finds more than half as far."""
    return network.around(number, depth).operators != network.around(number, depth // 2).operators


def _state(trial: PieceTrial, finding: Finding) -> RevisionState:
    if Finding.of(trial.record) == finding:
        return RevisionState.BAD
    ran = trial.record.outcome in (Outcome.OK, Outcome.WRONG_RESULT)
    built = trial.record.library_bytes is not None  # though this device may be unable to run it
    return RevisionState.GOOD if ran or (built and finding.owner is Owner.COMPILER) else RevisionState.SKIP
