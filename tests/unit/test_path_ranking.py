"""Which path wins."""

from typing import Any

from test_record import make

from harness.judge.path_ranking import rank_paths
from harness.run.outcome import Outcome
from harness.run.record import Record


def a_record(path: str, wall_ms: list[float], **facts: Any) -> Record:
    return make(path=path, case=f"tiny-{path}-float32-untuned", wall_ms=wall_ms, **facts)


def conclusion(*records: Record) -> str:
    (ranked,) = rank_paths(records)
    return ranked.conclusion


def test_the_fastest_path_wins_by_the_ratio_of_medians() -> None:
    slow, fast = a_record("opencl", [20.0] * 9 + [90.0]), a_record("texture", [10.0] * 10)
    assert conclusion(slow, fast) == "texture wins, 2.00 times as fast as opencl (noise 0.0%)"


def test_a_lead_within_the_noise_is_none() -> None:
    noisy, other = a_record("opencl", [9.0, 10.0, 11.0]), a_record("texture", [9.5, 10.5, 11.5])
    assert "opencl and texture are within the noise" in conclusion(noisy, other)


def test_an_emulated_path_takes_part_in_correctness_only() -> None:
    emulated = a_record("clml", [], emulated=("gpu", "clml"), offload={"mac_share": 0.9})
    (ranked,) = rank_paths([emulated, a_record("opencl", [10.0] * 10)])
    assert ranked.conclusion == "only opencl has a latency"
    assert [(s.path, s.wall_ms, s.emulated, s.mac_share) for s in ranked.standings] == [
        ("opencl", 10.0, False, None),
        ("clml", None, True, 0.9),
    ]


def test_a_wrong_path_has_no_latency() -> None:
    wrong = a_record("texture", [], outcome=Outcome.WRONG_RESULT)
    assert conclusion(wrong, a_record("opencl", [10.0] * 10)) == "only opencl has a latency"
    assert conclusion(wrong) == "no path has a latency"


def test_only_the_latest_record_of_a_path_counts_and_devices_are_kept_apart() -> None:
    old, new = a_record("opencl", [50.0] * 10), a_record("opencl", [10.0] * 10)
    elsewhere = a_record("texture", [1.0] * 10, identity_key="another phone")
    as_shipped = a_record("opencl", [1.0] * 10, as_shipped=True)
    assert [c.standings[0].wall_ms for c in rank_paths([old, new, elsewhere, as_shipped])] == [10.0, 1.0]


def test_a_path_whose_answer_proves_nothing_is_marked() -> None:
    vacuous = a_record("texture", [10.0] * 10, vacuous=["output 0 of 1 is all zero"])
    (ranked,) = rank_paths([a_record("opencl", [20.0] * 10), vacuous])
    assert [(standing.path, standing.remarks) for standing in ranked.standings] == [
        ("texture", ("vacuous",)),
        ("opencl", ()),
    ]
    assert ranked.conclusion.endswith("(noise 0.0%); texture is vacuous")
