"""Which path wins."""

from typing import Any

import numpy as np
import pytest
from fake_records import virtual_record

from harness.base.outcome import Outcome
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.judge.path_ranking import rank_paths
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record


def of_path(path: str, wall_ms: list[float], **facts: Any) -> Record:
    return virtual_record(path=path, case=f"tiny-{path}-float32-untuned", wall_ms=wall_ms, **facts)


def conclusion(*records: Record) -> str:
    (ranked,) = rank_paths(records)
    return ranked.conclusion


def sessions(path: str, at_ms: float, count: int, generator: np.random.Generator) -> list[Record]:
    """Sessions that differ by 1 %, with samples that differ by half as much."""
    biased = at_ms * np.exp(0.01 * generator.normal(size=count))
    return [of_path(path, (bias * np.exp(0.005 * generator.normal(size=10))).tolist()) for bias in biased]


def test_the_fastest_path_wins_by_the_evidence_of_several_sessions() -> None:
    generator = np.random.default_rng(1)
    slow, fast = sessions("opencl", 20.0, 4, generator), sessions("texture", 10.0, 4, generator)
    (ranked,) = rank_paths([*slow, *fast])
    assert ranked.lead
    assert ranked.lead.verdict is Verdict.SLOWER
    assert ranked.conclusion.startswith("texture wins, 2.0")
    span = f"({1 + ranked.lead.low:.2f} to {1 + ranked.lead.high:.2f})"
    assert 1.9 < 1 + ranked.lead.low < 2.0 < 1 + ranked.lead.high < 2.2
    assert ranked.conclusion.endswith(f"as fast as opencl {span}")
    assert [standing.sessions for standing in ranked.standings] == [4, 4]


def test_one_session_a_path_cannot_tell_however_steady_its_samples() -> None:
    generator = np.random.default_rng(2)
    told = conclusion(*sessions("opencl", 10.0, 1, generator), *sessions("texture", 10.4, 1, generator))
    assert told.startswith("cannot tell: opencl and texture are ")
    assert "1 session against 1" in told


def test_one_session_a_path_says_what_it_could_have_seen_where_the_noise_of_the_rig_is_known() -> None:
    generator = np.random.default_rng(3)
    others = [
        record.model_copy(update={"case": f"net{n}-opencl-float32-untuned", "model": f"net{n}"})
        for n in range(4)
        for record in sessions("opencl", 30.0, 6, generator)
    ]
    pair = [*sessions("opencl", 10.0, 1, generator), *sessions("texture", 10.1, 1, generator)]
    told = next(one.conclusion for one in rank_paths([*others, *pair]) if one.model == "tiny")
    assert told.startswith("no difference seen: ")
    assert "could have been seen" in told


@pytest.mark.parametrize("count", [1, 2, 4])
def test_two_identical_paths_win_in_at_most_one_case_of_twenty(count: int) -> None:
    generator = np.random.default_rng(4)
    won = 0
    for _ in range(150):
        pair = [record for path in ("opencl", "texture") for record in sessions(path, 10.0, count, generator)]
        won += "wins" in conclusion(*pair)
    assert won <= 7


def test_quick_looks_are_named_as_the_reason_for_no_latency() -> None:
    quick = [of_path(path, [10.0] * 3, quick=True) for path in ("opencl", "texture")]
    assert conclusion(*quick) == "no path has a latency: a quick look's samples are too few"


def test_an_emulated_path_takes_part_in_correctness_only() -> None:
    offload = OffloadReport((), (), 10, 9, 10, 9, boundary_bytes=0, operator_share=0.9, mac_share=0.9)
    emulated = of_path("clml", [], emulated=("gpu", "clml"), parts=[offload])
    (ranked,) = rank_paths([emulated, of_path("opencl", [10.0] * 10)])
    assert ranked.conclusion == "only opencl has a latency"
    assert [(s.path, s.wall_ms, s.emulated, s.mac_share) for s in ranked.standings] == [
        ("opencl", 10.0, False, None),
        ("clml", None, True, 0.9),
    ]


def test_a_wrong_path_has_no_latency() -> None:
    wrong = of_path("texture", [], outcome=Outcome.WRONG_RESULT)
    assert conclusion(wrong, of_path("opencl", [10.0] * 10)) == "only opencl has a latency"
    assert conclusion(wrong) == "no path has a latency"


def test_only_the_latest_build_of_a_path_counts_and_devices_are_kept_apart() -> None:
    old, new = of_path("opencl", [50.0] * 10, artifact="old"), of_path("opencl", [10.0] * 10)
    elsewhere = of_path("texture", [1.0] * 10, identity_key="another phone")
    as_shipped = of_path("opencl", [1.0] * 10, as_shipped=True)
    assert [c.standings[0].wall_ms for c in rank_paths([old, new, elsewhere, as_shipped])] == [10.0, 1.0]


def test_a_path_whose_answer_proves_nothing_is_marked() -> None:
    vacuous = of_path("texture", [10.0] * 10, vacuous=["output 0 of 1 is all zero"])
    (ranked,) = rank_paths([of_path("opencl", [20.0] * 10), vacuous])
    assert [(standing.path, standing.remarks) for standing in ranked.standings] == [
        ("texture", ("vacuous",)),
        ("opencl", ()),
    ]
    assert ranked.conclusion.endswith("; texture is vacuous")
