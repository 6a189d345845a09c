"""What the noise of a series can show."""

import math

import numpy as np
import pytest

from harness.judge.stats.engine import compare
from harness.judge.stats.pair import Rules
from harness.judge.stats.session import Noise, SessionSummary
from harness.judge.verdict import Verdict
from harness.tools.calibrate.calibration import NoiseEstimate, estimate_noise, noise_between


def sessions(count: int, seed: int = 0, bias: float = 0.01) -> list[list[float]]:
    generator = np.random.default_rng(seed)
    logs = bias * generator.normal(size=(count, 1)) + 0.02 * generator.normal(size=(count, 10))
    return [[float(value) for value in row] for row in 20 * np.exp(logs)]


def test_an_estimate_says_what_the_series_can_show() -> None:
    estimate = estimate_noise(sessions(20))
    assert estimate.ok
    assert 0.008 < estimate.noise.sd < 0.018
    assert estimate.sd_upper > estimate.noise.sd
    assert estimate.false_alarm_rate <= 0.01
    assert estimate.smallest_detectable(4) == pytest.approx(0.055, abs=0.02)


def test_the_smallest_detectable_change_is_two_quantiles_of_students_t() -> None:
    estimate = NoiseEstimate(True, sessions=16, noise=Noise(0.01, 15), sd_upper=0.01)
    error = 0.01 * math.sqrt(1 / 4 + 1 / 4)
    assert estimate.smallest_detectable(4) == pytest.approx(math.expm1(error * (2.831 + 1.721)), rel=1e-3)


def test_more_sessions_show_smaller_changes() -> None:
    estimate = estimate_noise(sessions(20))
    shown = [estimate.smallest_detectable(count) for count in (1, 2, 4, 8, 16)]
    assert shown == sorted(shown, reverse=True)
    needed = estimate.sessions_needed(0.03)
    assert needed is not None
    assert estimate.smallest_detectable(needed) <= 0.03 < estimate.smallest_detectable(needed - 1)
    assert estimate.sessions_needed(1e-5) is None


def test_what_is_said_to_be_detectable_is_detected() -> None:
    estimate = estimate_noise(sessions(20))
    step = estimate.smallest_detectable(4)
    seen = [
        compare(
            sessions(4, seed),
            [[(1 + step) * sample for sample in samples] for samples in sessions(4, seed + 500)],
            Rules(relevant=0.01),
            estimate.noise,
        ).verdict
        for seed in range(60)
    ]
    assert seen.count(Verdict.SLOWER) >= 55


def test_sessions_that_follow_each_other_teach_less() -> None:
    def noise_df(logs: np.ndarray) -> float:
        return noise_between([SessionSummary(float(log), 0.001) for log in logs]).df

    white = np.random.default_rng(0).normal(size=40)
    assert noise_df(np.cumsum(white)) < 10 < noise_df(white)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "0 usable"),
        (sessions(3), "3 usable"),
        ([[math.nan] * 10] * 8, "no times"),
        ([[20.0] * 10] * 8, "the clock"),
    ],
)
def test_too_little_is_no_estimate(given: list[list[float]], reason: str) -> None:
    estimate = estimate_noise(given)
    assert not estimate.ok
    assert not estimate.noise.is_known
    assert any(reason in one for one in estimate.reasons)
    assert math.isnan(estimate.smallest_detectable(4))
    assert estimate.sessions_needed(0.05) is None
