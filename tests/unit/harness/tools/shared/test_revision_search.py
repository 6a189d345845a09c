"""Bisection over random histories, some of whose revisions cannot be judged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.tools.shared.revision_search import RevisionSearch, RevisionState


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], int, set[int]]:
    """A line, the index of its first bad revision, and what does not build: never one of the ends."""
    length = draw(st.integers(2, 300))
    first_bad = draw(st.integers(1, length - 1))
    broken = draw(st.sets(st.integers(1, max(1, length - 2)), max_size=length // 2)) if length > 2 else set()
    return [f"r{index}" for index in range(length)], first_bad, broken


def search_all(line: list[str], first_bad: int, broken: set[int]) -> tuple[RevisionSearch, list[RevisionState]]:
    search, seen = RevisionSearch(line), list[RevisionState]()
    while name := search.next:
        index = line.index(name)
        state = (
            RevisionState.SKIP if index in broken else RevisionState.BAD if index >= first_bad else RevisionState.GOOD
        )
        seen.append(state)
        search = RevisionSearch(line, {**search.states, name: state})
    return search, seen


@given(histories())
def test_the_true_first_bad_revision_is_always_among_the_candidates(history: tuple[list[str], int, set[int]]) -> None:
    line, first_bad, broken = history
    search, _ = search_all(line, first_bad, broken)
    assert line[first_bad] in search.candidates
    assert search.bad == search.candidates[-1]
    assert {line.index(name) for name in search.candidates[:-1]} <= broken


@given(histories())
def test_inspections_are_logarithmic_but_for_those_that_told_nothing(history: tuple[list[str], int, set[int]]) -> None:
    line, first_bad, broken = history
    inspections_left = RevisionSearch(line).inspections_left
    _, seen = search_all(line, first_bad, broken)
    skipped = seen.count(RevisionState.SKIP)
    assert len(seen) - skipped <= inspections_left + skipped


@given(st.integers(2, 2000), st.data())
def test_without_skips_it_names_one_within_the_bound(length: int, data: st.DataObject) -> None:
    line = [f"r{index}" for index in range(length)]
    first_bad = data.draw(st.integers(1, length - 1))
    search, seen = search_all(line, first_bad, set())
    assert search.candidates == [line[first_bad]]
    assert search.good == line[first_bad - 1]
    assert len(seen) <= (length - 2).bit_length()


def test_neighbours_of_what_does_not_build_are_left_for_later() -> None:
    line = [f"r{index}" for index in range(66)]
    looked = []
    known: dict[str, RevisionState] = {}
    for _ in range(4):
        name = RevisionSearch(line, known).next
        assert name
        looked.append(int(name[1:]))
        known[name] = RevisionState.SKIP
    assert all(abs(a - b) > 5 for index, a in enumerate(looked) for b in looked[:index])


def test_a_line_of_two_needs_no_inspection() -> None:
    assert RevisionSearch(["good", "bad"]).next is None
    assert RevisionSearch(["good", "bad"]).candidates == ["bad"]
