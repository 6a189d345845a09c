"""What became of the machine code of each case over the commits of a history: exact, so any difference is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from harness.history.machine_code import ENDING
from harness.isa.code import MachineCode
from harness.judge.code_gate import CodeVerdict, judge_code
from harness.judge.verdict import Verdict
from harness.run.record import RecordFile

RECENT_COMMITS = 12
"""For how many commits a change is told beside the newest state, as of a latency."""
_MOVED = (Verdict.HEAVIER, Verdict.LIGHTER, Verdict.BROKEN, Verdict.FIXED)


@dataclass(frozen=True)
class CodeState:
    """One case for one GPU, by one version of the compiler, at the newest commit that has it."""

    case: str
    code: MachineCode
    commit: str
    moved: CodeVerdict | None = None
    """The last change, if there was one lately."""
    before: str = ""
    """The measured commit before that change."""
    after: str = ""


Codes = Mapping[tuple[str, str], Sequence[CodeState]]
"""By machine and case."""
Points = Sequence[tuple[str, Sequence[MachineCode]]]
"""Commits with what was compiled at each."""


def load_codes(results: Path, commits: Mapping[str, Sequence[str]]) -> Codes:
    """The newest state of each case for each GPU; `commits` are those of each machine, in order.

    Only numbers of the compiler's version of the newest commit are told: another version is another series.
    """
    found = {}
    for machine, known in commits.items():
        history: dict[str, list[tuple[str, Sequence[MachineCode]]]] = {}
        for commit in known:
            for file in sorted((results / machine).glob(f"{commit[:8]}-*{ENDING}")):
                for case, codes in _newest(file).items():
                    history.setdefault(case, []).append((commit, codes))
        found.update({(machine, case): _states(case, points) for case, points in history.items()})
    return found


def _newest(file: Path) -> dict[str, Sequence[MachineCode]]:
    """The last record of each case. Lines that are none are passed over, as of any file of records."""
    return {record.case: record.isa for record in RecordFile(file).load().records if record.isa}


def _states(case: str, points: Points) -> list[CodeState]:
    commit, newest = points[-1]
    return [_state(case, code, commit, points) for code in newest]


def _state(case: str, code: MachineCode, commit: str, points: Points) -> CodeState:
    here = [(at, one) for at, codes in points for one in codes if one.series == code.series]
    pairs = list(pairwise(here))[-RECENT_COMMITS:]
    for (before, old), (after, new) in reversed(pairs):
        verdict = judge_code(case, [old], new)
        if verdict.verdict in _MOVED:
            return CodeState(case, code, commit, verdict, before, after)
    return CodeState(case, code, commit)
