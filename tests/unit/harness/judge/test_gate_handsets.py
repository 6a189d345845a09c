"""Handsets of one model: when a latency of one may be held to another's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_records import IDENTITY, a_record, blessing_of, sessions

from device_runner.device import Identity
from harness.judge.gate import Gate, why_two_series
from harness.judge.noise import PROFILES, NoiseProfile
from harness.judge.sides import SeriesKey, model_of, of_one_model, sides_of
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.tools.calibrate.calibration import profile_of

CASE = "tiny-opencl-float32-untuned"
OTHER, OTHER_MODEL = replace(IDENTITY, serial="another"), replace(IDENTITY, serial="another", driver="2")
RULES = Rules()


def profile(ms: float, identity: Identity, artifact: str = "a", seed: int = 0) -> NoiseProfile:
    made = profile_of(sessions(ms, 16, seed, identity=identity, artifact=artifact), RULES)
    assert isinstance(made, NoiseProfile)
    return made


def apart(mine: NoiseProfile, theirs: NoiseProfile) -> str:
    one, other = (SeriesKey(kept.identity_key, CASE) for kept in (mine, theirs))
    return why_two_series(one, other, {one: mine, other: theirs}, RULES)


def test_a_key_without_its_handset_is_that_of_the_model() -> None:
    assert model_of(IDENTITY.key) == model_of(OTHER.key) != model_of(OTHER_MODEL.key)
    assert model_of("phone-Adreno740-cc0c2706") == "phone-Adreno740-cc0c2706"
    assert model_of("virtual-PoCL-6a709a4d-beef5") == "virtual-PoCL-6a709a4d-beef5"
    assert of_one_model([IDENTITY.key], [OTHER_MODEL.key]) == ""


def test_handsets_that_calibration_found_alike_are_pooled_and_others_are_not() -> None:
    mine = profile(10, IDENTITY)
    assert apart(mine, profile(10.05, OTHER, seed=1)) == ""
    assert "between them is not excluded" in apart(mine, profile(10.6, OTHER, seed=1))
    assert apart(mine, profile(10, OTHER, artifact="b", seed=1)) == "they were calibrated with different builds"
    assert (
        why_two_series(SeriesKey(IDENTITY.key, CASE), SeriesKey(OTHER.key, CASE), {}, RULES)
        == "not both were calibrated"
    )


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Of one handset with a baseline; that, another one and one with another driver were calibrated."""
    blessing = blessing_of(sessions(10))
    assert blessing.baseline
    blessing.baseline.save(tmp_path)
    for one in (profile(10, IDENTITY), profile(10.05, OTHER, seed=1), profile(10, OTHER_MODEL, seed=2)):
        one.save(tmp_path / PROFILES)
    return Gate.read(tmp_path, None, lambda _: True, RULES, 16, as_shipped=False)


@pytest.mark.parametrize(
    ("identity", "verdict"),
    [
        (IDENTITY, Verdict.SLOWER),
        (OTHER, Verdict.SLOWER),
        (OTHER_MODEL, Verdict.NEW),
        (replace(IDENTITY, serial="a third"), Verdict.NEW),
    ],
    ids=["its own", "found alike", "another driver", "never calibrated"],
)
def test_a_gate_holds_a_handset_to_its_own_baseline_or_to_one_that_was_found_alike(
    gate: Gate, identity: Identity, verdict: Verdict
) -> None:
    found = sides_of(sessions(13, seed=4, artifact="b", identity=identity))
    result = gate.compare(found, lambda _: "nothing is measured again")
    assert [comparison.verdict for comparison in result.cases] == [verdict]


def test_a_baseline_of_its_own_comes_first(gate: Gate, tmp_path: Path) -> None:
    blessing = blessing_of(sessions(13, identity=OTHER))
    assert blessing.baseline
    blessing.baseline.save(tmp_path)
    both = Gate.read(tmp_path, None, lambda _: True, RULES, 16, as_shipped=False)
    found = sides_of([a_record(wall_ms=one.wall_ms, identity=OTHER, artifact="b") for one in sessions(13, 6, seed=5)])
    (comparison,) = both.compare(found, lambda _: "no").cases
    assert comparison.verdict is not Verdict.SLOWER
    assert comparison.base
    assert comparison.base.key.identity == OTHER.key
