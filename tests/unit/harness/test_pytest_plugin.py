"""The pytest plugin: how cases become tests, and what each outcome becomes. The device is made of plain Python."""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from fake_device import FakeDevice, a_plan, things
from fake_records import a_record, blessing_of

from device_runner.failures import DeviceLost, Hang, RigFailure
from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.base.plan import Plan, unsupported
from harness.base.suite import load_suite
from harness.cli.gate import gate
from harness.measure.context import Run
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.pytest_plugin import plugin
from harness.tools.correctness import fixtures, results
from harness.tools.correctness.fixtures import CaseRunner, Options, device_of

pytest_plugins = ["pytester"]
pytest.importorskip(
    "onnx"
)  # imported now: pytester forgets what a run imports, and protobuf aborts when it comes again

SUITE = """models = ["tiny"]
paths = ["opencl", "texture"]
[[tolerances]]
case = "tiny-texture-*"
relative = 1e-4
reason = "it only adds"
"""
OPENCL, TEXTURE = "tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"
TESTS = ("--pyargs", "harness.pytest_plugin", "--suite", "my.toml")


@dataclass
class Rig:
    """Runs pytest on the correctness tests with a device of plain Python, and counts how often it was opened."""

    pytester: pytest.Pytester
    device: FakeDevice = field(default_factory=FakeDevice)
    broken: RigFailure | None = None
    opened: list[tuple[str, list[str]]] = field(default_factory=list)

    @contextlib.contextmanager
    def open(self, options: Options, device: str, cases: Sequence[str]) -> Iterator[CaseRunner]:
        self.opened.append((device, list(cases)))
        if self.broken:
            raise self.broken
        plans = {case: self.planned(Case.parse(case)) for case in cases}
        run = Run(self.device, TuningStore(self.pytester.path), options.as_shipped, timed=False)
        yield CaseRunner(options, load_suite(options.suite), run, plans, things(self.pytester.path / "built"))

    def planned(self, case: Case) -> Plan:
        return replace(a_plan(), case=case, unsupported=unsupported(case, self.device.identity))

    def pytest(self, *arguments: str) -> pytest.RunResult:
        quick = [word for name in ("cacheprovider", "hypothesispytest", "benchmark") for word in ("-p", f"no:{name}")]
        return self.pytester.runpytest_inprocess(*TESTS, *quick, *arguments)


@pytest.fixture
def rig(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig(pytester)
    monkeypatch.setattr(fixtures, "open_cases", rig.open)
    (pytester.path / "my.toml").write_text(SUITE)
    return rig


def test_each_case_is_a_test_of_its_name_on_a_device_that_is_opened_once(rig: Rig) -> None:
    done = rig.pytest("-v", "--device", "phone7")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines([f"*::test_right?{case}? PASSED*" for case in (OPENCL, TEXTURE)])
    assert rig.opened == [("phone7", [OPENCL, TEXTURE])]
    assert rig.device.steps.count("wall") == 0


@pytest.mark.parametrize("choice", [("--case", "*-opencl-*"), ("-k", "opencl")])
def test_only_what_is_chosen_is_built(rig: Rig, choice: tuple[str, str]) -> None:
    rig.pytest(*choice).assert_outcomes(passed=1, deselected=1 if choice[0] == "-k" else 0)
    assert rig.opened == [("virtual", [OPENCL])]


def test_a_wrong_answer_fails_with_all_that_a_person_needs(rig: Rig) -> None:
    rig.device.error = 0.5
    done = rig.pytest("--case", TEXTURE, "--device", "phone7", "--as-shipped", "--with-quirk", "some-quirk")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            f"{TEXTURE}: wrong-result (owner: path): output 0 is off by 0.5 at [[]0, 0]: 1.5 instead of 1*",
            "model * tiny",
            "path * texture",
            "precision * float32, untuned",
            "error * 0.5 against tolerance 0.003 (the suite allows 0.0001 of the peak: it only adds)",
            "baseline * none on virtual-G-*",
            "quirks * some-quirk",
            "reproduce * adreno-bench run --suite */my.toml --device fake --case tiny-texture-* --as-shipped "
            "--with-quirk some-quirk",
        ]
    )
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*def test_right*")


