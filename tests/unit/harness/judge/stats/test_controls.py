"""Whether a run is fit."""

import math

import numpy as np

from harness.judge.stats.controls import Fitness, gauge
from harness.judge.stats.pair import Change
from harness.judge.stats.session import ReferenceSamples
from harness.judge.verdict import Verdict


def moved(relative: float, p: float = 0.5) -> Change:
    return Change(Verdict.SLOWER if p < 0.005 else Verdict.INCONCLUSIVE, relative=relative, p=p)


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
    assert "the noise of this run is unknown" in fitness.reasons[0]


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
