"""Outcomes as numbers, which is all that asv keeps. Published results hold them: never renumber, only add."""

from __future__ import annotations

from harness.run.outcome import Outcome

CODES = {
    Outcome.OK: 0,
    Outcome.UNSUPPORTED: 1,
    Outcome.INCONCLUSIVE: 2,
    Outcome.THROTTLED: 3,
    Outcome.DEVICE_LOST: 4,
    Outcome.INFRA_ERROR: 5,
    Outcome.WRONG_RESULT: 10,
    Outcome.RUNTIME_ERROR: 20,
    Outcome.KERNEL_BUILD_ERROR: 21,
    Outcome.DEVICE_CRASH: 22,
    Outcome.HANG: 23,
    Outcome.COMPILE_ERROR: 30,
    Outcome.COMPILER_CRASH: 31,
    Outcome.COMPILE_TIMEOUT: 32,
    Outcome.ORACLE_NOT_FINITE: 40,
    Outcome.OUT_OF_RANGE: 41,
}

_OUTCOMES = {code: outcome for outcome, code in CODES.items()}


def code_of(outcome: Outcome) -> int:
    """The number of an outcome."""
    return CODES[outcome]


def outcome_of(code: float) -> Outcome | None:
    """The outcome of a number, None for a number that is none."""
    return _OUTCOMES.get(int(code)) if code == int(code) else None