def test_a_failure_says_what_the_baseline_was(rig: Rig) -> None:
    rig.device.error = 0.5
    record = a_record(OPENCL, identity=rig.device.identity, quirks=("old-quirk",), tvm="0.25")
    blessing = blessing_of([record])
    assert blessing.baseline
    blessing.baseline.save(rig.pytester.path / "good")
    done = rig.pytest("--case", OPENCL, "--baselines", "good")
    done.stdout.fnmatch_lines(["baseline * right, off by 1e-05, with tvm 0.25 and quirks old-quirk"])


def test_a_vacuous_case_is_skipped_because_nothing_was_judged(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CaseRunner, "record", lambda *_: a_record(OPENCL, vacuous=["output 0 of 1 is all zero"]))
    done = rig.pytest("--case", OPENCL, "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["*vacuous: being right proves nothing: output 0 of 1 is all zero"])
    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_path_that_breaks_fails(rig: Rig) -> None:
    rig.device.fails = {"run": Hang("no answer within 3 s")}
    done = rig.pytest()
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines([f"{OPENCL}: hang (owner: path): no answer within 3 s"])


def test_a_rig_that_breaks_is_an_error_and_no_failure(rig: Rig) -> None:
    rig.device.fails = {"load": DeviceLost("unplugged", evidence="adb says so")}
    done = rig.pytest()
    done.assert_outcomes(errors=2)
    done.stdout.fnmatch_lines([f"{OPENCL}: device-lost (owner: device): unplugged", "adb says so"])


def test_a_device_that_cannot_be_opened_is_one_line_for_each_case(rig: Rig) -> None:
    rig.broken = RigFailure("no adb", hint="install it")
    done = rig.pytest()
    done.assert_outcomes(errors=2)
    done.stdout.fnmatch_lines(["no adb: install it"])
    assert len(rig.opened) == 1


def test_what_the_device_cannot_do_is_skipped_with_the_reason_and_alone_is_not_good(rig: Rig) -> None:
    (rig.pytester.path / "my.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\nprecisions = ["float16"]\n')
    done = rig.pytest("-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*cannot compute in half precision (no cl_khr_fp16)"])
    assert done.ret == 5


def test_junit_carries_the_record_of_every_case_also_of_failures_and_errors(rig: Rig) -> None:
    for device, good in (
        (FakeDevice(), True),
        (FakeDevice(error=0.5), False),
        (FakeDevice(fails={"run": DeviceLost("\x1b gone")}), False),
    ):
        rig.device = device
        done = rig.pytest("--case", OPENCL, "--junit-xml", "out.xml", "-o", "junit_family=xunit2")
        done.stdout.no_fnmatch_line("*record_property*")  # pytest's own warns where the file is of the newer family
        (found,) = ET.parse(rig.pytester.path / "out.xml").iter("property")
        assert found.get("name") == results.PROPERTY
        record = Record.model_validate_json(found.get("value") or "")
        assert (record.case, record.outcome is Outcome.OK) == (OPENCL, good)


def test_a_report_shows_every_case_that_was_judged(rig: Rig) -> None:
    rig.device.error = 0.5
    assert rig.pytest("--adreno-report", "pages/report.html").ret == pytest.ExitCode.TESTS_FAILED
    text = (rig.pytester.path / "pages" / "report.html").read_text("utf-8")
    assert text.count("<article") == 2
    assert "✗ 2 wrong" in text


@pytest.mark.parametrize(
    ("suite", "choice", "message"),
    [
        (SUITE, ["--case", "tny-*"], "no case matches 'tny-*': did you mean 'tiny-*'?"),
        ('models = "tiny"\npaths = ["opencl"]\n', [], "*my.toml:1: models: Input should be a valid list*"),
        ('models = ["tiny"]\npaths = ["textur"]\n', [], "there is no path 'textur': did you mean 'texture'?"),
    ],
)
def test_a_mistake_is_one_line_and_not_a_pass(rig: Rig, suite: str, choice: list[str], message: str) -> None:
    (rig.pytester.path / "my.toml").write_text(suite)
    done = rig.pytest(*choice)
    done.stdout.fnmatch_lines([message.replace("[", "[[]")])
    done.stdout.no_fnmatch_line("*Traceback*")
    assert done.ret == 2
    assert rig.opened == []


def test_another_suites_options_and_names_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--device', default='theirs')")
    pytester.makepyfile(test_theirs="def test_it(request): assert request.config.getoption('device') == 'theirs'")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_names_of_tests_that_a_repository_changed_do_not_hide_the_gates(rig: Rig) -> None:
    rig.pytester.makeini(
        "[pytest]\npython_files = check_*.py\npython_functions = check_*\naddopts = --strict-markers\n"
    )
    rig.pytest().assert_outcomes(passed=2)


def test_more_workers_than_devices_are_refused(rig: Rig) -> None:
    rig.pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--n', dest='numprocesses', type=int)")
    done = rig.pytest("--n", "3", "--device", "a", "--device", "b")
    done.stderr.fnmatch_lines(["ERROR: more workers (3) than devices (2): give --device for each worker, or virtual:3"])
    assert done.ret == pytest.ExitCode.USAGE_ERROR


def test_of_a_long_log_a_failure_shows_the_end_unless_it_is_asked_for_more() -> None:
    log = "".join(f"line {number}\n" for number in range(95))
    record = a_record(outcome=Outcome.COMPILE_ERROR, message="TVM refused it", evidence=log)
    short = results.explain(record, Path("s.toml"), None, None).splitlines()
    assert "TVM refused it" in short[0]
    assert short[-1] == "  line 94"
    assert f"evidence (the last {results.SHOWN_EVIDENCE} of 95 lines; -v shows all)" in short
    assert len(short) < 20
    assert "  line 0" in results.explain(record, Path("s.toml"), None, None, whole=True).splitlines()


def test_virtual_2_are_two_devices() -> None:
    def devices_of(*texts: str) -> tuple[str, ...]:
        config: Any = SimpleNamespace(getoption=lambda *_: list(texts))
        return fixtures.devices(config)

    assert devices_of() == ("virtual",)
    assert devices_of("virtual:2") == ("virtual-1", "virtual-2")
    assert devices_of("R5CT", "virtual:1") == ("R5CT", "virtual-1")
    with pytest.raises(pytest.UsageError, match="there are no 999 virtual devices"):
        devices_of("virtual:999")


def test_the_plugin_costs_others_nothing() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); import harness.pytest_plugin.plugin; "
        "print(set(sys.modules) - before)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert eval(said) == {"harness", "harness.pytest_plugin", "harness.pytest_plugin.plugin"}


