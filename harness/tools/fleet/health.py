"""How each phone did from week to week, by the outcomes of its records: which one goes bad shows here first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from harness.base.outcome import Outcome
from harness.base.tables import grouped
from harness.measure.records.record import FIRST_MONDAY
from harness.measure.records.view import Counted

CRASHES = (Outcome.DEVICE_CRASH, Outcome.HANG)


@dataclass(frozen=True)
class PhoneWeek:
    """One phone in one week."""

    phone: str
    """Serial of the phone."""
    week: str
    """Monday of the week, ISO 8601, UTC; empty for records without a time."""
    records: int
    lost: int
    """`device-lost`."""
    rig_failures: int
    """`infra-error`."""
    crashes: int
    """`device-crash` and `hang`: most likely the path's fault, but a phone that goes bad crashes too."""
    recoveries: int
    """Cases during which it was lost and rungs were climbed."""
    throttled: int
    throttled_share: float | None
    """Share of the timed runs; None if there was none. Sustained runs do not count, because they look for heat."""


def health(counted: Iterable[Counted]) -> list[PhoneWeek]:
    """Summarise records by phone and week."""
    weeks = grouped(counted, lambda count: (count.phone, count.week))
    return [_phone_week(*key, counts) for key, counts in sorted(weeks.items())]


def _phone_week(phone: str, week: int, counts: Sequence[Counted]) -> PhoneWeek:
    def having(*outcomes: Outcome, sustained: bool = True) -> int:
        return sum(
            count.records for count in counts if count.outcome in outcomes and (sustained or not count.sustained)
        )

    throttled = having(Outcome.THROTTLED)
    timed = throttled + having(Outcome.OK, sustained=False)
    return PhoneWeek(
        phone=phone,
        week=monday_of(week) if week >= 0 else "",
        records=sum(count.records for count in counts),
        lost=having(Outcome.DEVICE_LOST),
        rig_failures=having(Outcome.INFRA_ERROR),
        crashes=having(*CRASHES),
        recoveries=sum(count.recovered for count in counts),
        throttled=throttled,
        throttled_share=round(throttled / timed, 4) if timed else None,
    )


def monday_of(week: int) -> str:
    """Return the first day of a week, in ISO 8601."""
    return date.fromordinal(FIRST_MONDAY + 7 * week).isoformat()
