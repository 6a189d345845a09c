"""The noise of a series, and whether a run is fit."""

import math

import numpy as np
import pytest

from harness.judge.stats.controls import Fitness, gauge
from harness.judge.stats.engine import compare
from harness.judge.stats.noise import NoiseEstimate, estimate_noise, noise_between
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Noise, ReferenceSamples, SessionSummary
from harness.judge.verdict import Verdict


def sessions(count: int, seed: int = 0, bias: float = 0.01) -> list[list[float]]:
    generator = np.random.default_rng(seed)
    logs = bias * generator.normal(size=(count, 1)) + 0.02 * generator.normal(size=(count, 10))
    return [[float(value) for value in row] for row in 20 * np.exp(logs)]


def moved(relative: float, p: float = 0.5) -> Change:
    return Change(Verdict.SLOWER if p < 0.005 else Verdict.INCONCLUSIVE, relative=relative, p=p)


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


def test_quiet_controls_make_a_run_fit() -> None:
    moves = np.random.default_rng(0).normal(scale=0.01, size=20)
    fitness = gauge({f"case{index}": moved(float(move)) for index, move in enumerate(moves)})
    assert fitness.fit
    assert fitness.reasons == ()


def test_a_control_that_changed_makes_a_run_unfit_and_is_named() -> None:
    fitness = gauge({"quiet": moved(0.001), "loud": moved(0.2, p=1e-6)})
    assert fitness.fit is False
    assert fitness.reasons == ("1 of 2 unchanged artifacts look changed: loud",)


def test_controls_that_move_together_make_a_run_unfit() -> None:
    fitness = gauge({f"case{index}": moved(0.02 + index / 1000) for index in range(10)})
    assert fitness.fit is False
    assert "10 of 10 unchanged artifacts moved the same way, by +2.5%" in fitness.reasons[0]


def test_a_common_shift_too_small_to_matter_is_let_pass() -> None:
    assert gauge({f"case{index}": moved(0.001) for index in range(10)}).fit


def test_controls_that_could_not_be_measured_make_a_run_unfit() -> None:
    fitness = gauge({"a": Change(Verdict.INCONCLUSIVE), "b": Change(Verdict.INCONCLUSIVE), "c": moved(0.0)})
    assert fitness.fit is False
    assert "2 of 3" in fitness.reasons[0]


def test_nothing_to_gauge_by_is_said() -> None:
    fitness = gauge({})
    assert fitness.fit is None
    assert "nothing tells" in fitness.reasons[0]


def fitness_by(reference_ms: list[float], slowed_ms: list[float]) -> Fitness:
    """Of a run whose only sign is a kernel that was made 1.3 times slower."""
    return gauge({}, {"head": ReferenceSamples("k", reference_ms, slowed_ms)}, factor=1.3)


def test_a_slowed_kernel_has_to_be_seen() -> None:
    reference, slowed = [10.0, 10.1, 9.9], [13.0, 13.1, 12.9]
    assert fitness_by(reference, slowed).fit
    blind = fitness_by(reference, reference)
    assert blind.fit is False
    assert "slowness is not seen" in blind.reasons[0]
    assert fitness_by(reference, [math.nan] * 3).fit is False


def test_a_kernel_that_is_steady_on_a_coarse_clock_makes_no_run_unfit() -> None:
    assert fitness_by([0.025] * 6, [0.032] * 6).fit
    assert fitness_by([0.025] * 6, [0.025] * 6).fit is False, "the clock stands still"


def test_samples_too_noisy_to_tell_do_not_prove_that_slowness_is_not_seen() -> None:
    chance = np.random.default_rng(0)
    reference, slowed = (list(ms * np.exp(0.5 * chance.normal(size=6))) for ms in (10.0, 10.5))
    assert fitness_by(reference, slowed).fit
    steady = [10.0, 10.1, 9.9, 10.0, 10.1]
    assert fitness_by(steady, [1.1 * ms for ms in steady]).fit is False
