"""Building with hostile workers: whatever the compiler does is an outcome, and nothing is left behind."""

import threading
from pathlib import Path

import pytest
from build_workers import GOOD, JOB, MAKE_LIBRARY, REAL_MAIN, REFUSES, forks
from waiting import eventually, gone

from device_runner.failures import Failure
from harness.base.failures import (
    CompileFailure,
    CompileOutOfMemory,
    CompilerCrash,
    CompileTimeout,
    InputRefused,
    OracleNotFinite,
)
from harness.base.plan import Job
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.forks import Forks
from harness.compile.artifacts.pool import Builder


def build(folder: Path, script: str, limits: Limits | None = None) -> Artifact | Failure:
    with Builder(folder / "store", limits or Limits(), forks=forks(folder, script)) as builder:
        result = builder.build([JOB])[JOB.key]
    assert isinstance(result, Artifact | Failure)
    return result


def leftovers(folder: Path) -> list[str]:
    return [entry.name for entry in (folder / "store" / "artifacts").iterdir() if entry.name not in (".locks", JOB.key)]


def test_a_good_worker_makes_an_artifact_and_a_second_run_builds_nothing(tmp_path: Path) -> None:
    first = build(tmp_path, GOOD)
    assert isinstance(first, Artifact)
    assert not first.reused
    assert first.loadable.library.read_bytes() == b"library"
    assert first.compiled.facts == {"kernels": 2}
    second = build(tmp_path, "raise SystemExit('must not be called')")
    assert isinstance(second, Artifact)
    assert second.reused
    assert second.loadable == first.loadable
    assert leftovers(tmp_path) == []


def test_whoever_watches_hears_what_waits_and_the_step_of_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.compile.artifacts.pool.LOOK_EVERY_S", 0.01)
    heard: list[str] = []

    def watch(_title: str, state: str, _seconds: float) -> None:
        heard.append(state)
        if state == "building: lower":
            (tmp_path / "seen").touch()

    step = f"import time; seen = pathlib.Path({str(tmp_path / 'seen')!r}); (out / 'step').write_text('lower')"
    script = GOOD + f"\n{step}\nwhile not seen.exists(): time.sleep(0.01)\n"
    with Builder(tmp_path / "store", Limits(), watch=watch, forks=forks(tmp_path, script)) as builder:
        made = builder.build([JOB])[JOB.key]
    assert heard == ["queued", "building", "building: lower", "built"]
    assert isinstance(made, Artifact)
    assert not (made.loadable.library.parent / "step").exists()


def test_a_segmentation_fault_is_named_and_not_kept(tmp_path: Path) -> None:
    crash = "import os; (out / 'step').write_text('FuseOps'); print('last words', flush=True); os.kill(os.getpid(), 11)"
    failure = build(tmp_path, MAKE_LIBRARY + crash)
    assert isinstance(failure, CompilerCrash)
    assert failure.message == "the compiler's process died of SIGSEGV, in FuseOps"
    assert "last words" in failure.evidence
    assert isinstance(build(tmp_path, GOOD), Artifact)


def test_a_worker_that_ends_without_a_result_is_a_crash(tmp_path: Path) -> None:
    assert isinstance(build(tmp_path, "raise SystemExit(3)"), CompilerCrash)


def test_a_worker_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid)); time.sleep(60)\n"
    )
    for limit_s in (1.0, 10.0, 100.0):  # a busy machine may not have started the child
        failure = build(tmp_path, script, Limits(build_s=limit_s))
        assert isinstance(failure, CompileTimeout)
        if (tmp_path / "child").exists():
            break
    assert gone(int((tmp_path / "child").read_text()))


def test_a_compile_error_is_kept_because_the_same_input_gives_it_again(tmp_path: Path) -> None:
    first, second = build(tmp_path, REFUSES), build(tmp_path, GOOD)
    assert isinstance(first, CompileFailure)
    assert isinstance(second, CompileFailure)
    assert second.message == "Divide by zero"


@pytest.mark.parametrize(
    ("peak_bytes", "message"),
    [
        (7_000_000_000, "the compiler needs more than 8 GB of memory"),
        (900_000_000, "the compiler asked at once for more than the rest of 8 GB of memory, with 0.9 GB in use"),
    ],
)
def test_a_compiler_that_met_the_limit_of_its_memory_is_tried_again(
    tmp_path: Path, peak_bytes: int, message: str
) -> None:
    meets_it = f"""
from harness.compile.artifacts import jobs, worker
worker.limit_memory, worker._peak_bytes = (lambda _: 0), (lambda: {peak_bytes})
def compile(job, out):
    raise ValueError("TVM failed to import the model: error:") from MemoryError()
jobs.compile_case = compile
"""
    script = f"{meets_it}{REAL_MAIN}"
    first, second = build(tmp_path, script), build(tmp_path, GOOD)
    assert isinstance(first, CompileOutOfMemory)
    assert first.message == message
    assert isinstance(second, Artifact)


