"""Environments that are made once, revisions that are used through their own interpreter, and two of them compared."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fake_records import a_record, sessions
from filelock import FileLock
from places import ROOT, SHARED

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.judge.compare import exit_code
from harness.judge.confirm import SessionBudget, explainer
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.facts import Reference
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record
from harness.tools.ab.revision_pair import OUTCOMES_ALONE, RevisionPair
from harness.tools.profile.sides import profile_with
from harness.tools.shared.environment import BUILDING, DONE_FILE, KIND, InstallFailure, environment
from harness.tools.shared.kernels.profile import Operator, Profile, kernels_file, read_profiles
from harness.tools.shared.revisions import Revision, Source
from harness.tools.shared.toolchain import ATTEMPTS, CaseBuild, CommandLine, RunOptions, Toolchain, snapshot

CASE, OTHER = "tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"

MAKES = f"""
import json
from pathlib import Path
Path(folder).mkdir(parents=True)
Path(config).with_name("made").open("a").write("x")
(Path(folder) / "{DONE_FILE}").write_text(json.dumps({{"python": __file__}}))
"""
TEARS = "from pathlib import Path; Path(folder).mkdir(parents=True); print('error: no rule'); sys.exit(1)"
SLEEPS = "import os, time; open(config + '.pid', 'w').write(str(os.getpid())); time.sleep(60)"


@pytest.fixture
def revision(tmp_path: Path) -> Revision:
    return a_revision(tmp_path, install_timeout=5)


def a_revision(folder: Path, install_timeout: float) -> Revision:
    """A release, and how long each of asv's commands may take to install it."""
    config, said = folder / "asv.conf.json", {"install_command": ["true"], "install_timeout": install_timeout}
    config.write_text(json.dumps({"version": 1, "repo": "repo", **said}))
    return Revision("0.26.0", "a" * 40, Source(config, folder / "repo", released=True))