def test_gates_are_meant_when_they_are_named() -> None:
    folder = str(Path(plugin.__file__).parent)
    for named in (
        ["harness.pytest_plugin"],
        ["-v", "harness.pytest_plugin.test_cases"],
        [folder],
        [f"{folder}/test_cases.py::x"],
    ):
        assert plugin.asks_for_us(named)
    for other in ([], ["tests"], ["--device", "virtual"], ["harness"], ["--deselect=harness.pytest_plugin"]):
        assert not plugin.asks_for_us(other)


@pytest.mark.parametrize(("worker", "device"), [(None, "a"), ("gw0", "a"), ("gw1", "b"), ("gw2", "a")])
def test_each_worker_has_a_device_of_its_own(
    worker: str | None, device: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pytestconfig, "workerinput", raising=False)
    if worker:
        monkeypatch.setattr(pytestconfig, "workerinput", {"workerid": worker}, raising=False)
    assert device_of(pytestconfig, ["a", "b"]) == device


def test_its_options_say_what_those_of_the_command_line_say() -> None:
    alone = typer.Typer(add_completion=False)
    alone.command()(gate)
    command = typer.main.get_command(alone)
    told = {name: vars(parameter).get("help") for parameter in command.params for name in parameter.opts}
    ours = argparse.ArgumentParser(allow_abbrev=False)
    fixtures.add_options(SimpleNamespace(getgroup=lambda *_: SimpleNamespace(addoption=ours.add_argument)))  # type: ignore[arg-type]
    options = [action for action in ours._actions if not isinstance(action, argparse._HelpAction)]
    options = [one for one in options if one.dest != "adreno_report"]  # which the command line has as `report`
    assert len(options) == 6
    for option in options:
        (name,) = option.option_strings
        assert (option.help or "").startswith(told[name] or "not told")
