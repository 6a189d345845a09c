"""What a case can come to, whose it is, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Owner(str, Enum):
    """Who has to act on an outcome."""

    NOBODY = "nobody"
    MODEL = "model"
    IMPORTER = "importer"
    """TVM's importer, or whatever else the path shares with LLVM."""
    COMPILER = "compiler"
    PATH = "path"
    DEVICE = "device"
    RIG = "rig"


class CaseState(str, Enum):
    """What an outcome says of its case."""

    RIGHT = "right"
    VACUOUS = "vacuous"
    """Right, and an answer that knows nothing of the network would have been right, too."""
    WRONG = "wrong"
    BROKEN = "broken"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "not measured"
    """The device or the rig failed: nothing was learnt of the case."""


class Outcome(str, Enum):
    """The word in a record; docs/reference/glossary.md explains each."""

    OK = "ok"
    WRONG_RESULT = "wrong-result"
    ORACLE_NOT_FINITE = "oracle-not-finite"
    OUT_OF_RANGE = "out-of-range"
    INPUT_REFUSED = "input-refused"
    COMPILE_ERROR = "compile-error"
    COMPILER_CRASH = "compiler-crash"
    COMPILE_TIMEOUT = "compile-timeout"
    KERNEL_BUILD_ERROR = "kernel-build-error"
    RUNTIME_ERROR = "runtime-error"
    DEVICE_CRASH = "device-crash"
    HANG = "hang"
    UNSUPPORTED = "unsupported"
    INCONCLUSIVE = "inconclusive"
    THROTTLED = "throttled"
    DEVICE_LOST = "device-lost"
    INFRA_ERROR = "infra-error"

    @property
    def owner(self) -> Owner:
        """Whose outcome it is, unless a witness says otherwise (`harness.measure.decide.Decision.owner`)."""
        return _OWNERS[self]

    @property
    def conclusive(self) -> bool:
        """Whether running the same artifact again would tell nothing new about the path (what `--resume` skips)."""
        return self.owner not in (Owner.DEVICE, Owner.RIG)


_OWNERS = {
    Outcome.OK: Owner.NOBODY,
    Outcome.WRONG_RESULT: Owner.PATH,
    Outcome.ORACLE_NOT_FINITE: Owner.MODEL,
    Outcome.OUT_OF_RANGE: Owner.MODEL,
    Outcome.INPUT_REFUSED: Owner.MODEL,
    Outcome.COMPILE_ERROR: Owner.COMPILER,
    Outcome.COMPILER_CRASH: Owner.COMPILER,
    Outcome.COMPILE_TIMEOUT: Owner.COMPILER,
    Outcome.KERNEL_BUILD_ERROR: Owner.PATH,
    Outcome.RUNTIME_ERROR: Owner.PATH,
    Outcome.DEVICE_CRASH: Owner.PATH,
    Outcome.HANG: Owner.PATH,
    Outcome.UNSUPPORTED: Owner.NOBODY,
    Outcome.INCONCLUSIVE: Owner.PATH,
    Outcome.THROTTLED: Owner.DEVICE,
    Outcome.DEVICE_LOST: Owner.DEVICE,
    Outcome.INFRA_ERROR: Owner.RIG,
}


def _state_of(outcome: Outcome) -> CaseState:
    unknown = outcome.owner in (Owner.DEVICE, Owner.RIG) or outcome is Outcome.INCONCLUSIVE
    named = {
        Outcome.OK: CaseState.RIGHT,
        Outcome.UNSUPPORTED: CaseState.UNSUPPORTED,
        Outcome.WRONG_RESULT: CaseState.WRONG,
    }
    return named.get(outcome, CaseState.UNKNOWN if unknown else CaseState.BROKEN)


STATES = {outcome: _state_of(outcome) for outcome in Outcome}
"""By outcome, unless being right proves nothing: then it is `CaseState.VACUOUS`. A history asks millions of times."""


class ExitCode(int, Enum):
    """What the process says to the shell that called it."""

    GOOD = 0
    SLOWER = 1
    USAGE = 2
    WRONG_OR_BROKEN = 3
    RIG_FAILURE = 4
    NOTHING_MEASURED = 5
    UNDECIDED = 6
    """Something looks slower, and it could not be decided."""


_FINDINGS = (Owner.MODEL, Owner.COMPILER, Owner.PATH)


def without_findings(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes that say nothing about a model, the compiler or a path: whether the rig worked."""
    return [outcome for outcome in outcomes if outcome.owner not in _FINDINGS]


def exit_code(outcomes: Iterable[Outcome]) -> ExitCode:
    """Return the exit code of a run.

    A finding about a model, the compiler or a path is certain knowledge, so it comes before a failure of the rig; and a
    run in which nothing could be judged is never good.
    """
    distinct = set(outcomes)
    owners = {outcome.owner for outcome in distinct}
    if owners.intersection(_FINDINGS):
        return ExitCode.WRONG_OR_BROKEN
    if owners & {Owner.DEVICE, Owner.RIG}:
        return ExitCode.RIG_FAILURE
    return ExitCode.GOOD if Outcome.OK in distinct else ExitCode.NOTHING_MEASURED
