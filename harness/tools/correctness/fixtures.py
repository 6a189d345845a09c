"""How cases become tests, what the tests of one process share, and what they are given."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from device_runner.failures import Failure
from device_runner.registry import VIRTUAL
from device_runner.selection import ALL, select
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.outcome import Outcome, Owner
from harness.base.plan import Plan
from harness.base.suite import Suite, choose, load_suite
from harness.cli.options import AS_SHIPPED_HELP, BASELINES_HELP, CASE_HELP, DEVICE_HELP, SUITE_HELP, WITH_QUIRK_HELP
from harness.compile.artifacts.artifact import Built
from harness.compile.artifacts.planner import check
from harness.compile.quirks import policy_of
from harness.judge.baseline import Baseline
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.workbench import Request, open_workbench
from harness.tools.correctness.results import PROPERTY, ReportWriter, explain, headline

ARGUMENT = "adreno_case"


def add_options(parser: pytest.Parser) -> None:
    """Add the options of correctness tests, in the words of `adreno-bench run`."""
    group = parser.getgroup("adreno-bench", "correctness tests of adreno-bench")
    group.addoption(
        "--suite", metavar="FILE", help=f"{SUITE_HELP} Default: adreno-bench.toml beside the tests, or here."
    )
    group.addoption("--case", action="append", metavar="GLOB", help=CASE_HELP)
    group.addoption(
        "--device",
        action="append",
        metavar="DEVICE",
        help=f"{DEVICE_HELP} Default: virtual. Repeatable with -n: each worker has one of them.",
    )
    group.addoption("--baselines", metavar="DIR", help=f"{BASELINES_HELP} Default: baselines.")
    group.addoption("--adreno-report", metavar="FILE", help="Write one HTML page of all cases.")
    group.addoption("--as-shipped", action="store_true", help=AS_SHIPPED_HELP)
    group.addoption("--with-quirk", action="append", metavar="QUIRK", help=WITH_QUIRK_HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Name our tests, and write the page that was asked for. Raises UsageError for more workers than devices."""
    # Whatever this repository calls its tests, ours are called so.
    config.addinivalue_line("python_files", "test_cases.py")
    config.addinivalue_line("python_functions", "test_right")
    config.addinivalue_line("markers", "timeout: of pytest-timeout, which may be missing")
    if (file := config.getoption("adreno_report", None)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ReportWriter(config.invocation_params.dir / file))
    workers, count = config.getoption("numprocesses", None) or 0, len(devices(config))
    if workers > count:
        raise pytest.UsageError(
            f"more workers ({workers}) than devices ({count}): give --device for each worker, or virtual:{workers}"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case of the suite, named by its id."""
    if ARGUMENT in metafunc.fixturenames:
        options = Options.of(metafunc.config, metafunc.definition.path.parent)
        try:
            suite = load_suite(options.suite)
            cases = choose(suite, options.cases)
            check(suite, cases, cache_root())
        except Failure as failure:
            raise pytest.Collector.CollectError(str(failure)) from None
        metafunc.parametrize(ARGUMENT, cases, ids=[case.id for case in cases])


@pytest.fixture(scope="session")
def adreno_bench(request: pytest.FixtureRequest) -> Iterator[CaseRunner]:
    """Open the device once, and build everything that this session tests."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function) and _case_of(item)]
    options = Options.of(request.config, tests[0].path.parent)
    try:
        device = device_of(request.config, options.devices)
        with open_cases(options, device, [_case_of(test) for test in tests]) as bench:
            yield bench
    except Failure as failure:
        pytest.fail(str(failure), pytrace=False)  # while setting up, so it is an error of the test, not a failure


def _case_of(item: pytest.Function) -> str:
    case = getattr(item, "callspec", None) and item.callspec.params.get(ARGUMENT)
    return case.id if isinstance(case, Case) else ""


@pytest.fixture
def adreno_record(adreno_case: Case, adreno_bench: CaseRunner, request: pytest.FixtureRequest) -> Record:
    """Run the case. A fault that is neither the path's nor the compiler's ends here, before the test."""
    record = adreno_bench.record(adreno_case.id)
    # As pytest's own `record_property` does, which warns where JUnit files are of the newer family.
    request.node.user_properties.append((PROPERTY, record.line()))
    if record.outcome is Outcome.UNSUPPORTED:
        pytest.skip(record.message)
    if record.outcome is Outcome.OK and record.vacuous:
        pytest.skip(f"vacuous: being right proves nothing: {'; '.join(record.vacuous)}")
    if record.outcome.owner in (Owner.DEVICE, Owner.RIG):
        pytest.fail("\n".join(filter(None, (headline(record), record.hint, record.evidence))), pytrace=False)
    return record


@pytest.fixture
def adreno_complaint(
    adreno_record: Record, adreno_case: Case, adreno_bench: CaseRunner, pytestconfig: pytest.Config
) -> str:
    """Say what is wrong with the case; empty if nothing is."""
    if adreno_record.outcome is Outcome.OK:
        return ""
    try:
        baseline = adreno_bench.baseline(adreno_case.id)
    except Failure as failure:
        pytest.fail(str(failure), pytrace=False)
    suite, justified = adreno_bench.options.suite, adreno_bench.suite.justified(adreno_case)
    return explain(adreno_record, suite, baseline, justified, whole=pytestconfig.get_verbosity() > 0)


@dataclass(frozen=True)
class CaseRunner:
    """A device held by us, and what was built for it."""

    options: Options
    suite: Suite
    run: Run
    plans: Mapping[str, Plan]
    """Plans by case id."""
    built: Built

    def record(self, case: str) -> Record:
        """Run a case and judge it; it is not timed."""
        return run_with_recovery(self.plans[case], self.built, self.run, SilentProgress())

    def baseline(self, case: str) -> Baseline | None:
        """Return what was blessed of a case on this identity. Raises UsageError for a file that is not good."""
        return Baseline.find(self.options.baselines, self.run.device.identity.key, case)


@contextlib.contextmanager
def open_cases(options: Options, device: str, cases: Sequence[str]) -> Iterator[CaseRunner]:
    """Open the device and build the cases. Raises Failure if the rig cannot; a build that fails is its case's."""
    request = Request.read(options.suite, list(cases), policy_of(options.as_shipped, options.with_quirks))
    with open_workbench(request, request.one_device(device, SilentProgress()), SilentProgress(), timed=False) as bench:
        supported = [plan for plan in bench.plans if not plan.unsupported]
        built = bench.builder.build(job for plan in supported for job in (plan.compile, plan.oracle))
        plans = {plan.case.id: plan for plan in bench.plans}
        yield CaseRunner(options, request.suite, bench.run, plans, built)


SUITE = "adreno-bench.toml"


def expand(text: str, cache: Path) -> list[str]:
    """Return the devices that `all` and `virtual:N` stand for; any other text alone. Raises `UnknownDevice`."""
    return select([text], cache) if text == ALL or text.startswith(f"{VIRTUAL}:") else [text]


def devices(config: pytest.Config) -> tuple[str, ...]:
    """Return the devices that were named, each of `virtual:2` and of `all`, or the virtual one. Raises UsageError."""
    try:
        texts = config.getoption("device", None) or ("virtual",)
        return tuple(name for text in texts for name in expand(text, cache_root()))
    except Failure as failure:
        raise pytest.UsageError(str(failure)) from None


@dataclass(frozen=True)
class Options:
    """Names as typed; paths are relative to where pytest was started."""

    suite: Path
    cases: tuple[str, ...]
    devices: tuple[str, ...]
    baselines: Path
    as_shipped: bool
    with_quirks: tuple[str, ...]

    @classmethod
    def of(cls, config: pytest.Config, folder: Path) -> Options:
        """Return the options of this run. A suite file in `folder`, beside the tests, is their default."""
        own = folder / SUITE
        start = config.invocation_params.dir
        suite = config.getoption("suite", None)
        return cls(
            suite=start / suite if suite else own if own.exists() else start / SUITE,
            cases=tuple(config.getoption("case", None) or ()),
            devices=devices(config),
            baselines=start / (config.getoption("baselines", None) or "baselines"),
            as_shipped=bool(config.getoption("as_shipped", False)),
            with_quirks=tuple(config.getoption("with_quirk", None) or ()),
        )


def device_of(config: pytest.Config, devices: Sequence[str]) -> str:
    """Return the device of this process: that of its number if it is a worker of pytest-xdist (`gw0`, `gw1`, ...).

    Workers beyond the devices share, and wait for each other, as they do for anybody who holds a device.
    """
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return devices[int(worker.removeprefix("gw")) % len(devices)]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run in which every case was skipped, because it judged nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and exitstatus == pytest.ExitCode.OK and not reporter.stats.get("passed"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