@pytest.fixture
def making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has a script take the place of this Python, which is told what to install where."""
    interpreter = tmp_path / "interpreter"

    def make(script: str) -> None:
        told = "import sys\nconfig, repo, commit, folder, mark = sys.argv[-5:]"
        interpreter.write_text(f"#!{sys.executable}\n{told}\n{script}\n")
        interpreter.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(interpreter))

    return make


def test_an_environment_is_made_once(revision: Revision, tmp_path: Path, making: Callable[[str], None]) -> None:
    making(MAKES)
    together = [threading.Thread(target=environment, args=(revision, tmp_path)) for _ in range(3)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert environment(revision, tmp_path) == Path(sys.executable)
    assert (tmp_path / "made").read_text() == "x"


def test_before_a_revision_is_installed_it_is_said_how_long_that_may_take(
    tmp_path: Path, making: Callable[[str], None]
) -> None:
    making(MAKES)
    said: list[str] = []
    environment(a_revision(tmp_path, install_timeout=1800), tmp_path, said.append)
    assert said == ["0.26.0: installing it, for at most 3.0 h"]


def test_a_torn_environment_is_made_anew(revision: Revision, tmp_path: Path, making: Callable[[str], None]) -> None:
    making(MAKES)
    environment(revision, tmp_path)
    (made,) = (tmp_path / KIND).glob(f"*/{DONE_FILE}")
    made.unlink()
    (made.parent / "half").touch()
    environment(revision, tmp_path)
    assert not (made.parent / "half").exists()
    assert (tmp_path / "made").read_text() == "xx"


def test_what_does_not_install_says_why_and_leaves_nothing_but_its_log(
    revision: Revision, tmp_path: Path, making: Callable[[str], None]
) -> None:
    making(TEARS)
    with pytest.raises(InstallFailure, match=r"0\.26\.0 cannot be built or installed: error: no rule"):
        environment(revision, tmp_path)
    assert [file.suffix for file in (tmp_path / KIND).glob("[!.]*")] == [".log"]


def test_making_ends_at_its_deadline_and_with_its_process(tmp_path: Path, making: Callable[[str], None]) -> None:
    making(SLEEPS)
    revision = a_revision(tmp_path, install_timeout=0.5)
    with pytest.raises(InstallFailure, match="was not installed within"):
        environment(revision, tmp_path)
    pid = int(Path(f"{revision.source.config}.pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


def test_whoever_waits_for_another_run_waits_not_for_ever(
    revision: Revision, tmp_path: Path, making: Callable[[str], None]
) -> None:
    making(MAKES)
    environment(revision, tmp_path)
    (made,) = (tmp_path / KIND).glob(f"*/{DONE_FILE}")
    made.unlink()
    a_revision(tmp_path, install_timeout=0.01)
    lock = FileLock(tmp_path / KIND / ".locks" / f"{made.parent.name}.lock", thread_local=False)
    with lock, pytest.raises(RigFailure, match="another run has been installing"):
        environment(revision, tmp_path)


def test_commits_are_built_one_at_a_time_in_one_folder_that_is_gone_afterwards(
    revision: Revision, tmp_path: Path, making: Callable[[str], None]
) -> None:
    alone = "folder = Path(folder).parent / '.building'; folder.mkdir(); time.sleep(0.2); (folder / 'object').touch()"
    making(f"import time{MAKES}{alone}")
    source = Source(revision.source.config, revision.source.repo, released=False)
    commits = [Revision(letter, letter * 40, source) for letter in "ab"]
    together = [threading.Thread(target=environment, args=(commit, tmp_path)) for commit in commits]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert (tmp_path / "made").read_text() == "xx"
    assert len(list((tmp_path / KIND).glob(f"*/{DONE_FILE}"))) == 2
    assert not (tmp_path / KIND / BUILDING).exists()


def test_another_command_or_commit_is_another_environment(
    revision: Revision, tmp_path: Path, making: Callable[[str], None]
) -> None:
    making(MAKES)
    environment(revision, tmp_path)
    environment(Revision("0.27", "b" * 40, revision.source), tmp_path)
    text = revision.source.config.read_text()
    revision.source.config.write_text(text.replace("true", "false"))
    environment(revision, tmp_path)
    assert len(list((tmp_path / KIND).glob(f"*/{DONE_FILE}"))) == 3


def test_the_snapshot_is_this_harness_and_carries_its_version(tmp_path: Path) -> None:
    folder = snapshot(tmp_path)
    assert snapshot(tmp_path) == folder
    code = "import harness, importlib.metadata as m; print(harness.__file__, m.version('adreno-bench'))"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith(str(folder))


INTERPRETER = """#!{python}
import json, os, sys
sys.path.insert(0, {root!r}); sys.path.insert(0, {unit!r})
command, rest = sys.argv[3], sys.argv[4:]
cases = [rest[i + 1] for i, word in enumerate(rest) if word == "--case"]
calls = {calls!r}
open(calls, "a").write(json.dumps([command, rest, os.environ.get("PYTHONPATH"), os.environ.get("FAULTS")]) + "\\n")
turn = len(open(calls).readlines())
{body}
"""


def toolchain(tmp_path: Path, body: str, device: str = "virtual", quirks: QuirkPolicy = WORKED_AROUND) -> Toolchain:
    """A revision whose interpreter is a script of ours: `body` sees `command`, `cases` and `turn`."""
    suite = tmp_path / "suite.toml"
    suite.write_text('models = ["tiny"]\npaths = ["opencl", "texture"]\n')
    script = tmp_path / "python"
    script.write_text(
        INTERPRETER.format(
            python=sys.executable,
            root=str(ROOT),
            unit=str(SHARED),
            calls=str(tmp_path / "calls"),
            body=body,
        )
    )
    script.chmod(0o755)
    revision = Revision("r1", "c" * 40, Source(tmp_path / "asv.conf.json", tmp_path, released=False))
    commands = CommandLine(revision, script, tmp_path / "snapshot", tmp_path / "cache")
    return Toolchain(commands, RunOptions(suite, device, quirks))


def calls(tmp_path: Path) -> list[list[Any]]:
    return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


RUNS = """
from fake_records import a_record
from harness.base.outcome import Outcome
file = rest[rest.index("--records") + 1]
outcome = Outcome.OK if turn > {lost} else Outcome.DEVICE_LOST
open(file, "a").writelines(a_record(case, outcome=outcome).line() + "\\n" for case in cases)
"""


def test_a_session_asks_for_the_case_as_a_person_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTS", "file")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    made = toolchain(tmp_path, RUNS.format(lost=0), "abc", QuirkPolicy(True, ("vectorized-alloc",)))
    assert [record.case for record in made.run([OTHER, CASE])] == [OTHER, CASE]
    ((command, rest, path, faults),) = calls(tmp_path)
    assert command == "run"
    assert rest[-7:] == ["--as-shipped", "--with-quirk", "vectorized-alloc", "--case", OTHER, "--case", CASE]
    assert rest[rest.index("--device") + 1] == "abc"
    assert (path, faults) == (str(tmp_path / "snapshot"), "file")


def test_a_session_is_given_the_schedules_that_a_person_gave(tmp_path: Path) -> None:
    made = toolchain(tmp_path, RUNS.format(lost=0))
    given = dataclasses.replace(made, options=dataclasses.replace(made.options, schedules=Path("s.jsonl")))
    given.run([CASE])
    ((_, rest, _, _),) = calls(tmp_path)
    assert rest[rest.index("--schedules") + 1] == str(Path("s.jsonl").absolute())


def test_a_lost_device_is_met_again_in_a_fresh_session(tmp_path: Path) -> None:
    (record,) = toolchain(tmp_path, RUNS.format(lost=2)).run([CASE])
    assert record.outcome is Outcome.OK
    assert len(calls(tmp_path)) == 3


def test_a_device_that_stays_lost_is_not_met_for_ever(tmp_path: Path) -> None:
    (record,) = toolchain(tmp_path, RUNS.format(lost=99)).run([CASE])
    assert record.outcome is Outcome.DEVICE_LOST
    assert len(calls(tmp_path)) == ATTEMPTS


def test_a_session_without_a_record_is_a_failure_of_the_rig(tmp_path: Path) -> None:
    body = "print('adreno-bench: no adb server', file=sys.stderr); sys.exit(4)"
    with pytest.raises(RigFailure, match=f"r1 left no record of {CASE}: adreno-bench: no adb server"):
        toolchain(tmp_path, body).run([CASE])


def test_what_was_asked_wrongly_is_said_once_as_the_command_says_it(tmp_path: Path) -> None:
    body = "print('adreno-bench: there is no device', file=sys.stderr); sys.exit(2)"
    with pytest.raises(UsageError, match=r"^there is no device$"):
        toolchain(tmp_path, body).build([CASE])
    assert len(calls(tmp_path)) == 1


def test_a_build_that_prints_no_json_is_a_failure_of_the_rig(tmp_path: Path) -> None:
    with pytest.raises(RigFailure, match="r1 ended with code 4: out of disk"):
        toolchain(tmp_path, "print('out of disk', file=sys.stderr); sys.exit(4)").build([CASE])


PROFILES = """
from harness.tools.shared.kernels.profile import Operator, Profile
ms = 9.0 + turn
operator = Operator(function="fused_conv2d", kernels=("k",), launches=1, ms=ms, threads=64)
about = dict(case=cases[0], identity_key="k", gpu="G", tvm="0.26.0", artifact="a", operators=(operator,))
print(Profile(**about, kernels_ms=ms, span_ms=ms, wall_ms=ms).model_dump_json(by_alias=True))
"""


def test_a_profile_is_what_the_command_prints_with_that_revision(tmp_path: Path) -> None:
    found = profile_with(toolchain(tmp_path, PROFILES), CASE, 7)
    assert (found.case, found.operators[0].ms) == (CASE, 10.0)
    ((command, rest, _, _),) = calls(tmp_path)
    assert command == "profile"
    assert (rest[:3], rest[-2:]) == (["--json", "--repeat", "7"], ["--case", CASE])


def test_a_case_that_a_revision_does_not_profile_says_why(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    body = f"print('adreno-bench: {CASE} is not profiled, because it is wrong-result', file=sys.stderr); sys.exit(2)"
    with pytest.raises(UsageError, match=f"^{CASE} is not profiled, because it is wrong-result$"):
        profile_with(toolchain(tmp_path, body), CASE)
    with pytest.raises(RigFailure, match=f"r1 printed no profile of {CASE}"):
        profile_with(toolchain(tmp_path / "none", "print('[]')"), CASE)


def test_a_session_ends_with_whoever_started_it(tmp_path: Path) -> None:
    body = "open(calls + '.pid', 'w').write(str(os.getpid())); import time; time.sleep(60)"
    made = toolchain(tmp_path, body)
    pid = tmp_path / "calls.pid"

    def interrupt() -> None:
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        made.run([CASE])
    assert not Path(f"/proc/{pid.read_text()}").exists()


@dataclass
class Fake:
    """A revision that is known beforehand."""

    builds: dict[str, str]
    """Library by case; empty for what does not compile."""
    records: dict[str, list[Record]]
    options: RunOptions = field(default_factory=lambda: RunOptions(Path("suite.toml"), "virtual"))
    ran: list[str] = field(default_factory=list)
    quick: list[bool] = field(default_factory=list)
    emulated: tuple[str, ...] = ()

    def build(self, cases: Sequence[str]) -> dict[str, CaseBuild]:
        return {
            case: CaseBuild(
                case,
                "phone",
                f"a-{library}",
                library,
                Outcome.OK if library else Outcome.COMPILE_ERROR,
                emulated=self.emulated,
            )
            for case, library in self.builds.items()
            if case in cases
        }

    def run(self, cases: Sequence[str], *, quick: bool = False) -> list[Record]:
        self.ran += cases
        self.quick.append(quick)
        return [self.records[case].pop(0) for case in cases]

    def profile(self, case: str, repeat: int) -> str:
        ms = float(len(self.builds[case]))
        operator = Operator(function="fused_conv2d", kernels=("k",), launches=1, ms=ms, threads=64)
        about: dict[str, Any] = {
            "case": case,
            "identity_key": "k",
            "gpu": "G",
            "tvm": "0",
            "artifact": self.builds[case],
        }
        profile = Profile(**about, operators=(operator,), kernels_ms=ms, span_ms=ms, wall_ms=ms)
        return profile.model_dump_json(by_alias=True)


def test_the_same_library_is_the_same_and_nothing_is_run() -> None:
    base, head = Fake({CASE: "x"}, {}), Fake({CASE: "x"}, {})
    result = RevisionPair(base, head).compare([CASE], Rules(), 16)  # type: ignore[arg-type]
    assert [(c.key.case, c.verdict, c.confidence) for c in result.cases] == [(CASE, Verdict.SAME, 1.0)]
    assert exit_code(result) is ExitCode.GOOD
    assert base.ran == head.ran == []


@pytest.mark.parametrize(("emulated", "latency"), [(("gpu",), None), ((), False)])
def test_outcomes_alone_take_one_session_each(emulated: tuple[str, ...], latency: bool | None) -> None:
    wrong = a_record(OTHER, outcome=Outcome.WRONG_RESULT, message="off by 4")
    base = Fake({CASE: "x", OTHER: "y"}, {CASE: [a_record(CASE)], OTHER: [a_record(OTHER)]})
    head = Fake({CASE: "X", OTHER: "Y"}, {CASE: [a_record(CASE)], OTHER: [wrong]}, emulated=emulated)
    result = RevisionPair(base, head, latency=latency).compare([CASE, OTHER], Rules(), 16)  # type: ignore[arg-type]
    assert [(c.key.case, c.verdict) for c in result.cases] == [(CASE, Verdict.SAME), (OTHER, Verdict.WRONG)]
    assert OUTCOMES_ALONE in result.cases[0].reasons[0]
    assert head.ran == [CASE, OTHER]
    assert head.quick == [bool(emulated)]


def test_latencies_of_an_emulated_gpu_are_compared_on_request_and_within_a_budget() -> None:
    said: list[str] = []
    base = Fake({CASE: "x"}, {CASE: sessions(10, 20, seed=1)})
    head = Fake({CASE: "X"}, {CASE: sessions(13, 20, seed=2, artifact="b" * 24)}, emulated=("gpu",))
    pair = RevisionPair(base, head, latency=True, budget=SessionBudget(0, say=said.append))  # type: ignore[arg-type]
    (case,) = pair.compare([CASE], Rules(), 16).cases
    assert (case.verdict, len(head.ran), said) == (Verdict.INCONCLUSIVE, 1, [])
    more = replace(pair, budget=SessionBudget(say=said.append)).compare([CASE], Rules(), 16).cases[0]
    assert more.verdict is Verdict.SLOWER
    assert said[0].startswith(f"in turns: {CASE}, 2 of at most 16 sessions; 1 case is open")


@pytest.mark.parametrize(("emulated", "stops"), [(("gpu",), True), ((), False)])
def test_an_emulated_gpu_that_shows_no_slowness_ends_the_sessions(emulated: tuple[str, ...], stops: bool) -> None:
    """The kernel that was made slower takes no longer: no number of sessions can tell anything."""

    def blind(records: list[Record]) -> list[Record]:
        probe = {"parts": parts_of(Reference("add", [1.0, 1.01, 0.99] * 4, [1.0, 1.01, 0.99] * 4))}
        return [record.model_copy(update=probe) for record in records]

    base = Fake({CASE: "x"}, {CASE: blind(sessions(10, 20, seed=1))})
    head = Fake({CASE: "X"}, {CASE: blind(sessions(10.1, 20, seed=2, artifact="b" * 24))}, emulated=emulated)
    result = RevisionPair(base, head, latency=True).compare([CASE], Rules(), 16)  # type: ignore[arg-type]
    assert (len(head.ran) == 1) is stops
    said = " ".join(result.cases[0].reasons)
    assert ("stopped: more sessions would not help, a kernel made " in said) is stops
    if stops:
        assert result.cases[0].verdict is Verdict.INCONCLUSIVE
        assert exit_code(result) is ExitCode.RIG_FAILURE
        assert result.undecided == []


def test_the_kernels_of_what_is_slower_are_asked_of_both_revisions(tmp_path: Path) -> None:
    base = Fake({CASE: "xx"}, {CASE: sessions(10, 20, seed=1)})
    head = Fake({CASE: "XXX"}, {CASE: sessions(13, 20, seed=2, artifact="b" * 24)})
    pair = RevisionPair(base, head)  # type: ignore[arg-type]
    files = {arm: tmp_path / f"{arm.value}.jsonl" for arm in Arm}
    explain = explainer("compare", {Arm.BASE: base, Arm.HEAD: head}, files)
    (case,) = pair.compare([CASE], Rules(), 16, explain).cases
    assert case.verdict is Verdict.SLOWER
    assert [(one.operator, one.base_ms, one.head_ms) for one in case.kernels] == [("conv2d", 2.0, 3.0)]
    kept = [read_profiles(kernels_file(files[arm]), lambda _: True) for arm in (Arm.BASE, Arm.HEAD)]
    assert [[one.artifact for one in profiles] for profiles in kept] == [["xx"], ["XXX"]]


def test_a_suspect_is_measured_in_turns_and_a_wrong_answer_is_not_timed() -> None:
    kept: list[Arm] = []
    wrong = [a_record(OTHER, outcome=Outcome.WRONG_RESULT, message="off by 4")]
    base = Fake({CASE: "x", OTHER: "y"}, {CASE: sessions(10, 20, seed=1), OTHER: [a_record(OTHER)]})
    head = Fake({CASE: "X", OTHER: "Y"}, {CASE: sessions(13, 20, seed=2, artifact="b" * 24), OTHER: wrong})
    pair = RevisionPair(base, head, lambda arm, _: kept.append(arm))  # type: ignore[arg-type]
    result = pair.compare([CASE, OTHER], Rules(), 16)
    assert [(c.key.case, c.verdict) for c in result.cases] == [(CASE, Verdict.SLOWER), (OTHER, Verdict.WRONG)]
    assert exit_code(result) is ExitCode.WRONG_OR_BROKEN
    assert (base.ran.count(OTHER), head.ran.count(OTHER)) == (1, 1)
    b, h = Arm.BASE, Arm.HEAD
    assert kept[:4] == [b, b, h, h], "both cases once"
    assert kept[4:6] in ([b, h], [h, b]), "their sessions count"
    assert all(kept[at : at + 4].count(b) == 2 for at in range(6, len(kept), 4))