def test_addresses_that_libraries_reserved_before_are_no_memory_of_the_compiler(tmp_path: Path) -> None:
    needs = """
import mmap
from harness.compile.artifacts import jobs, worker
reserved = mmap.mmap(-1, 17 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
def compile(job, out):
    with mmap.mmap(-1, {size}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000):
        raise RuntimeError("the job had its memory")
jobs.compile_case = compile
"""
    enough, too_much = (build(tmp_path, needs.format(size=size) + REAL_MAIN) for size in (4 << 30, 9 << 30))
    assert isinstance(enough, Failure)
    assert "the job had its memory" in enough.message
    assert isinstance(too_much, CompileOutOfMemory)


def test_an_oracle_that_is_not_finite_is_kept_too(tmp_path: Path) -> None:
    refuses = REFUSES.replace("compile-error", "oracle-not-finite")
    first, second = build(tmp_path, refuses), build(tmp_path, GOOD)
    assert isinstance(first, OracleNotFinite)
    assert isinstance(second, OracleNotFinite)


TRUTH = Job("oracle", "a" * 16, "oracle of tiny", {}, otherwise=Job("witness", "b" * 16, "LLVM's answer of tiny", {}))
LLVM_ALONE = (
    MAKE_LIBRARY
    + """
if job["kind"] == "oracle":
    {oracle}
(out / "result.json").write_text(json.dumps({{"done": {{}}}}))
"""
)
LACKS = """
    failure = dict(outcome="no-outside-answer", message="no kernel for Foo", hint="", evidence="")
    (out / "result.json").write_text(json.dumps({"failure": failure}))
    raise SystemExit
"""


@pytest.mark.parametrize(
    ("oracle", "why"),
    [
        (LACKS.strip(), "no kernel for Foo"),
        ("import os; os.kill(os.getpid(), 11)", "the oracle's process died of SIGSEGV"),
    ],
)
def test_where_the_truth_cannot_be_had_llvm_answers_and_it_is_said_why(tmp_path: Path, oracle: str, why: str) -> None:
    states: list[tuple[str, str]] = []
    script = forks(tmp_path, LLVM_ALONE.format(oracle=oracle))

    def watch(title: str, state: str, _: float) -> None:
        states.append((title, state))

    with Builder(tmp_path / "store", Limits(), forks=script, watch=watch) as builder:
        found = builder.build([TRUTH])[TRUTH.key]
        assert TRUTH.otherwise
        assert builder.find(TRUTH.otherwise) == Answers(tmp_path / "store" / "oracles" / ("b" * 16), reused=True)
    assert isinstance(found, Answers)
    assert found.unchecked == why
    assert found.folder.name == "b" * 16
    assert (TRUTH.otherwise.title, "built") in states


def test_where_llvm_compiles_no_answer_either_its_failure_says_why_nobody_else_had_one(tmp_path: Path) -> None:
    script = forks(tmp_path, REFUSES)
    with Builder(tmp_path / "store", Limits(), forks=script) as builder:
        found = builder.build([TRUTH])[TRUTH.key]
    assert isinstance(found, CompileFailure)
    assert found.hint.startswith("nobody outside TVM computes this network either: ")


def test_a_division_of_integers_by_0_is_the_inputs_fault(tmp_path: Path) -> None:
    script = forks(tmp_path, LLVM_ALONE.format(oracle="import os, signal; os.kill(os.getpid(), signal.SIGFPE)"))
    with Builder(tmp_path / "store", Limits(), forks=script) as builder:
        found = builder.build([TRUTH])[TRUTH.key]
    assert isinstance(found, InputRefused)
    assert "divides an integer by 0" in found.message
    assert "integers(1, 9)" in found.hint


def test_what_was_never_made_is_not_found(tmp_path: Path) -> None:
    with Builder(tmp_path / "store", Limits(), forks=forks(tmp_path, GOOD)) as builder:
        assert builder.find(TRUTH) is None


def test_a_damaged_entry_is_made_again(tmp_path: Path) -> None:
    artifact = build(tmp_path, GOOD)
    assert isinstance(artifact, Artifact)
    (artifact.loadable.library.parent / "manifest.json").write_text("{torn")
    again = build(tmp_path, GOOD)
    assert isinstance(again, Artifact)
    assert not again.reused


def test_leaving_ends_the_workers_that_still_run(tmp_path: Path) -> None:
    script = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with Builder(tmp_path / "store", Limits(), forks=forks(tmp_path, script)) as builder:
        thread = threading.Thread(target=builder.build, args=([JOB],))
        thread.start()
        assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    thread.join(10)
    assert gone(int((tmp_path / "pid").read_text()))
    assert leftovers(tmp_path) == []


def test_two_builders_build_one_thing_once(tmp_path: Path) -> None:
    count = GOOD + f"\nopen({str(tmp_path / 'count')!r}, 'a').write('x'); import time; time.sleep(0.3)"
    results: list[object] = []

    def run(workers: Forks) -> None:
        with Builder(tmp_path / "store", Limits(), forks=workers) as builder:
            results.append(builder.build([JOB])[JOB.key])

    both = [forks(tmp_path, count) for _ in range(2)]
    threads = [threading.Thread(target=run, args=(workers,)) for workers in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "count").read_text() == "x"
    assert sorted(result.reused for result in results if isinstance(result, Artifact)) == [False, True]
