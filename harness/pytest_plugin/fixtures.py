"""How cases become tests, and what the tests are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from device_runner.failures import Failure
from harness.cases.case import Case
from harness.pytest_plugin.case_runner import CaseRunner, opened
from harness.pytest_plugin.message import explain, headline
from harness.pytest_plugin.options import Options, device_of
from harness.run.outcome import Outcome, Owner
from harness.run.record import Record

ARGUMENT = "adreno_case"
PROPERTY = "adreno_bench_record"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case of the suite, named by its id."""
    if ARGUMENT in metafunc.fixturenames:
        options = Options.of(metafunc.config, metafunc.definition.path.parent)
        try:
            cases = _cases(options)
        except Failure as failure:
            raise pytest.Collector.CollectError(str(failure)) from None
        metafunc.parametrize(ARGUMENT, cases, ids=[case.id for case in cases])


def _cases(options: Options) -> list[Case]:
    from device_runner.store import cache_root
    from harness.build.planner import check
    from harness.cases.suite import choose, load_suite

    suite = load_suite(options.suite)
    cases = choose(suite, options.cases)
    check(suite, cases, cache_root())
    return cases


@pytest.fixture(scope="session")
def adreno_bench(request: pytest.FixtureRequest) -> Iterator[CaseRunner]:
    """The device, opened once, with everything built that this session tests."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function) and _case_of(item)]
    options = Options.of(request.config, tests[0].path.parent)
    try:
        device = device_of(request.config, options.devices)
        with opened(options, device, [_case_of(test) for test in tests]) as bench:
            yield bench
    except Failure as failure:
        pytest.fail(str(failure), pytrace=False)  # while setting up, so it is an error of the test, not a failure


def _case_of(item: pytest.Function) -> str:
    case = getattr(item, "callspec", None) and item.callspec.params.get(ARGUMENT)
    return case.id if isinstance(case, Case) else ""


@pytest.fixture
def adreno_record(
    adreno_case: Case, adreno_bench: CaseRunner, record_property: Callable[[str, object], None]
) -> Record:
    """What the case came to. What is not the path's or the compiler's fault ends here, before the test."""
    record = adreno_bench.record(adreno_case.id)
    record_property(PROPERTY, record.line())
    if record.outcome is Outcome.UNSUPPORTED:
        pytest.skip(record.message)
    if record.outcome is Outcome.OK and record.vacuous:
        pytest.skip(f"vacuous: being right proves nothing: {'; '.join(record.vacuous)}")
    if record.outcome.owner in (Owner.DEVICE, Owner.RIG):
        pytest.fail("\n".join(filter(None, (headline(record), record.hint, record.evidence))), pytrace=False)
    return record


@pytest.fixture
def adreno_complaint(adreno_record: Record, adreno_case: Case, adreno_bench: CaseRunner) -> str:
    """What is wrong with the case, for a person; empty if nothing is."""
    if adreno_record.outcome is Outcome.OK:
        return ""
    try:
        known = adreno_bench.baseline(adreno_case.id)
    except Failure as failure:
        pytest.fail(str(failure), pytrace=False)
    return explain(adreno_record, adreno_bench.options.suite, known, adreno_bench.suite.justified(adreno_case))
