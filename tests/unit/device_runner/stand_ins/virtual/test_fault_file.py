from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.stand_ins.virtual.fault_file import STROKES, Dice, Stroke
from device_runner.stand_ins.virtual.faults import Chance

kinds = st.sampled_from(sorted(STROKES))


def drawn(chance: Chance, operations: list[str]) -> list[Stroke | None]:
    dice = Dice()
    return [dice.draw(operation, chance) for operation in operations]


@given(st.integers(), st.lists(kinds, max_size=20), st.lists(kinds, max_size=20))
def test_what_strikes_an_operation_does_not_depend_on_others(seed: int, one: list[str], other: list[str]) -> None:
    chance = Chance(seed, 0.5)
    for kind in STROKES:
        apart = drawn(chance, [kind] * 40)
        mixed = [stroke for name, stroke in zip(one + other, drawn(chance, one + other), strict=True) if name == kind]
        assert mixed == apart[: len(mixed)]


@given(st.integers(), kinds)
def test_what_strikes_is_one_of_its_kind(seed: int, kind: str) -> None:
    for stroke in drawn(Chance(seed, 1.0), [kind] * 10):
        assert stroke is not None
        assert stroke.what in STROKES[kind]
        assert 0 <= stroke.when < 1


@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0])
def test_as_many_are_struck_as_the_rate_says(rate: float) -> None:
    struck = sum(stroke is not None for stroke in drawn(Chance(7, rate), ["shell"] * 2000))
    assert struck / 2000 == pytest.approx(rate, abs=0.03)


def test_another_chance_begins_from_the_start() -> None:
    dice, chance = Dice(), Chance(1, 0.5)
    first = [dice.draw("push", chance) for _ in range(10)]
    dice.draw("push", Chance(2, 0.5))
    assert [dice.draw("push", chance) for _ in range(10)] == first
