"""Noise profiles: how far sessions of one artifact lie apart on one identity, and so what the series can show at all.

    baselines/noise/<identity>/<case>.json

`adreno-bench calibrate` writes them, `adreno-bench gate` is held to them. The noise belongs to the rig: the profile
of one artifact is taken for that of the next one of the same case, until a run turns out noisier than it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pydantic import Field as field

from harness.judge.checked_file import CheckedFile, rounded
from harness.judge.stats import robust
from harness.judge.stats.noise import FEWEST_SESSIONS, NoiseEstimate, estimate_noise
from harness.judge.stats.pair import Rules
from harness.judge.stats.samples import LONGEST_MS, SHORTEST_MS
from harness.judge.stats.session import Noise, summarise
from harness.run.outcome import Outcome
from harness.run.record import Record

FOLDER = "noise"
"""Below the folder of baselines, one level deeper than they are, so that no profile is read as one."""
LEAST_SD = 1e-9
"""No rig is steadier."""
SESSIONS_A_SIDE = (1, 4, 8, 16)
"""Numbers of sessions for which a file says what they show."""


class Shown(BaseModel):
    """What a number of sessions shows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sessions: int
    """A side."""
    change: float | None
    """Seen with 95 % power; a fraction. None if no change would be large enough."""


class NoiseProfile(CheckedFile):
    """What calibration found of one series. Relative numbers are fractions, times ms."""

    what = "noise profile"
    mended_by = "take it from version control again, or calibrate anew"

    emulated: tuple[str, ...]
    """What was not the real thing: then this is the noise of the emulation."""
    artifact: str
    tvm: str
    ffi: str
    began: str
    """When the first session started; UTC, ISO 8601."""
    ended: str
    """When the last one started."""
    sessions: int = field(ge=FEWEST_SESSIONS)
    """How many could be used."""
    location_ms: float = field(ge=SHORTEST_MS, le=LONGEST_MS)
    sd: float = field(ge=LEAST_SD, le=100)
    """Standard deviation of the sessions' log locations: 0.01 is about 1 %."""
    df: float = field(ge=1, le=1e6)
    """Degrees of freedom of `sd`: sessions that follow each other count for less."""
    sd_upper: float = field(ge=LEAST_SD, le=1000)
    """The noise is below this with 90 % confidence."""
    false_alarm_rate: float = field(ge=0, le=1)
    """Share of alarms among random splits of the sessions into halves."""
    splits: int = field(ge=1)
    smallest_detectable: tuple[Shown, ...]
    left_out: tuple[str, ...] = ()
    """Sessions that could not be used, and why."""

    @property
    def estimate(self) -> NoiseEstimate:
        """As the statistics take it."""
        noise = Noise(self.sd, self.df)
        return NoiseEstimate(
            True, self.sessions, noise, self.sd_upper, self.false_alarm_rate, self.splits, self.left_out
        )


def profile_of(records: Sequence[Record], rules: Rules) -> NoiseProfile | tuple[str, ...]:
    """The noise profile that records of one series give, in the order taken; or why they give none."""
    timed = [record for record in records if record.outcome is Outcome.OK and record.comparable_ms]
    found = estimate_noise([record.wall_ms for record in timed], rules)
    if not found.ok:
        return found.reasons
    good, _ = summarise([record.wall_ms for record in timed])
    last = timed[-1]
    return NoiseProfile(
        case=last.case,
        identity_key=last.identity_key,
        emulated=last.emulated,
        artifact=last.artifact,
        tvm=last.tvm,
        ffi=last.ffi,
        began=timed[0].started_at,
        ended=last.started_at,
        sessions=found.sessions,
        location_ms=rounded(math.exp(robust.location([session.log_ms for session in good]))),
        sd=max(LEAST_SD, rounded(found.noise.sd)),
        df=rounded(found.noise.df),
        sd_upper=max(LEAST_SD, rounded(found.sd_upper)),
        false_alarm_rate=found.false_alarm_rate,
        splits=found.splits,
        smallest_detectable=tuple(
            Shown(sessions=count, change=_kept(found.smallest_detectable(count, rules))) for count in SESSIONS_A_SIDE
        ),
        left_out=found.reasons,
    )


def find(baselines: Path, identity_key: str, case: str) -> NoiseProfile | None:
    """The noise profile of a series; None if there is none. Raises UsageError for a file that is not good."""
    return NoiseProfile.find(baselines / FOLDER, identity_key, case)


def _kept(change: float) -> float | None:
    return rounded(change) if math.isfinite(change) else None
