"""Base against head: verdicts, means, flips, and what bad input comes to."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from fake_records import IDENTITY, a_record, sessions
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome
from harness.judge.compare import Comparison, ComparisonResult, compare_sides, exit_code
from harness.judge.confirm import settle
from harness.judge.path_ranking import path_flips, path_means
from harness.judge.report.comparison import export_comparison
from harness.judge.report.verdicts import verdict_table
from harness.judge.sides import Sides, clock_difference, sides_of
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.measure.facts import Reference
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record
from harness.tools.shared.comparison_view import headline

OPENCL, TEXTURE = "tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"


def compare(base: list[Record], head: list[Record], *, gauged: bool = True) -> ComparisonResult:
    return compare_sides(sides_of(base), sides_of(head), gauged=gauged)


def the_one(base: list[Record], head: list[Record]) -> Comparison:
    (comparison,) = compare(base, head).cases
    return comparison


def test_a_latency_that_grew_over_several_sessions_is_slower_and_the_shell_is_told() -> None:
    comparison = the_one(sessions(10), sessions(13, seed=1, artifact="b"))
    assert comparison.verdict is Verdict.SLOWER
    assert (comparison.confidence or 0) > 0.99
    assert exit_code(ComparisonResult([comparison])) is ExitCode.SLOWER
    back = the_one(sessions(13, seed=1, artifact="b"), sessions(10))
    assert back.verdict is Verdict.FASTER
    assert exit_code(ComparisonResult([back])) is ExitCode.GOOD


@pytest.mark.parametrize(("base", "head"), [(1, 1), (4, 1), (1, 4)])
def test_one_session_on_a_side_never_proves_a_change(base: int, head: int) -> None:
    comparison = the_one(sessions(10, base), sessions(20, head, seed=1))
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "session" in comparison.reasons[0]
    assert exit_code(ComparisonResult([comparison])) is ExitCode.NOTHING_MEASURED


def at_clocks(**shares: float) -> dict[str, Any]:
    return {"steadiness": {"clock_histogram": {name.removeprefix("at"): share for name, share in shares.items()}}}


FAST, SLOW = at_clocks(at800=0.97, at600=0.03), at_clocks(at800=0.4, at600=0.6)


@pytest.mark.parametrize("ms", [10, 13])
def test_where_the_gpu_ran_at_other_clocks_there_is_no_verdict(ms: float) -> None:
    comparison = the_one(sessions(10, **FAST), sessions(ms, seed=1, artifact="b", **SLOW))
    assert comparison.verdict is Verdict.INCONCLUSIVE
    told = "the GPU ran at other clocks: base 97% of its time at 800 MHz, head 60% of its time at 600 MHz"
    assert comparison.reasons[0] == told


def test_of_clocks_that_were_used_alike_the_first_is_named() -> None:
    even = {str(clock): 0.125 for clock in range(300, 1100, 100)}
    told = "the GPU ran at other clocks: base 12% of its time at 300 MHz, head 100% of its time at 200 MHz"
    assert clock_difference([even], [{"200": 1.0}]) == told


@pytest.mark.parametrize(
    "head",
    [
        at_clocks(at800=0.9, at600=0.1),
        {},
        {"steadiness": {"clock_histogram": {"600": 40.0}}},
        {"steadiness": {"clock_histogram": "600"}},
        {"steadiness": {"clock_histogram": {"600": None}}},
    ],
    ids=["about the same", "not known", "no shares", "text", "nothing"],
)
def test_clocks_that_are_alike_or_not_known_are_no_reason_to_doubt(head: dict[str, Any]) -> None:
    assert the_one(sessions(10, **FAST), sessions(13, seed=1, artifact="b", **head)).verdict is Verdict.SLOWER


OLD, REBUILT = (replace(IDENTITY, runtime=digest * 16) for digest in "12")


def test_a_rebuilt_runtime_is_compared_and_named_beside_the_change() -> None:
    comparison = the_one(sessions(10, identity=OLD), sessions(13, seed=1, identity=REBUILT))
    assert comparison.verdict is Verdict.SLOWER
    assert comparison.reasons == (
        "the artifact is the same: the runtime or the device changed, not the compiler",
        "the phone's runtime is another one (base 11111111, head 22222222)",
    )
    wrong = the_one(sessions(10, identity=OLD), [a_record(identity=REBUILT, outcome=Outcome.WRONG_RESULT)])
    assert wrong.verdict is Verdict.WRONG
    assert "the phone's runtime is another one" in wrong.reasons[1]


@pytest.mark.parametrize("base", [OLD, IDENTITY])
def test_nothing_is_said_of_a_runtime_that_is_the_same_or_not_known(base: Identity) -> None:
    (comparison,) = compare(sessions(10, identity=base), sessions(13, seed=1, artifact="b", identity=OLD)).cases
    assert (comparison.verdict, comparison.reasons) == (Verdict.SLOWER, ())


def test_artifacts_are_no_control_on_another_runtime() -> None:
    control = "resnet18-opencl-float32-untuned"
    base = [*sessions(10, identity=OLD), *sessions(10, case=control, identity=OLD)]
    slower = sessions(13, seed=2, artifact="b", identity=REBUILT)
    result = compare(base, [*slower, *sessions(13, seed=1, case=control, identity=REBUILT)])
    assert result.fitness.fit is not False
    assert [comparison.verdict for comparison in result.cases] == [Verdict.SLOWER] * 2


def test_sessions_of_a_runtime_that_was_rebuilt_since_are_left_out() -> None:
    (side,) = sides_of([*sessions(10, 3, identity=OLD), *sessions(10, 2, identity=REBUILT)]).values()
    assert (len(side.sessions), side.runtime) == (2, REBUILT.runtime)


OTHER_SETTINGS = "ran with chunk = 512 and 256, which are two measurements: pin it in the suite, or bless anew"


def with_settings(ms: float, settings: dict[str, int], **facts: Any) -> Sides:
    return sides_of(sessions(ms, 4, settings=settings, **facts))


def test_where_other_settings_were_chosen_a_slowdown_is_open_and_the_shell_is_told() -> None:
    base = with_settings(10, {"chunk": 512})
    result = settle(
        compare_sides(base, with_settings(13, {"chunk": 256}, artifact="b" * 24)), Rules(), lambda _: "never"
    )
    (comparison,) = result.cases
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reasons.count(OTHER_SETTINGS) == 1
    assert "sessions in turns would have other settings, too" in comparison.reasons[0]
    assert comparison.suspicion is Verdict.SLOWER
    assert exit_code(result) is ExitCode.UNDECIDED


def test_artifacts_with_other_settings_are_no_control() -> None:
    result = compare_sides(with_settings(10, {"chunk": 512}), with_settings(13, {"chunk": 256}))
    assert result.fitness.fit is not False


def test_settings_that_one_side_does_not_know_are_no_reason_to_doubt() -> None:
    (comparison,) = compare_sides(with_settings(10, {}), with_settings(13, {"chunk": 256}, artifact="b" * 24)).cases
    assert comparison.verdict is Verdict.SLOWER


def test_sessions_with_settings_that_were_changed_since_are_left_out() -> None:
    records = [*sessions(10, 4, settings={"chunk": 512}), *sessions(13, 2, seed=1, settings={"chunk": 256})]
    (side,) = sides_of(records).values()
    assert (len(side.sessions), side.settings) == (2, {"chunk": 256})


def test_a_run_in_which_an_unchanged_artifact_changed_is_unfit_and_no_latency_of_it_is_believed() -> None:
    control, other = "resnet18-opencl-float32-untuned", sessions(13, seed=2, artifact="b")
    result = compare([*sessions(10), *sessions(10, case=control)], [*other, *sessions(13, seed=1, case=control)])
    assert [comparison.verdict for comparison in result.cases] == [Verdict.INCONCLUSIVE] * 2
    assert result.fitness.fit is False
    assert control in result.fitness.reasons[0]
    assert exit_code(result) is ExitCode.RIG_FAILURE


def probed(records: list[Record], ms: float, slowed: float = 1.3, kernel: str = "k") -> list[Record]:
    """The same sessions, with the times of a reference kernel."""
    waves = [(1 + wave / 1000) * ms * (1 + number / 500) for number in range(len(records)) for wave in (0, 3, -2, 1, 2)]
    return [
        record.model_copy(update={"parts": parts_of(Reference(kernel, times, [slowed * time for time in times]))})
        for record, times in zip(records, [waves[5 * n : 5 * n + 5] for n in range(len(records))], strict=True)
    ]


def test_with_a_quiet_reference_kernel_a_slower_case_is_the_compilers() -> None:
    result = compare(probed(sessions(10), 5), probed(sessions(13, seed=1, artifact="b"), 5))
    assert result.fitness.fit
    assert result.cases[0].verdict is Verdict.SLOWER


def test_if_the_reference_kernel_moved_the_rig_did_and_no_compiler_is_blamed() -> None:
    result = compare(probed(sessions(10), 5), probed(sessions(13, seed=1, artifact="b"), 6.5))
    assert result.cases[0].verdict is Verdict.INCONCLUSIVE
    assert "the reference kernel moved by +30.0%" in result.cases[0].reasons[0]
    assert "the rig changed, not the compiler" in result.fitness.reasons[0]
    assert exit_code(result) is ExitCode.RIG_FAILURE


def test_a_rig_that_does_not_see_a_slowed_kernel_shows_nothing() -> None:
    result = compare(probed(sessions(10), 5), probed(sessions(13, seed=1, artifact="b"), 5, slowed=1.02))
    assert result.cases[0].verdict is Verdict.INCONCLUSIVE
    assert "measures 1.02 times (head on" in result.fitness.reasons[0]
    assert exit_code(result) is ExitCode.RIG_FAILURE


def test_the_reference_kernel_of_another_compiler_is_no_measure_of_the_rig() -> None:
    result = compare(probed(sessions(10), 5), probed(sessions(13, seed=1, artifact="b"), 9, kernel="other"))
    assert result.fitness.fit
    assert result.cases[0].verdict is Verdict.SLOWER


def test_kernels_of_other_turns_on_one_side_are_judged_each_by_itself() -> None:
    base = probed(sessions(10), 5)
    head = sessions(13, 6, seed=1, artifact="b")
    several = [*probed(head[:4], 5), *probed(head[4:], 80, kernel="k of more turns")]
    assert compare(base, several).fitness.fit
    blind = [*probed(head[:4], 5), *probed(head[4:], 80, slowed=1.02, kernel="k of more turns")]
    assert "1.02 times (head on" in compare(base, blind).fitness.reasons[0]


def test_the_reference_kernel_moves_no_more_than_its_own_noise_allows() -> None:
    one_session = compare(probed(sessions(10), 5), probed(sessions(10, 1, seed=1, artifact="b"), 9))
    assert one_session.fitness.fit


def test_thousands_of_series_are_judged_by_their_reference_kernels_too() -> None:
    def many(seed: int, ms: float) -> list[Record]:
        some = probed(sessions(10, 4, seed=seed), ms)
        names = [f"m{number}-opencl-float32-untuned" for number in range(1200)]
        return [r.model_copy(update={"case": name, "artifact": f"{name}{seed}"}) for name in names for r in some]

    result = compare(many(0, 5), many(1, 6))
    assert "the reference kernel moved by +20.0%" in result.fitness.reasons[0]


@pytest.mark.parametrize("times", [[], [math.nan] * 5, [0.0] * 5, [-1.0] * 5, [math.inf] * 5, [1e300] * 5])
def test_reference_times_that_are_none_make_a_run_unfit_and_raise_nothing(times: list[float]) -> None:
    slowed_ms = [6.5, 6.6, 6.4, 6.5, 6.5]
    odd = {"parts": parts_of(Reference("k", times, slowed_ms))}
    head = [r.model_copy(update=odd) for r in sessions(13, seed=1, artifact="b")]
    result = compare(probed(sessions(10), 5), head)
    assert result.fitness.fit is False
    assert "could not be measured" in result.fitness.reasons[0]


def test_two_states_of_a_device_are_compared_by_the_same_artifact() -> None:
    result = compare(sessions(10), sessions(13, seed=1), gauged=False)
    assert result.cases[0].verdict is Verdict.SLOWER
    assert "the artifact is the same: the device changed, not the compiler" in result.cases[0].reasons
    assert exit_code(result) is ExitCode.SLOWER


@pytest.mark.parametrize(
    ("base", "head", "verdict", "code"),
    [
        (Outcome.OK, Outcome.WRONG_RESULT, Verdict.WRONG, ExitCode.WRONG_OR_BROKEN),
        (Outcome.OK, Outcome.COMPILER_CRASH, Verdict.BROKEN, ExitCode.WRONG_OR_BROKEN),
        (Outcome.DEVICE_LOST, Outcome.HANG, Verdict.BROKEN, ExitCode.WRONG_OR_BROKEN),
        (Outcome.WRONG_RESULT, Outcome.OK, Verdict.FIXED, ExitCode.GOOD),
        (Outcome.WRONG_RESULT, Outcome.WRONG_RESULT, Verdict.SAME, ExitCode.GOOD),
        (Outcome.OK, Outcome.DEVICE_LOST, Verdict.INCONCLUSIVE, ExitCode.RIG_FAILURE),
        (Outcome.OK, Outcome.UNSUPPORTED, Verdict.INCONCLUSIVE, ExitCode.NOTHING_MEASURED),
        (Outcome.OK, Outcome.INCONCLUSIVE, Verdict.INCONCLUSIVE, ExitCode.NOTHING_MEASURED),
        (Outcome.THROTTLED, Outcome.OK, Verdict.INCONCLUSIVE, ExitCode.NOTHING_MEASURED),
        (Outcome.OK, Outcome.OK, Verdict.SAME, ExitCode.GOOD),
    ],
)
def test_outcomes_are_compared_before_latencies(base: Outcome, head: Outcome, verdict: Verdict, code: ExitCode) -> None:
    comparison = the_one([a_record(outcome=base, message="m")], [a_record(outcome=head, message="m")])
    assert (comparison.verdict, exit_code(ComparisonResult([comparison]))) == (verdict, code)
    assert comparison.reasons


def test_a_finding_without_a_latency_is_certain_and_what_tells_nothing_has_no_confidence() -> None:
    wrong, lost = ([a_record(outcome=outcome)] for outcome in (Outcome.WRONG_RESULT, Outcome.DEVICE_LOST))
    assert the_one([a_record()], wrong).confidence == 1.0
    assert the_one([a_record()], lost).confidence is None


def test_a_case_that_was_wrong_in_one_session_of_several_is_wrong() -> None:
    flaky = [*sessions(10), a_record(outcome=Outcome.WRONG_RESULT, message="off by one"), *sessions(10)]
    assert the_one(sessions(10), flaky).verdict is Verdict.WRONG


def test_only_the_latest_artifact_of_a_side_counts() -> None:
    side = sides_of([*sessions(99, artifact="old"), *sessions(10, 2, artifact="new")])
    ((_, only),) = side.items()
    assert (only.artifact, len(only.sessions)) == ("new", 2)


def test_another_identity_or_way_of_shipping_is_never_compared() -> None:
    other = Identity("phone", "serial", gpu="Adreno740", driver="2")
    for head in (sessions(20, identity=other), sessions(20, as_shipped=True)):
        compared = compare(sessions(10), head)
        assert [comparison.verdict for comparison in compared.cases] == [Verdict.NEW, Verdict.GONE]
        assert exit_code(compared) is ExitCode.NOTHING_MEASURED


@pytest.mark.parametrize("bad", [[math.nan] * 10, [0.0] * 10, [-1.0] * 10, [5.0] * 10, [1.0], [math.inf] * 10])
def test_times_that_are_none_make_it_inconclusive_with_the_reason(bad: list[float]) -> None:
    head = [a_record(wall_ms=bad) for _ in range(4)]
    comparison = the_one(sessions(10), head)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reasons
    assert path_means([comparison]) == []


def test_a_record_with_an_impossible_case_is_refused() -> None:
    with pytest.raises(UsageError, match="not a case id"):
        sides_of([a_record().model_copy(update={"case": "../../etc"})])


def test_geometric_means_of_each_path() -> None:
    other = "resnet18-opencl-float32-untuned"
    base = [*sessions(10, case=OPENCL), *sessions(10, case=TEXTURE), *sessions(5, case=other)]
    head = [*sessions(20, case=OPENCL, artifact="b"), *sessions(10, case=TEXTURE), *sessions(5, case=other)]
    means = [(mean.path, mean.overall.series, mean.overall.ratio) for mean in path_means(compare(base, head).cases)]
    assert means == [("opencl", 2, pytest.approx(math.sqrt(2))), ("texture", 1, 1.0)]


def test_paths_that_certainly_changed_places_are_named() -> None:
    base = [*sessions(10, case=OPENCL), *sessions(15, case=TEXTURE)]
    head = [*sessions(20, case=OPENCL, artifact="b"), *sessions(15, case=TEXTURE)]
    (flipped,) = path_flips(compare(base, head).cases)
    assert (flipped.flip.was_faster, flipped.flip.now_faster) == ("opencl", "texture")
    assert flipped.what == "tiny float32 untuned"
    near = [*sessions(15.1, case=OPENCL, artifact="b"), *sessions(15, case=TEXTURE)]
    assert path_flips(compare(base, near).cases) == []


def test_a_suite_of_a_hundred_unchanged_cases_raises_no_alarm() -> None:
    cases = [f"m{number}-opencl-float32-untuned" for number in range(100)]
    base = [record for seed, case in enumerate(cases) for record in sessions(10, seed=seed, case=case)]
    head = [record for seed, case in enumerate(cases) for record in sessions(10, seed=1000 + seed, case=case)]
    verdicts = {comparison.verdict for comparison in compare(base, head).cases}
    assert not verdicts & {Verdict.SLOWER, Verdict.FASTER}


times = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=12)


@given(base=st.lists(times, max_size=4), head=st.lists(times, max_size=4))
def test_whatever_the_samples_are_there_is_a_verdict_and_a_reason_if_it_is_none(
    base: list[list[float]], head: list[list[float]]
) -> None:
    both = [[a_record(wall_ms=samples) for samples in side] or [a_record()] for side in (base, head)]
    result = compare(*both)
    (comparison,) = result.cases
    assert comparison.verdict.tells or comparison.reasons
    if min(len(base), len(head)) < 2:
        assert comparison.verdict not in (Verdict.SLOWER, Verdict.FASTER)
    json.dumps(export_comparison(result, path_means(result.cases), path_flips(result.cases)).plain(), allow_nan=False)
    assert verdict_table(result.cases)


def test_a_pull_request_shows_first_what_it_broke_and_what_it_mended() -> None:
    base = [a_record(OPENCL, artifact="a"), a_record(TEXTURE, artifact="b", outcome=Outcome.WRONG_RESULT)]
    mended = compare(base, [a_record(OPENCL, artifact="c"), a_record(TEXTURE, artifact="d")]).cases
    assert headline(mended).splitlines()[0] == "**Nothing became worse, 1 fixed** in 2 cases (1 same)"
    assert f"* **fixed** `{TEXTURE}`" in headline(mended)
    broken = [a_record(OPENCL, artifact="c", outcome=Outcome.WRONG_RESULT), a_record(TEXTURE, artifact="d")]
    assert headline(compare(base, broken).cases).splitlines()[0] == "**1 wrong, 1 fixed** in 2 cases"


VACUOUS = ["output 0 of 1 is constant: 0.001 everywhere"]


@pytest.mark.parametrize("base", [{}, {"outcome": Outcome.WRONG_RESULT, "message": "off"}, {"vacuous": VACUOUS}])
def test_a_vacuous_answer_is_never_called_right_or_fixed(base: dict[str, Any]) -> None:
    comparison = the_one([a_record(**base)], [a_record(artifact="b", vacuous=VACUOUS)])
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reasons == (f"vacuous: being right proves nothing: {VACUOUS[0]}",)
    assert exit_code(ComparisonResult([comparison])) is ExitCode.NOTHING_MEASURED


def test_a_vacuous_answer_may_be_slower_and_what_it_proves_is_said() -> None:
    comparison = the_one(sessions(10), sessions(13, seed=1, artifact="b", vacuous=VACUOUS))
    assert comparison.verdict is Verdict.SLOWER
    assert "vacuous: being right proves nothing" in verdict_table([comparison])
    assert (
        json.loads(json.dumps(export_comparison(ComparisonResult([comparison])).plain()))["cases"][0]["head"]["vacuous"]
        == VACUOUS
    )


def test_a_case_of_which_some_outputs_prove_something_is_compared_and_the_others_are_named() -> None:
    part = ["output 1 of 2 is constant: 4 everywhere"]
    wrong = [a_record(outcome=Outcome.WRONG_RESULT, message="off")]
    for base, verdict in ((sessions(10), Verdict.SAME), (wrong, Verdict.FIXED)):
        comparison = the_one(base, sessions(10, seed=1, artifact="b", partly_vacuous=part))
        assert comparison.verdict is verdict
        assert comparison.all_reasons[-1] == f"partly vacuous: being right proves nothing of some outputs: {part[0]}"
        assert "partly vacuous" in verdict_table([comparison])


def test_a_new_vacuous_case_says_so() -> None:
    (comparison,) = compare([], [a_record(vacuous=VACUOUS)]).cases
    assert comparison.verdict is Verdict.NEW
    assert comparison.all_reasons[-1] == f"vacuous: being right proves nothing: {VACUOUS[0]}"


def test_a_latency_that_stayed_is_no_reason_to_forget_it() -> None:
    result = settle(compare(sessions(10, 1), sessions(10, 1, seed=1, vacuous=VACUOUS)), Rules(), lambda _: "not again")
    (comparison,) = result.cases
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.all_reasons[-1] == f"vacuous: being right proves nothing: {VACUOUS[0]}"


def test_an_oracle_that_is_not_finite_is_a_finding() -> None:
    nan = a_record(outcome=Outcome.ORACLE_NOT_FINITE, message="output 0 is not finite", artifact="b")
    comparison = the_one([a_record()], [nan])
    assert comparison.verdict is Verdict.BROKEN
    assert exit_code(ComparisonResult([comparison])) is ExitCode.WRONG_OR_BROKEN


def test_a_latency_that_is_not_its_paths_is_said() -> None:
    without, with_images = {"image_kernels": 0}, {"image_kernels": 3}
    case = "tiny-texture-float32-untuned"
    comparison = the_one(
        sessions(10, case=case, facts=with_images), sessions(13, seed=1, case=case, artifact="b", facts=without)
    )
    assert comparison.verdict is Verdict.SLOWER
    why = "path texture put no tensor into an image: whatever was measured is plain OpenCL"
    assert comparison.reasons[-1] == f"as opencl (head): {why}"
    comparison = the_one(sessions(10, case=case, facts=without), sessions(10, seed=1, case=case, facts=without))
    assert comparison.reasons[-1] == f"as opencl (both sides): {why}"


def test_records_as_shipped_say_why_they_match_none_with_workarounds() -> None:
    cases = compare(sessions(10, as_shipped=True), sessions(10, seed=1)).cases
    assert [case.verdict for case in cases] == [Verdict.NEW, Verdict.GONE]
    assert "the other side ran it as shipped" in cases[0].reasons[-1]
    assert "the other side ran it with workarounds" in cases[1].reasons[-1]
