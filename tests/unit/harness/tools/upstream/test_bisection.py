"""From two ends to the first bad revision, with revisions that are made of numbers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import pytest
from fake_records import IDENTITY, a_record, sessions
from hypothesis import given
from hypothesis import strategies as st

from device_runner.failures import RigFailure
from device_runner.store import key_of
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.compile.models.sources import model_source
from harness.judge.report.table import milliseconds
from harness.judge.stats.engine import TurnPlan
from harness.judge.stats.pair import Rules
from harness.measure.records.record import Record
from harness.tools.shared.environment import InstallFailure
from harness.tools.shared.revision_search import RevisionState
from harness.tools.shared.revisions import Revision, Source
from harness.tools.shared.toolchain import CaseBuild, RunOptions
from harness.tools.upstream import bisect_command
from harness.tools.upstream.bisect.bisection import (
    STATE,
    Bisection,
    BisectionStore,
    SearchResult,
    bisection_store,
    find_first_bad,
    kernels_diff,
    shorten,
)
from harness.tools.upstream.bisect.judging import Reason, RevisionJudge, RevisionRunner, reason_of, state_of

CASE = "tiny-opencl-float32-untuned"


@dataclass
class Compiler:
    """What a revision does to the case."""

    outcome: Outcome = Outcome.OK
    ms: float = 10.0
    library: str = ""
    """Different for each revision unless told."""
    kernels: str = ""
    """Not kept unless told."""
    builds: bool = True


WRONG, UNFIT = Outcome.WRONG_RESULT, Outcome.INFRA_ERROR


@dataclass
class World:
    """Revisions by name, and what was done with them."""

    compilers: dict[str, Compiler]
    opened: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    identity: str = IDENTITY.key
    noise: float = 0.0
    """Of sessions, besides the 1 % that made-up sessions have."""
    taken: list[Record] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def kernels(self, artifact: str) -> str:
        return self.compilers[artifact.removeprefix("artifact of ")].kernels

    def open(self, name: str) -> RevisionRunner:
        self.opened.append(name)
        if not self.compilers[name].builds:
            raise InstallFailure(f"{name} cannot be built or installed: no rule to make target")
        return _Runner(self, name)


@dataclass
class _Runner:
    world: World
    name: str

    def build(self, cases: Sequence[str]) -> dict[str, CaseBuild]:
        compiler = self.world.compilers[self.name]
        broken = compiler.outcome is Outcome.COMPILE_ERROR
        unfit = compiler.outcome is Outcome.INFRA_ERROR
        outcome = compiler.outcome if broken or unfit else Outcome.OK
        library = "" if broken else compiler.library or f"library of {self.name}"
        return {
            CASE: CaseBuild(
                CASE, self.world.identity, f"artifact of {self.name}", library, outcome, "no such operator" * broken
            )
        }

    def run(self, cases: Sequence[str]) -> list[Record]:
        self.world.ran.append(self.name)
        compiler = self.world.compilers[self.name]
        if compiler.outcome is not Outcome.OK:
            return [a_record(outcome=compiler.outcome, message="off by 4")]
        chance = self.world.chance
        ms = compiler.ms * chance.gauss(1, self.world.noise)
        return sessions(ms, 1, seed=chance.randrange(1 << 30), artifact=f"artifact of {self.name}")


def bisect(
    world: World, reason: Reason, folder: Path | None = None, earlier: BisectionStore | None = None, sessions: int = 16
) -> SearchResult:
    line = list(world.compilers)
    known = earlier or BisectionStore(folder or Path("unused"), {}, {})
    plan = TurnPlan(most_sessions=sessions)
    judge = RevisionJudge(
        CASE, reason, line[0], world.open, plan, world.taken.append, lambda: world.taken, world.kernels
    )
    if folder is None and earlier is None:
        known.add = lambda inspection: known.inspections.update({inspection.name: inspection})  # type: ignore[method-assign]
    return find_first_bad(line, judge, known, world.said.append)


def line_of(good: int, bad: int, **facts: object) -> World:
    compilers = {f"good{index}": Compiler() for index in range(good)}
    return World({**compilers, **{f"bad{index}": Compiler(**facts) for index in range(bad)}})  # type: ignore[arg-type]


def test_how_many_revisions_are_left_is_said_beforehand_and_how_long_they_take_after_the_first() -> None:
    world = line_of(20, 12, outcome=Outcome.WRONG_RESULT)
    bisect(world, Reason.WRONG)
    first, second, *_, last = [line for line in world.said if line.startswith("looking at")]
    assert first == "looking at good0 (it should be good, about 7 to go)"
    assert second == "looking at bad11 (it should be bad, about 6 to go, about 1 s left)"
    assert "about 1 to go, about 1 s left" in last


def test_a_wrong_answer_is_found_with_one_session_an_inspection() -> None:
    world = line_of(20, 12, outcome=Outcome.WRONG_RESULT)
    found = bisect(world, Reason.WRONG)
    assert (found.good, found.candidates) == ("good19", ["bad0"])
    assert len(world.ran) == len(set(world.ran)) <= 2 + (30).bit_length()


def test_what_does_not_compile_is_found_without_a_session() -> None:
    world = line_of(6, 4, outcome=Outcome.COMPILE_ERROR)
    found = bisect(world, Reason.BROKEN)
    assert found.candidates == ["bad0"]
    assert not [name for name in world.ran if name.startswith("bad")]


def test_a_slower_kernel_is_found_in_turns_with_the_good_revision() -> None:
    world = line_of(5, 4, ms=13.0)
    found = bisect(world, Reason.SLOWER)
    assert found.candidates == ["bad0"]
    inspection = next(inspection for inspection in found.inspections if inspection.name == "bad0")
    assert inspection.relative
    assert inspection.relative == pytest.approx(0.3, abs=0.05)
    assert inspection.sessions >= 4
    assert world.ran.count("good0") > 4
    assert inspection.good_ms
    assert inspection.wall_ms
    assert inspection.wall_ms == pytest.approx(inspection.good_ms * (1 + inspection.relative))
    shown = bisect_command._row(inspection)
    assert f"{milliseconds(inspection.good_ms)} to {milliseconds(inspection.wall_ms)}" in shown


def test_a_change_of_ten_percent_is_found_in_noise_of_two_and_no_other_commit_is_named() -> None:
    ended, spent = [], 0
    for seed in range(8):
        first_bad = random.Random(seed).randrange(1, 64)
        world = line_of(first_bad, 64 - first_bad, ms=11.0)
        world.chance, world.noise = random.Random(seed), 0.017
        ended.append(bisect(world, Reason.SLOWER, sessions=32).candidates)
        spent += len(world.taken)
    assert all("bad0" in candidates for candidates in ended)
    assert sum(candidates == ["bad0"] for candidates in ended) >= 7
    assert spent / len(ended) <= 90


def test_the_same_library_is_not_measured_twice() -> None:
    world = line_of(8, 8, outcome=Outcome.WRONG_RESULT)
    for name, compiler in world.compilers.items():
        compiler.library = name.rstrip("0123456789")
    found = bisect(world, Reason.WRONG)
    assert found.candidates == ["bad0"]
    assert world.ran == ["good0", "bad7"]
    assert {inspection.why for inspection in found.inspections[1:-1]} == {
        "made the same library as good0",
        "made the same library as bad7",
    }


@given(st.integers(1, 20), st.integers(1, 20), st.sets(st.integers(1, 38), max_size=12))
def test_what_does_not_build_is_skipped_and_stays_a_candidate(good: int, bad: int, broken: set[int]) -> None:
    world = line_of(good, bad, outcome=Outcome.WRONG_RESULT)
    names = list(world.compilers)
    for index in broken & set(range(1, len(names) - 1)):
        world.compilers[names[index]].builds = False
    found = bisect(world, Reason.WRONG)
    assert "bad0" in found.candidates
    assert all(not world.compilers[name].builds for name in found.candidates[:-1])


def test_what_makes_the_kernels_of_a_revision_that_was_judged_is_not_run() -> None:
    world = line_of(128, 128, outcome=WRONG)
    for name, compiler in world.compilers.items():
        compiler.kernels = f"kernels of {name[:3]}"
    found = bisect(world, Reason.WRONG)
    assert found.candidates == ["bad0"]
    assert world.ran == ["good0", "bad127"]
    assert len(world.opened) <= 2 + 8
    assert "made the same kernels as good0; nothing was run" in [one.why for one in found.inspections]


def test_kernels_tell_nothing_where_the_fault_is_in_the_hosts_code_nor_of_a_latency() -> None:
    world = line_of(8, 8, outcome=WRONG)
    for compiler in world.compilers.values():
        compiler.kernels = "the same"
    assert bisect(world, Reason.WRONG).candidates == ["bad0"]
    assert world.ran == world.opened
    slower = line_of(4, 4, ms=20.0)
    for name, compiler in slower.compilers.items():
        compiler.kernels = name[:3]
    assert bisect(slower, Reason.SLOWER).candidates == ["bad0"]
    assert set(slower.ran) == set(slower.opened)


def test_a_commit_that_our_pass_lists_do_not_fit_is_skipped_and_an_end_is_named() -> None:
    world = line_of(4, 4, outcome=WRONG)
    world.compilers["good3"].outcome = UNFIT
    found = bisect(world, Reason.WRONG)
    assert found.candidates == ["good3", "bad0"]
    (skipped,) = (one for one in found.inspections if one.name == "good3")
    assert skipped.outcome == "does not fit"
    world.compilers["good0"].outcome = UNFIT
    with pytest.raises(UsageError, match=r"--good good0 is not good .*: not judged: does not fit"):
        bisect(world, Reason.WRONG)


def test_another_fault_than_the_one_looked_for_tells_nothing() -> None:
    world = line_of(2, 2, outcome=Outcome.WRONG_RESULT)
    world.compilers = {"good": Compiler(), "crashes": Compiler(Outcome.DEVICE_CRASH), **world.compilers}
    del world.compilers["good0"], world.compilers["good1"]
    assert bisect(world, Reason.WRONG).candidates == ["crashes", "bad0"]


@pytest.mark.parametrize(
    ("reason", "outcome", "state"),
    [
        (Reason.WRONG, Outcome.WRONG_RESULT, RevisionState.BAD),
        (Reason.WRONG, Outcome.COMPILE_ERROR, RevisionState.SKIP),
        (Reason.BROKEN, Outcome.DEVICE_CRASH, RevisionState.BAD),
        (Reason.BROKEN, Outcome.WRONG_RESULT, RevisionState.GOOD),
        (Reason.BROKEN, Outcome.UNSUPPORTED, RevisionState.SKIP),
        (Reason.SLOWER, Outcome.HANG, RevisionState.SKIP),
        (Reason.SLOWER, Outcome.OK, RevisionState.GOOD),
    ],
)
def test_what_an_outcome_says_depends_on_the_reason(reason: Reason, outcome: Outcome, state: RevisionState) -> None:
    assert state_of(reason, outcome) is state


def test_the_bad_end_says_what_to_look_for() -> None:
    outcomes = (Outcome.WRONG_RESULT, Outcome.COMPILER_CRASH, Outcome.OK)
    assert [reason_of(outcome) for outcome in outcomes] == [Reason.WRONG, Reason.BROKEN, Reason.SLOWER]


def test_a_defect_older_than_every_release_is_looked_for_in_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tools.upstream.bisect.line.RELEASES", {"bad0": None})
    with pytest.raises(UsageError, match=r"bad0 is the oldest release .* clone TVM, and pass --repo FOLDER"):
        bisect(line_of(0, 2, outcome=Outcome.WRONG_RESULT), Reason.WRONG)


def test_ends_that_are_not_what_they_were_said_to_be_are_named() -> None:
    with pytest.raises(UsageError, match=r"--good bad0 is not good \(the reason is wrong\): bad: wrong-result"):
        bisect(line_of(0, 2, outcome=Outcome.WRONG_RESULT), Reason.WRONG)
    with pytest.raises(UsageError, match=r"--bad good1 is not bad .*: good: ok"):
        bisect(line_of(2, 0), Reason.WRONG)
    with pytest.raises(UsageError, match=r"--bad good1 is not bad .the reason is slower.*sessions in turns"):
        bisect(line_of(2, 0), Reason.SLOWER)


def test_a_device_that_fails_is_no_verdict_and_what_was_judged_stays(tmp_path: Path) -> None:
    world = line_of(4, 4, outcome=Outcome.WRONG_RESULT)
    world.compilers["good3"].outcome = Outcome.DEVICE_LOST
    with bisection_store(tmp_path, {"good": "a"}, fresh=False) as known, pytest.raises(RigFailure, match="device-lost"):
        bisect(world, Reason.WRONG, earlier=known)
    world.compilers["good3"].outcome = Outcome.OK
    before = list(world.ran)
    with bisection_store(tmp_path, {"good": "a"}, fresh=False) as known:
        assert bisect(world, Reason.WRONG, earlier=known).candidates == ["bad0"]
    assert not set(before[:-1]) & set(world.ran[len(before) :])
    with bisection_store(tmp_path, {"good": "a"}, fresh=True) as known:
        assert known.inspections == {}


def test_another_device_ends_it(tmp_path: Path) -> None:
    world = line_of(4, 4, outcome=Outcome.WRONG_RESULT)
    world.compilers["good3"].outcome = Outcome.DEVICE_LOST
    with bisection_store(tmp_path, {}, fresh=False) as known:
        with pytest.raises(RigFailure, match="device-lost"):
            bisect(world, Reason.WRONG, earlier=known)
        world.identity = "another"
        with pytest.raises(RigFailure, match="the device is another now and was phone-Adreno740"):
            bisect(world, Reason.WRONG, earlier=known)


def test_one_question_is_asked_by_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        bisection_store(tmp_path, {"good": "a"}, fresh=False),
        pytest.raises(RigFailure, match="the same bisection is running already"),
        bisection_store(tmp_path, {"good": "a"}, fresh=False),
    ):
        pass
    with bisection_store(tmp_path, {"good": "b"}, fresh=False) as other:
        assert other.inspections == {}


def test_another_file_of_the_model_is_another_question(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('models = ["net.onnx"]\npaths = ["opencl"]\n')
    network = model_source("tiny").onnx_file(tmp_path / "models").read_bytes()
    line = [Revision(name, name, Source(tmp_path, tmp_path, True)) for name in ("0.25.0.post1", "0.26.0")]
    options = RunOptions(tmp_path / "my.toml", "virtual")
    bisection = Bisection("net-opencl-float32-untuned", line, options, None, Rules(), 4, tmp_path)
    keys = []
    for producer in ("one", "one", "other"):
        model = onnx.load_from_string(network)
        model.producer_name = producer
        onnx.save(model, tmp_path / "net.onnx")
        keys.append(key_of(bisection.question))
    assert keys[0] == keys[1] != keys[2]
    facts = {"suite", "device", "model", "as_shipped", "but_for"}  # a bisection kept before is found by them
    rules = {"relevant", "floor_ms", "most_sessions", "good", "bad", "case", "reason"}
    assert set(bisection.question) == facts | rules


def test_other_schedules_are_another_question_of_a_case_that_takes_them(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\nschedules = "s.jsonl"\n')
    line = [Revision(name, name, Source(tmp_path, tmp_path, True)) for name in ("0.25.0.post1", "0.26.0")]

    def keys(content: str, file: Path | None = None) -> list[str]:
        (file or tmp_path / "s.jsonl").write_text(content)
        options = RunOptions(tmp_path / "my.toml", "virtual", schedules=file)
        cases = [f"tiny-opencl-float32-{tuning}" for tuning in ("untuned", "scheduled")]
        return [key_of(Bisection(case, line, options, None, Rules(), 4, tmp_path).question) for case in cases]

    one, other = keys("one"), keys("other")
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert keys("one", tmp_path / "given.jsonl") == one


def test_what_an_earlier_version_kept_is_read(tmp_path: Path) -> None:
    with bisection_store(tmp_path, {}, fresh=False) as known:
        look = {"name": "r1", "state": "bad", "outcome": "wrong-result", "why": "off by 4", "sessions": 1}
        (known.folder / STATE).write_text(json.dumps({"question": {}, "looks": [look]}))
    with bisection_store(tmp_path, {}, fresh=False) as known:
        assert known.inspections["r1"].state is RevisionState.BAD


@pytest.mark.parametrize("text", ["{", "[]", '{"looks": [{"name": "x"}]}', '{"looks": [{"state": "perhaps"}]}'])
def test_a_damaged_state_is_named(tmp_path: Path, text: str) -> None:
    with bisection_store(tmp_path, {}, fresh=False) as known:
        (known.folder / STATE).write_text(text)
    with pytest.raises(RigFailure, match=r"damaged.*--fresh"), bisection_store(tmp_path, {}, fresh=False):
        pass


def test_the_difference_leaves_out_declarations_and_fits_a_screen() -> None:
    old = "__kernel void f(int a);\n__kernel void f(int a) {\n  a;\n}\n"
    lines = kernels_diff(old, old.replace("a;", "b;"), ("0.25", "0.26"))
    assert lines[:2] == ["--- 0.25.cl", "+++ 0.26.cl"]
    assert {"-  a;", "+  b;"} <= set(lines)
    assert not [line for line in lines if line.endswith(");")]
    assert shorten(lines, 2, 8) == ["--- 0.2…", "+++ 0.2…", f"... and {len(lines) - 2} more lines"]
    assert kernels_diff(old, old, ("a", "b")) == []
