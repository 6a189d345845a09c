"""Confirming a suspect in fresh, interleaved sessions."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.judge.stats import Arm, ConfirmationPlan, Decision, Noise, NoiseEstimate, Rules, Stage, decide
from harness.judge.stats.sequential import evidence, smallest_confirmable
from harness.judge.verdict import Verdict

Measure = Callable[[Arm], list[float]]


def rig(step: float, seed: int, bias: float = 0.01, drift: float = 0.0) -> Measure:
    generator, taken = np.random.default_rng(seed), iter(range(10_000))

    def measure(side: Arm) -> list[float]:
        log = math.log1p(step) * (side is Arm.HEAD) + bias * generator.normal() + drift * next(taken)
        return [float(value) for value in 20 * np.exp(log + 0.02 * generator.normal(size=10))]

    return measure


def run(
    measure: Measure,
    suspected: Verdict = Verdict.SLOWER,
    plan: ConfirmationPlan | None = None,
    noise: Noise | None = None,
) -> tuple[Decision, str]:
    """Follow the decisions to their end; the decision, and the order of sessions."""
    sides: dict[Arm, list[list[float]]] = {Arm.BASE: [], Arm.HEAD: []}
    order = ""
    while (decision := decide(sides[Arm.BASE], sides[Arm.HEAD], suspected, plan, noise)).next:
        sides[decision.next].append(measure(decision.next))
        order += "A" if decision.next is Arm.BASE else "B"
    return decision, order


def test_a_real_slowdown_is_confirmed_in_few_sessions_a_b_b_a() -> None:
    decision, order = run(rig(0.1, 0))
    assert decision.stage is Stage.CONFIRMED
    assert order == "ABBA" * (len(order) // 4)
    assert len(order) <= 12
    assert decision.p <= 0.01
    assert decision.relative == pytest.approx(0.1, abs=0.04)


@pytest.mark.parametrize("change", [0.0, 0.04, 0.1])
def test_the_interval_holds_the_change_whenever_one_stops(change: float) -> None:
    plan, misses = ConfirmationPlan(), 0
    for seed in range(100):
        decision, _ = run(rig(change, seed), plan=plan)
        assert decision.estimate
        misses += abs(decision.estimate.shift - math.log1p(change)) > decision.half_width
    assert misses <= 4, "one in a hundred is allowed; five would be chance once in 250"


def test_chance_is_refuted() -> None:
    decision, _ = run(rig(0.0, 1))
    assert decision.stage is Stage.REFUTED
    assert decision.next is None


def test_a_change_the_other_way_refutes_the_suspicion() -> None:
    assert run(rig(-0.1, 2))[0].stage is Stage.REFUTED
    assert run(rig(-0.1, 2), Verdict.FASTER)[0].stage is Stage.CONFIRMED


def test_a_steady_drift_is_no_change() -> None:
    assert run(rig(0.0, 3, drift=0.004))[0].stage is not Stage.CONFIRMED


def test_the_budget_ends_what_cannot_be_decided() -> None:
    decision, order = run(rig(0.03, 4, bias=0.05), plan=ConfirmationPlan(most_sessions=8))
    assert decision.stage is Stage.INCONCLUSIVE
    assert len(order) == 8
    assert decision.reasons[0] == "not decided after 8 sessions"


def test_unusable_sessions_spend_the_budget_and_are_named() -> None:
    decision, order = run(lambda side: [math.nan] * 10, plan=ConfirmationPlan(most_sessions=6))
    assert (decision.stage, len(order)) == (Stage.INCONCLUSIVE, 6)
    assert "base session 1" in decision.reasons[1]


def test_a_calibrated_rig_decides_sooner() -> None:
    measure = rig(0.1, 5)
    base, head = [measure(Arm.BASE) for _ in range(2)], [measure(Arm.HEAD) for _ in range(2)]
    assert decide(base, head, Verdict.SLOWER).stage is Stage.OPEN
    assert decide(base, head, Verdict.SLOWER, noise=Noise(0.012, 15)).stage is Stage.CONFIRMED


def test_only_a_change_can_be_suspected() -> None:
    with pytest.raises(ValueError, match="not same"):
        decide([], [], Verdict.SAME)


def test_evidence_grows_with_the_statistic_and_starts_below_one() -> None:
    odds = [evidence(t, df=6, sessions=2, effect=3) for t in (0, 1, 3, 6, 1e9)]
    assert odds == sorted(odds)
    assert odds[0] < 1 < odds[3]
    assert math.isfinite(odds[-1])


def test_evidence_is_a_fair_game_while_nothing_changed() -> None:
    """Its mean under the null hypothesis is 1: the integral against Student's density."""
    from scipy.integrate import quad
    from scipy.stats import t

    mean, _ = quad(lambda x: evidence(x, df=6, sessions=2, effect=3) * t.pdf(x, 6), -math.inf, math.inf)
    assert mean == pytest.approx(1, abs=1e-6)


def test_error_rates_over_the_whole_stream_are_as_stated() -> None:
    still = [run(rig(0.0, seed))[0].stage for seed in range(100, 160)]
    assert still.count(Stage.CONFIRMED) <= 1
    assert still.count(Stage.REFUTED) >= 56
    relevant = [
        run(rig(0.03, seed), plan=ConfirmationPlan(Rules(relevant=0.03), most_sessions=12))[0].stage
        for seed in range(40)
    ]
    assert relevant.count(Stage.REFUTED) <= 4
    slower = [run(rig(0.05, seed))[0].stage for seed in range(40)]
    assert slower.count(Stage.CONFIRMED) >= 38


def test_what_is_called_confirmable_is_confirmed_within_the_budget() -> None:
    plan = ConfirmationPlan(Rules(relevant=0.01), most_sessions=16)
    estimate = NoiseEstimate(True, sessions=16, noise=Noise(0.012, 15), sd_upper=0.012)
    step = smallest_confirmable(estimate, plan)
    states = [run(rig(step, seed), plan=plan, noise=estimate.noise)[0].stage for seed in range(40)]
    assert states.count(Stage.CONFIRMED) >= 36


def test_a_smaller_budget_and_a_stricter_bound_confirm_only_larger_changes() -> None:
    estimate = NoiseEstimate(True, sessions=16, noise=Noise(0.01, 15), sd_upper=0.012)
    shown = [smallest_confirmable(estimate, ConfirmationPlan(most_sessions=n)) for n in (4, 8, 16, 32)]
    assert shown == sorted(shown, reverse=True)
    assert smallest_confirmable(estimate, ConfirmationPlan(alpha=0.001)) > smallest_confirmable(
        estimate, ConfirmationPlan()
    )
    assert (
        smallest_confirmable(NoiseEstimate(True, 4, Noise(0.01, 0.5), 0.01), ConfirmationPlan(most_sessions=4))
        == math.inf
    )
    assert math.isnan(smallest_confirmable(NoiseEstimate(False), ConfirmationPlan()))
    assert math.isnan(smallest_confirmable(estimate, ConfirmationPlan(most_sessions=3)))
