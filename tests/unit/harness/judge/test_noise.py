"""Noise that nobody asked for: learned from every session that was kept."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_records import IDENTITY, a_record, blessing_of, sessions

from harness.judge.compare import compare_sides
from harness.judge.noise import NoiseProfile, history_records, learn, stored_records
from harness.judge.sides import SeriesKey, sides_of
from harness.judge.stats.noise import Spread, StoredSession, pool_of, pooled_variance, spread_of
from harness.judge.stats.pair import Rules
from harness.judge.stats.session import DAY_SD, Location
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record
from harness.tools.calibrate.calibration import profile_of

KEY = SeriesKey(IDENTITY.key, "tiny-opencl-float32-untuned")
SD = 0.01


def kept(
    count: int, seed: int, sd: float = SD, days: int = 1, day_sd: float = 0.0, builds: int = 1
) -> list[StoredSession]:
    """So many sessions on each day and of each build; builds lie 20 % apart."""
    generator = np.random.default_rng(seed)
    shifts = day_sd * generator.normal(size=days)
    return [
        StoredSession(str(build), str(day), float(0.2 * build + shifts[day] + sd * generator.normal()), 0.001)
        for build in range(builds)
        for day in range(days)
        for _ in range(count)
    ]


def test_sessions_are_compared_with_those_of_their_own_build_and_day() -> None:
    found = spread_of(kept(10, 0, days=4, day_sd=0.1, builds=3))
    assert found.df == 3 * 4 * 9
    assert math.sqrt(found.variance) == pytest.approx(SD, rel=0.2)
    assert spread_of(kept(1, 0, days=5)) == Spread()


def test_the_kernels_clock_has_a_noise_of_its_own_where_it_was_read() -> None:
    records = [record.model_copy(update={"device_ms": [ms / 2 for ms in record.wall_ms]}) for record in sessions(8)]
    model = learn(records)
    noises = [of.noise(KEY) for of in (model, model.kernels) if of]
    assert [noise.sd for noise in noises if noise] == [pytest.approx(noises[0].sd if noises[0] else 0)] * 2
    without = learn(sessions(8)).kernels
    assert without
    assert without.noise(KEY) is None


def test_a_series_with_few_sessions_leans_on_its_neighbours() -> None:
    series = {number: kept(5, number) for number in range(100)}
    spreads = {number: spread_of(of) for number, of in series.items()}
    pool = pool_of(series, spreads)
    assert math.sqrt(pool.common.variance) == pytest.approx(SD, rel=0.15)
    assert pool.common.df > 8, "they are alike, and so tell much of each other"
    pooled = [pool.noise(spreads[number]).sd for number in series]
    alone = [math.sqrt(spread.variance) for spread in spreads.values()]
    assert np.std(pooled) < np.std(alone) / 2
    assert pool.noise(Spread()).sd == pytest.approx(SD, rel=0.15)


def test_series_that_are_not_alike_tell_little_of_each_other() -> None:
    series = {number: kept(9, number, sd=SD * 4 ** (number % 5 - 2)) for number in range(30)}
    spreads = {number: spread_of(of) for number, of in series.items()}
    assert pool_of(series, spreads).common.df < 3


def test_days_are_learned_from_days_and_begin_as_an_assumption() -> None:
    none = pool_of({}, {}).noise(Spread())
    assert (none.is_known, none.day_sd) == (False, DAY_SD)
    for day_sd in (0.001, 0.08):
        series = {number: kept(4, 5, days=20, day_sd=day_sd) for number in range(3)}
        learned = pool_of(series, {number: spread_of(of) for number, of in series.items()})
        assert abs(math.log(math.sqrt(learned.day.variance) / DAY_SD)) > 0.5
        assert learned.day.df == pytest.approx(4 + 19)


def test_two_sources_of_a_series_count_by_their_sessions() -> None:
    assert pooled_variance([Spread(1.0, 3), Spread(4.0, 1)]) == Spread(7 / 4, 4)
    assert pooled_variance([]) == Spread()


def test_a_rig_that_ran_before_is_known_and_a_fresh_one_is_not() -> None:
    known = learn(sessions(10, 12))
    noise = known.noise(KEY)
    assert noise
    assert noise.sd == pytest.approx(0.012, rel=0.4)
    assert noise.df in (10, 11)
    assert known.noise(KEY._replace(identity="another")) is None
    assert learn().noises([KEY]) == {}


def test_records_baselines_and_profiles_feed_one_model_and_a_session_counts_once() -> None:
    records = sessions(10, 8)
    blessing = blessing_of(records)
    assert blessing.baseline
    assert learn(records, [blessing.baseline]).spreads[KEY].df < 16
    profile = profile_of(sessions(10, 16, seed=1), Rules())
    assert isinstance(profile, NoiseProfile)
    all_three = learn(records, [blessing.baseline], {KEY: profile})
    assert all_three.spreads[KEY].df == pytest.approx(learn(records, [blessing.baseline]).spreads[KEY].df + profile.df)


def test_what_cannot_be_used_is_left_out() -> None:
    odd = [a_record(wall_ms=times) for times in ([5.0] * 10, [math.nan] * 10, [1.0])]
    assert learn(odd).spreads[KEY] == Spread()
    assert not learn(odd).pools[KEY.identity].noise(Spread()).is_known


def test_the_last_records_of_each_series_are_read(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    assert stored_records(file, {KEY.case}) == []
    taken: list[Record] = [*sessions(10, 70), *sessions(5, 3, identity=replace(IDENTITY, serial="other"))]
    file.write_text("".join(record.line() + "\n" for record in taken))
    read = stored_records(file, {KEY.case})
    assert len(read) == 64 + 3
    assert stored_records(file, {"another"}) == []


def test_the_newest_commits_of_a_history_tell_of_noise_too(tmp_path: Path) -> None:
    assert history_records(tmp_path / "none", {KEY.case}) == []
    machine = tmp_path / IDENTITY.key
    machine.mkdir()
    for commit, record in enumerate(sessions(10, 12)):
        (machine / f"{commit:08x}-virtualenv.jsonl").write_text(record.line() + "\n{torn\n")
    found = history_records(tmp_path, {KEY.case})
    assert len(found) == 12
    assert learn(found).spreads[KEY].df == learn(sessions(10, 12)).spreads[KEY].df
    assert history_records(tmp_path, {"another"}) == []


def late(count: int, seed: int, artifact: str = "a", factor: float = 1.0) -> list[Record]:
    """Sessions of which up to half of the samples are late by up to 12 %; the others agree to 0.3 %."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        lateness = 0.12 * generator.random(12) * (generator.permutation(12) < generator.integers(0, 7))
        logs = 0.003 * generator.normal() + 0.001 * generator.normal(size=12) + lateness
        found.append(a_record(wall_ms=(20 * factor * np.exp(logs)).tolist(), artifact=artifact))
    return found


def test_sessions_are_located_by_what_is_steadiest_of_their_series_and_clock() -> None:
    plain, loose = learn(sessions(20, 16)), learn(late(16, 1))
    assert plain.noises([KEY])[KEY].location is Location.MIDDLE
    noise = loose.noises([KEY])[KEY]
    assert noise.location is Location.LOW
    assert noise.sd < 0.01
    assert learn(late(4, 1)).noises([KEY])[KEY].location is Location.MIDDLE, "four sessions tell too little"


def test_base_and_head_are_held_to_the_same_location_and_the_verdict_says_so() -> None:
    base, head = (sides_of(late(6, seed, letter, factor)) for seed, letter, factor in ((2, "b", 1.0), (3, "h", 1.03)))
    noises = learn(late(16, 1)).noises([KEY])
    (told,) = compare_sides(base, head, noises=noises, together=True).cases
    assert told.verdict is Verdict.SLOWER
    assert any("lower quartiles" in reason for reason in told.reasons)
    (blind,) = compare_sides(base, head, together=True).cases
    assert told.change
    assert blind.change
    assert told.change.high - told.change.low < 0.6 * (blind.change.high - blind.change.low)
