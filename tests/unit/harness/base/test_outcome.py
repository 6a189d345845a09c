"""Outcomes, their owners, and exit codes."""

import pytest

from harness.base.outcome import ExitCode, Outcome, exit_code


def test_every_outcome_has_an_owner() -> None:
    assert all(outcome.owner for outcome in Outcome)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome.OK], ExitCode.GOOD),
        ([Outcome.OK, Outcome.UNSUPPORTED], ExitCode.GOOD),
        ([Outcome.OK, Outcome.WRONG_RESULT], ExitCode.WRONG_OR_BROKEN),
        ([Outcome.OK, Outcome.COMPILER_CRASH], ExitCode.WRONG_OR_BROKEN),
        ([Outcome.OK, Outcome.INFRA_ERROR], ExitCode.RIG_FAILURE),
        ([Outcome.OK, Outcome.DEVICE_LOST], ExitCode.RIG_FAILURE),
        ([Outcome.HANG, Outcome.INFRA_ERROR], ExitCode.WRONG_OR_BROKEN),
        ([Outcome.UNSUPPORTED], ExitCode.NOTHING_MEASURED),
        ([], ExitCode.NOTHING_MEASURED),
    ],
)
def test_the_exit_code_keeps_the_owners_apart(outcomes: list[Outcome], code: ExitCode) -> None:
    assert exit_code(outcomes) is code


def test_only_what_the_device_or_the_rig_spoilt_is_worth_running_again() -> None:
    again = {outcome for outcome in Outcome if not outcome.conclusive}
    assert again == {Outcome.THROTTLED, Outcome.DEVICE_LOST, Outcome.INFRA_ERROR}
