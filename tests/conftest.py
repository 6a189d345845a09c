"""What tests of the real components share: runtimes that are compiled once, and a cache of their own."""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import kept_kernels
import pytest
from durations import load_durations, seconds_by_file, store_durations
from hypothesis import HealthCheck, settings
from shared_runtimes import link_runtimes

from device_runner.runtimes.phone import RuntimeStore
from device_runner.stand_ins.virtual import opencl as layer
from device_runner.stand_ins.virtual.faults import FAULTS_VARIABLE
from harness.base.process import cores
from harness.measure.records.view import without_garbage_collection
from harness.tools.runtime.check import examine, host_interface

FAULT_COLUMNS = ("fault", "outcome", "noticed after s", "brought back by")

GATES = "tests/gates/"

_seconds: dict[str, float] = {}
"""Seconds by test of this run."""
_skipped: set[str] = set()


def pytest_configure() -> None:
    """Hear Ctrl-C: started in the background we would be deaf to it, and so would all that tests start.

    Environments that tests make get bytecode of what they import only, which is half of the work. Without bytecode a
    process that imports TVM takes twice as long, and tests start hundreds: what forbids Python to write any is undone.
    PoCL derives limits from memory, which a virtual machine is given and loses while it runs: it is told an amount.
    Four processes have all cores busy: threads that wait for work by asking again and again would only take their time.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ.setdefault("POCL_MEMORY_LIMIT", "8")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "0")
    os.environ.setdefault("PIP_NO_COMPILE", "0")  # pip takes a false value here for "no compile"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


settings.register_profile(
    "explore",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("many", settings.get_profile("explore"), derandomize=True)
settings.register_profile("same", settings.get_profile("many"), max_examples=40)
settings.load_profile("same")
"""How long an example takes says how busy the machine is. The same code is tested with the same examples every time:
what is red is red again. `--hypothesis-profile=explore` draws new ones; `make test-rest` tries `many`."""


ALL = "ADRENO_BENCH_TEST_ALL"
"""Environment: whether tests with a mark of `SELDOM` run as well."""
SELDOM = {"long": "make test-long", "rest": "make test-rest"}
"""Marks, and what runs them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store-durations", action="store_true", help="keep how long each test took (make durations)")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Import all tests without looking for garbage among the modules: a sixth of the time that it takes.

    In a fresh clone half of the rest is bytecode. No more workers import at once than there are cores, so that those
    who wait find it made.
    """
    worker = int(getattr(session.config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw"))
    with Path(__file__).open("r+b") as file, without_garbage_collection():
        fcntl.lockf(file, fcntl.LOCK_EX, 1, worker % cores())
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests of `SELDOM` out unless asked for, and put the longest files first: none comes last and alone."""
    if not os.environ.get(ALL):
        for item in items:
            for mark, command in SELDOM.items():
                if item.get_closest_marker(mark):
                    item.add_marker(pytest.mark.skip(reason=f"run by `{command}`"))
    run = [item.nodeid for item in items if not item.get_closest_marker("skip")]
    needed_s = seconds_by_file(run, load_durations())
    # The gates hold a device until their process ends, so that no test of a device may follow them there.
    items.sort(key=lambda item: (item.nodeid.startswith(GATES), -needed_s.get(item.nodeid.partition("::")[0], 0.0)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up how long a test takes, with its set-up. Only the process that workers report to has all of them."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.skipped:
        _skipped.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--store-durations") and not hasattr(session.config, "workerinput"):
        store_durations({test: seconds for test, seconds in _seconds.items() if test not in _skipped})


STOCK = "ADRENO_BENCH_TEST_STOCK"
"""Environment: a folder with TVM's own build for this host, which virtual phones then run."""


@pytest.fixture(scope="session")
def sidecar_cache(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where our OpenCL and CLML runtimes are kept from run to run; with `STOCK` beside TVM's own.

    No device can be opened in it: all workers share it, and one test would find the device of another busy.
    Without pytest's cache (`-p no:cacheprovider`) they are kept for this run.
    """
    has_cache = pytestconfig.pluginmanager.hasplugin("cacheprovider")
    kept = Path(pytestconfig.cache.mkdir("sidecar")) if has_cache else tmp_path_factory.mktemp("sidecar")
    (kept / "leases").touch()  # a file where `open_device` needs a folder
    if not (folder := os.environ.get(STOCK)):
        return kept
    os.environ[layer.VARIABLE] = str(layer.layer(kept))  # as virtual phones have it: images lie over buffers
    with_stock = tmp_path_factory.mktemp("stock")
    link_runtimes(with_stock, kept)
    RuntimeStore(with_stock).add(examine(Path(folder), host_interface()))
    return with_stock


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is new, and the same in all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "common"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, sidecar_cache: Path, common: Path) -> Path:
    """A cache that is new but for the runtimes: what one test of this run builds, all others take from the store."""
    folder = tmp_path_factory.mktemp("cache")
    link_runtimes(folder, sidecar_cache)
    for kind in ("artifacts", "oracles"):
        (common / kind).mkdir(exist_ok=True)
        (folder / kind).symlink_to(common / kind)
    if (stock := sidecar_cache / "phone-runtime").exists():
        (folder / "phone-runtime").symlink_to(stock)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _leave_the_users_caches_alone(
    cache: Path, sidecar_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """What tests compile in their own process, or in one that they start, takes the runtimes that all tests share.

    Of PoCL's kernels each worker has a folder of its own, which begins with those of earlier runs (`kept_kernels`).
    """
    kernels, kept = tmp_path_factory.mktemp("kernels"), sidecar_cache / "kernels"
    kept_kernels.link(kept, kernels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADRENO_BENCH_CACHE", str(cache))
        patch.setenv("POCL_CACHE_DIR", str(kernels))
        yield
    kept_kernels.link(kernels, kept)


@pytest.fixture(scope="module")
def warm_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, bool]]:
    """Let virtual phones keep compiled kernels, for tests of many sessions that are not about a cold start.

    It is half of what a session of a small network costs. Tests with faults of their own add what this returns.
    """
    with kept_kernels.warm_driver(tmp_path_factory.mktemp("driver")) as faults:
        yield faults


@pytest.fixture(autouse=True)
def _hand_on_compiled_kernels(request: pytest.FixtureRequest, cache: Path, sidecar_cache: Path) -> Iterator[None]:
    """Let a phone with a warm driver take what the phones of other tests have compiled, also of earlier runs."""
    if "warm_driver" not in request.fixturenames:
        yield
        return
    kept = sidecar_cache / "phones"
    kept_kernels.lend(kept, cache)
    yield
    kept_kernels.keep(cache, kept)


@pytest.fixture
def waiting_inferences(warm_driver: dict[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let samples of virtual phones wait where they would compute: a long sampling then takes no processor time."""
    file = tmp_path / "waiting.json"
    file.write_text(json.dumps({**warm_driver, "simulate_inference_s": 0.02}))
    monkeypatch.setenv(FAULTS_VARIABLE, str(file))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what came of each injected fault, if any was."""
    rows = list(_faults(terminalreporter))
    if rows:
        from harness.base.tables import table

        terminalreporter.section("faults survived")
        terminalreporter.write_line(table(rows, FAULT_COLUMNS))


def _faults(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, ...]]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                told = dict(report.user_properties).get("fault")
                if isinstance(told, (tuple, list)):  # a list if it came from another process
                    yield tuple(str(cell) for cell in told)
