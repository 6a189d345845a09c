"""The search for the first operator that is off, on networks whose defect is known."""

from pathlib import Path

from fake_records import a_record
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from harness.base.outcome import Outcome, Owner
from harness.tools.explain.locate import locate
from harness.tools.explain.pieces import CuttableNetwork, Piece
from harness.tools.explain.trial import Finding, PieceTrial

WRONG = Finding(Outcome.WRONG_RESULT, Owner.PATH)


def a_chain(count: int) -> CuttableNetwork:
    nodes = [helper.make_node("Relu", [f"t{n}"], [f"t{n + 1}"]) for n in range(count)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1,)) for name in ("t0", f"t{count}")]
    return CuttableNetwork(helper.make_model(helper.make_graph(nodes, "chain", ends[:1], ends[1:])))


def quietly(_line: str) -> None:
    """Nobody listens."""


class Bench:
    """Runs pieces of a chain in which operator `off` is wrong wherever the `together - 1` before it are fused to it."""

    def __init__(self, off: int, together: int = 1, broken: frozenset[int] = frozenset()) -> None:
        self.off, self.together, self.broken = off, together, broken
        self.names: list[str] = []

    def __call__(self, piece: Piece, name: str) -> PieceTrial:
        self.names.append(name)
        there = {operator.number for operator in piece.operators}
        needed = set(range(self.off - self.together + 1, self.off + 1))
        beginning = name.startswith("first")
        outcome = Outcome.WRONG_RESULT if needed <= there else Outcome.OK
        if beginning and len(there) in self.broken:
            outcome = Outcome.COMPILE_ERROR
        return PieceTrial(piece, a_record(outcome=outcome), Path(name))


@given(st.data(), st.integers(1, 60))
def test_the_operator_and_the_smallest_piece_around_it_are_found_in_few_runs(data: st.DataObject, count: int) -> None:
    off = data.draw(st.integers(1, count))
    together = data.draw(st.integers(1, min(off, 16)))
    bench = Bench(off, together)
    said: list[str] = []
    found = locate(a_chain(count), WRONG, bench, said.append)
    assert len(said) == len(bench.names), "a line for each piece, as each may take a minute"
    assert found.first.number == off
    assert len(found.candidates) == 1
    assert found.smallest is not None
    assert len(found.smallest.piece.operators) == together
    assert len(bench.names) <= count.bit_length() + 9  # of the first search, and two times log2(16) of the second
    assert len(set(bench.names)) == len(bench.names)


def test_where_cuts_come_to_something_else_all_that_may_be_first_are_named() -> None:
    found = locate(a_chain(6), WRONG, Bench(off=4, broken=frozenset({3, 4})), quietly)
    assert [operator.number for operator in found.candidates] == [3, 4, 5]


def test_a_defect_that_no_piece_around_shows_is_not_given_one() -> None:
    found = locate(a_chain(40), WRONG, Bench(off=30, together=25), quietly)
    assert found.first.number == 30
    assert found.smallest is None
    assert max(len(trial.piece.operators) for trial in found.around) == 16


def test_what_could_be_built_is_past_a_compile_error_though_the_device_cannot_run_it() -> None:
    def run(piece: Piece, name: str) -> PieceTrial:
        fails = any(operator.number == 5 for operator in piece.operators)
        facts = {"outcome": Outcome.COMPILE_ERROR} if fails else {"outcome": Outcome.UNSUPPORTED, "library_bytes": 1000}
        return PieceTrial(piece, a_record(**facts), Path(name))

    found = locate(a_chain(9), Finding(Outcome.COMPILE_ERROR, Owner.COMPILER), run, quietly)
    assert [operator.number for operator in found.candidates] == [5]


def test_a_defect_of_the_importer_is_not_mistaken_for_one_of_the_path() -> None:
    def run(piece: Piece, name: str) -> PieceTrial:
        there = {operator.number for operator in piece.operators}
        owner = Owner.IMPORTER if 7 in there else Owner.PATH
        return PieceTrial(
            piece, a_record(outcome=Outcome.WRONG_RESULT if there & {3, 7} else Outcome.OK, owner=owner), Path(name)
        )

    found = locate(a_chain(9), Finding(Outcome.WRONG_RESULT, Owner.IMPORTER), run, quietly)
    assert [operator.number for operator in found.candidates] == [7]
