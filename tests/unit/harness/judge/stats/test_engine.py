"""The engine of verdicts: its boundaries against published ones, its errors and its power against what it says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.stats.engine import TurnPlan, compare, judge_turns, turns_of, visible_change
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Noise, Samples, SessionSummary
from harness.judge.stats.spending import boundaries, solve
from harness.judge.stats.turns import BLOCK, Arm, Turn, estimate_turns, order
from harness.judge.verdict import Verdict

SD = 0.012
"""Between sessions, for all rigs below."""


def session_turn(arm: Arm, samples_ms: Samples) -> Turn:
    return turns_of([(arm, samples_ms)])[0]


def turn(arm: Arm, log_ms: float) -> Turn:
    return Turn(arm, SessionSummary(math.log(20.0) + log_ms, 0.002))


def measured(
    step: float,
    seed: int,
    noise: Noise | None = None,
    plan: TurnPlan | None = None,
    drift: float = 0.0,
    period: float = 0.0,
) -> tuple[Change, list[Turn]]:
    """Follow a series to its end, on a rig that may drift by the session or disturb every fourth pair of sessions."""
    generator, turns, plan = np.random.default_rng(seed), list[Turn](), plan or TurnPlan()
    for place, arm in enumerate(order(str(seed))):
        disturbed = period * (1 if place % 4 in (0, 3) else -1)
        log = math.log1p(step) * (arm is Arm.HEAD) + SD * generator.normal() + drift * place + disturbed
        turns.append(turn(arm, float(log)))
        if len(turns) % BLOCK:
            continue  # between two looks nothing is decided, which a test of its own looks at
        change = judge_turns(turns, plan, noise)
        if change.decided or len(turns) >= plan.most_sessions:
            return change, turns
    raise AssertionError


def verdicts(step: float, trials: int, **rig: float) -> Counter[Verdict]:
    return Counter(measured(step, seed, **rig)[0].verdict for seed in range(trials))  # type: ignore[arg-type]


def reached(bounds: Sequence[float]) -> float:
    """The chance that a walk without a drift passes its boundary at any of evenly spaced looks."""
    from scipy.stats import multivariate_normal  # takes a second, in each process that collects

    looks = np.arange(1, len(bounds) + 1)
    resemblance = np.sqrt(np.minimum.outer(looks, looks) / np.maximum.outer(looks, looks))
    below = multivariate_normal(cov=resemblance, seed=1)
    below.maxpts = 20_000 * len(bounds)  # as attributes, since SciPy takes them as arguments since 1.16 only
    below.abseps = below.releps = 1e-9
    return 1 - float(below.cdf(list(bounds)))


# Jennison and Turnbull, Group Sequential Methods (2000), tables 2.1 and 2.3: five looks, 5 % two-sided.
POCOCK, OBRIEN_FLEMING = 2.413, 2.040


def test_published_boundaries_have_their_published_error() -> None:
    assert 2 * reached([POCOCK] * 5) == pytest.approx(0.05, abs=2e-4)
    assert 2 * reached([OBRIEN_FLEMING * math.sqrt(5 / look) for look in range(1, 6)]) == pytest.approx(0.05, abs=2e-4)


def test_lan_and_demets_boundaries_are_found() -> None:
    """Their approximation of O'Brien and Fleming's, Biometrika 70 (1983): five looks, 2.5 % one-sided."""
    from scipy.stats import norm  # takes a second, in each process that collects

    spent = [2 * float(norm.sf(norm.isf(0.0125) / math.sqrt(look / 5))) for look in range(1, 6)]
    assert solve(spent, 5) == pytest.approx((4.877, 3.357, 2.680, 2.290, 2.031), abs=1e-3)


@pytest.mark.parametrize("looks", [1, 2, 8])
@pytest.mark.parametrize("error", [0.05, 0.005, 5e-5])
def test_boundaries_spend_what_they_may(error: float, looks: int) -> None:
    assert reached(boundaries(error, looks)) == pytest.approx(error, rel=2e-3, abs=5e-6)


def test_a_single_look_is_students_t_test() -> None:
    from scipy.stats import ttest_ind

    generator = np.random.default_rng(0)
    base, head = (
        20 * np.exp(SD * generator.normal(size=(5, 1)) + 0.001 * generator.normal(size=(5, 12))) for _ in "ab"
    )
    ours = compare(base.tolist(), (1.03 * head).tolist())
    logs = [[session_turn(Arm.BASE, row).session.log_ms for row in side] for side in (base, 1.03 * head)]  # type: ignore[union-attr]
    scipys = ttest_ind(logs[1], logs[0])
    assert ours.p == pytest.approx(scipys.pvalue, rel=1e-6)
    low, high = scipys.confidence_interval(1 - 2 * Rules().alpha)
    assert (ours.low, ours.high) == pytest.approx((math.expm1(low), math.expm1(high)), rel=1e-6)


def test_what_did_not_change_is_the_same_and_what_changed_by_what_is_relevant_is_found() -> None:
    still, slower = verdicts(0.0, 300), verdicts(0.03, 200)
    assert still[Verdict.SLOWER] + still[Verdict.FASTER] <= 7, "1 % of both; eight would be chance once in 50"
    assert still[Verdict.SAME] >= 285
    assert slower[Verdict.SLOWER] >= 184, "95 %; fewer would be chance once in 50"
    assert slower[Verdict.SAME] <= 15, "5 %; more would be chance once in 20"


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 9, 13, 30, 31])
def test_nothing_is_decided_between_two_looks(count: int) -> None:
    turns = [turn(arm, 0.3 * (arm is Arm.HEAD) + 1e-5 * n) for n, arm in enumerate(islice(order("a"), count + 3))]
    change = judge_turns(turns[:count])
    assert (change.verdict, change.confidence, change.decided) == (Verdict.INCONCLUSIVE, 0.0, False)
    assert count < 4 or judge_turns(turns[: -(-count // BLOCK) * BLOCK]).verdict is Verdict.SLOWER


def test_a_large_change_takes_few_sessions() -> None:
    taken = [len(measured(0.1, seed)[1]) for seed in range(20)]
    assert max(taken) <= 12


@pytest.mark.parametrize("rig", [{"drift": 0.004}, {"drift": -0.004}, {"period": SD}])
def test_neither_drift_nor_a_disturbance_every_four_sessions_passes_for_a_change(rig: dict[str, float]) -> None:
    found = verdicts(0.0, 200, **rig)
    assert found[Verdict.SLOWER] + found[Verdict.FASTER] <= 6, found


def test_a_drift_is_taken_out_and_named() -> None:
    change, _ = measured(0.05, 1, drift=0.01)
    assert change.verdict is Verdict.SLOWER
    assert change.relative == pytest.approx(0.05, abs=0.03)
    assert any("the device drifted by +1" in reason for reason in change.reasons)


@pytest.mark.parametrize("step", [0.0, 0.02, 0.1])
def test_the_interval_holds_the_change_whenever_one_stops(step: float) -> None:
    changes = [measured(step, seed)[0] for seed in range(200)]
    missed = sum(not change.low <= step <= change.high for change in changes)
    assert missed <= 12, "of a `same` one in ten may, of the rest one in a hundred"


def test_the_row_is_of_one_estimate() -> None:
    change, turns = measured(0.05, 3)
    assert change.head_ms / change.base_ms - 1 == pytest.approx(change.relative)
    assert change.low < change.relative < change.high
    assert sum(change.sessions) == len(turns)


def test_order_is_balanced_in_every_block_seeded_and_not_always_the_same() -> None:
    arms = list(islice(order("a"), 400))
    blocks = ["".join(arm.value[0] for arm in arms[at : at + 4]) for at in range(0, 400, 4)]
    assert {block.count("b") for block in blocks} == {2}
    assert len(set(blocks)) == 6
    assert arms == list(islice(order("a"), 400)) != list(islice(order("b"), 400))


def test_sessions_taken_before_are_part_of_the_first_block() -> None:
    arms = [Arm.HEAD, *islice(order("a", [Arm.HEAD]), 7)]
    assert Counter(arms[:4]) == Counter(arms[4:]) == {Arm.BASE: 2, Arm.HEAD: 2}


def test_learned_noise_decides_sooner_and_a_noisier_run_sets_it_aside() -> None:
    plain, known = ([len(measured(0.05, seed, noise)[1]) for seed in range(40)] for noise in (None, Noise(SD, 20)))
    assert sum(known) < 0.9 * sum(plain)
    change, _ = measured(0.0, 5, Noise(SD / 10, 20))
    assert any("noisier than the learned noise" in reason for reason in change.reasons)


def test_what_it_says_it_could_have_seen_it_finds() -> None:
    """The change that a spent budget sees is found, at that noise, in 95 of 100."""
    plan = TurnPlan(Rules(relevant=0.001), most_sessions=16)
    seen = float(np.median([measured(0.0, seed, Noise(SD, 40), plan)[0].sees for seed in range(10)]))
    found = [measured(seen, 1000 + seed, Noise(SD, 40), plan)[0].verdict for seed in range(100)]
    assert found.count(Verdict.SLOWER) >= 89


def test_more_sessions_are_asked_for_until_the_relevant_change_can_be_seen() -> None:
    change, turns = measured(0.0, 2, plan=TurnPlan(Rules(relevant=0.01), most_sessions=8))
    assert change.verdict is Verdict.INCONCLUSIVE
    assert change.sees > 0.01
    assert change.more_sessions
    assert change.more_sessions % 4 == 0
    later = SD * math.sqrt(4 / (len(turns) + change.more_sessions))
    assert visible_change(later, 100, 2.6) < 0.015


def test_a_session_that_cannot_be_used_keeps_its_place_and_is_named() -> None:
    turns = [turn(Arm.BASE, 0.0), session_turn(Arm.HEAD, [20.0] * 10), turn(Arm.HEAD, 0.1), turn(Arm.BASE, 0.001)]
    change = judge_turns(turns)
    assert change.sessions == (2, 1)
    assert change.reasons[-1] == "2. head: all 10 samples are 20 ms: the clock is too coarse or stands still"


@pytest.mark.parametrize(
    "samples", [[], [20.0], [20.0] * 10, [math.nan] * 10, [0.0] * 10, [-1.0] * 10, [math.inf] * 10, [1e300] * 10]
)
def test_bad_samples_give_no_verdict_and_no_number(samples: list[float]) -> None:
    change = judge_turns([session_turn(arm, samples) for arm in (Arm.BASE, Arm.HEAD, Arm.HEAD, Arm.BASE)] * 8)
    assert change.verdict is Verdict.INCONCLUSIVE
    assert math.isnan(change.relative)
    assert change.reasons


def test_ticks_coarser_than_the_change_prove_neither_a_change_nor_its_absence() -> None:
    """A clock of 1 ms under a latency of 20: sessions agree to the last digit, and that means nothing."""
    base = [[20.0] * 6 + [21.0] * 6, [20.0] * 7 + [21.0] * 5]
    turns = [session_turn(arm, base[place % 2]) for place, arm in enumerate(islice(order("t"), 8))]
    assert judge_turns(turns, TurnPlan(Rules(relevant=0.005))).verdict is Verdict.INCONCLUSIVE


def test_fewer_than_two_sessions_a_side_are_inconclusive() -> None:
    assert "run more" in judge_turns([turn(Arm.BASE, 0.0)]).reasons[0]
    one_each = judge_turns([turn(Arm.BASE, 0.0), turn(Arm.HEAD, 0.3)])
    assert one_each.verdict is Verdict.INCONCLUSIVE


@given(st.lists(st.tuples(st.sampled_from(Arm), st.lists(st.floats(), max_size=8)), max_size=12))
def test_no_numbers_raise_and_none_pass_silently(taken: list[tuple[Arm, list[float]]]) -> None:
    change = judge_turns([session_turn(arm, samples) for arm, samples in taken])
    assert change.verdict is not Verdict.INCONCLUSIVE or change.reasons


def test_swapping_the_sides_swaps_the_estimate() -> None:
    _, turns = measured(0.05, 4, drift=0.01)
    other = {Arm.BASE: Arm.HEAD, Arm.HEAD: Arm.BASE}
    there, back = estimate_turns(turns), estimate_turns([Turn(other[one.arm], one.session) for one in turns])
    assert there
    assert back
    assert (back.shift, back.error) == pytest.approx((-there.shift, there.error))
