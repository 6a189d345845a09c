"""One case reduced: first to the fewest operators that still fail in the same way, then to the fewest numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from device_runner.deadline import Deadline
from device_runner.device import Array
from harness.base.failures import UsageError
from harness.base.outcome import Outcome, without_findings
from harness.base.tables import counted
from harness.measure.progress import duration
from harness.measure.records.record import Record
from harness.tools.explain.locate import locate
from harness.tools.explain.pieces import NetworkOperator, Piece
from harness.tools.explain.reduce_search import minimal_subset, shrink
from harness.tools.explain.reduced_network import SmallNetwork
from harness.tools.explain.trial import Finding, PieceTrial, Trials

_DIFFERS = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"|\bon [^:]+(?=:)|(?<=this fused kernel )\([^)]*\)")
"""What says where, and not what: numbers, quoted names, the kernel that the compiler was at and its operators."""

COMPILING = (Outcome.COMPILE_ERROR, Outcome.COMPILER_CRASH, Outcome.COMPILE_TIMEOUT)
"""Failures of which a network that compiles has none: it need not run."""


@dataclass(frozen=True)
class FailureKind:
    """What is looked for while a network shrinks."""

    finding: Finding
    pattern: str
    """The message without what differs from network to network; empty for a wrong answer, of which any is as good."""

    @classmethod
    def of(cls, record: Record) -> FailureKind:
        """Describe the failure of a run."""
        wrong = record.outcome is Outcome.WRONG_RESULT
        return cls(Finding.of(record), "" if wrong else " ".join(_DIFFERS.sub("", record.message).split()))


@dataclass(frozen=True)
class Reduction:
    """What was found."""

    whole: Record
    operators: int
    """Number of its operators."""
    network: SmallNetwork
    record: Record
    """Record of the smallest network that fails alike."""
    expected: Sequence[Array]
    """The oracle's answers to it; empty if it has none, as there is nothing to run."""
    as_shipped: bool
    """Whether it fails in the same way without the workarounds that TVM can do without."""
    tried: int
    """Networks that were built for it."""
    stopped: bool = False
    """Whether its time was up before nothing more could be left out."""


def reduce_case(trials: Trials, say: Callable[[str], None], deadline: Deadline) -> Reduction:
    """Reduce the network of the case that the trials are of.

    Raises UsageError if it is neither wrong nor broken, DeviceLost if there is no answer.
    """
    whole = trials.whole()
    if without_findings([whole.outcome]):
        raise UsageError(
            f"{whole.case} is {whole.outcome.value}: there is nothing to reduce",
            hint="name a case that is wrong or broken",
        )
    attempts = _Attempts(trials, FailureKind.of(whole), deadline)
    starts = _starts(trials, Finding.of(whole), say, deadline)
    start = next((piece for piece in starts if attempts.fails_with(piece.operators)), None)
    operators = start.operators if start else tuple(trials.network.operators)
    say(f"{len(operators)} of {len(trials.network.operators)} operators fail in the same way; leaving out some of them")
    fewest = minimal_subset(operators, attempts.fails_with, deadline)
    say(f"{counted(len(fewest), 'operator')} left: {', '.join(map(str, fewest))}; making them smaller")
    network = shrink(attempts.network(trials.network.only(fewest)), attempts.fails, say, deadline)
    record = attempts.run(network)
    return Reduction(
        whole=whole,
        operators=len(trials.network.operators),
        network=network,
        record=record,
        expected=attempts.expected(network) if record.accuracy else (),
        as_shipped=attempts.kind == FailureKind.of(attempts.run(network, as_shipped=True)),
        tried=attempts.tried,
        stopped=not deadline.remaining_s,
    )


def _starts(trials: Trials, finding: Finding, say: Callable[[str], None], deadline: Deadline) -> list[Piece]:
    """Return smaller networks that are likely to fail alike, the smallest first; none if the time is up before."""

    def run(piece: Piece, name: str) -> PieceTrial:
        if not deadline.remaining_s:
            raise _TimeIsUp
        return trials.run(piece, name)

    try:
        divergence = locate(trials.network, finding, run, say)
    except _TimeIsUp:
        return []
    smallest = [divergence.smallest.piece] if divergence.smallest else []
    return [*smallest, trials.network.first(divergence.first.number)]


class _TimeIsUp(Exception):
    """A trial was not begun."""


@dataclass
class _Attempts:
    """Builds and runs smaller networks, and compares how they fail."""

    trials: Trials
    kind: FailureKind
    deadline: Deadline
    tried: int = 0
    smallest: SmallNetwork | None = None
    """The last one that failed in the same way."""
    began_spoilt: bool | None = None
    """Whether the right answer to the first network has NaN; None before there was one."""

    def fails_with(self, operators: Sequence[NetworkOperator]) -> bool:
        """Return whether these operators alone fail in the same way."""
        return self.fails(self.network(self.trials.network.only(operators)))

    def fails(self, network: SmallNetwork) -> bool:
        """Return whether a network fails in the same way. One that the harness itself refuses does not."""
        self.trials.progress.step(self.trials.plan.case.id, self._how_far)
        try:
            if self.kind.finding.outcome in COMPILING and self.trials.builds(network, f"reduced_{self.tried + 1}"):
                self.tried += 1
                return False
            record = self.run(network)
            same = FailureKind.of(record) == self.kind and not (record.accuracy and self._is_spoilt(network))
        except UsageError:
            return False
        self.smallest = network if same else self.smallest
        return same

    def _is_spoilt(self, network: SmallNetwork) -> bool:
        """Return whether the right answer to a smaller network is NaN, and that to the first one was not."""
        spoilt = any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in self.expected(network))
        self.began_spoilt = spoilt if self.began_spoilt is None else self.began_spoilt
        return spoilt and not self.began_spoilt

    @property
    def _how_far(self) -> str:
        """`trial 7, 3 operators of 40 left, at most 23 min to go`: nobody knows how many trials there will be."""
        left = self.smallest.operators if self.smallest else len(self.trials.network.operators)
        of_all = f"{counted(left, 'operator')} of {len(self.trials.network.operators)} left"
        return f"trial {self.tried + 1}, {of_all}, at most {duration(self.deadline.remaining_s)} to go"

    def network(self, piece: Piece) -> SmallNetwork:
        """Return a piece on the oracle's inputs."""
        return self.trials.network_of(piece, f"reduced_{self.tried + 1}")

    def run(self, network: SmallNetwork, *, as_shipped: bool = False) -> Record:
        """Return the record of a network."""
        self.tried += 1
        return self.trials.judge(network, self._name, as_shipped=as_shipped)

    def expected(self, network: SmallNetwork) -> list[Array]:
        """Return the oracle's answers to the network that was run last."""
        return self.trials.answers(network, self._name)

    @property
    def _name(self) -> str:
        return f"reduced_{self.tried}"
