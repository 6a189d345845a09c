"""The installed pytest plugin. It does nothing unless `harness.pytest_plugin` is among what pytest is asked to run.

Other people's suites may have a `--device` of their own, so the options are added only then; and nothing of the
harness is imported before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PACKAGE = "harness.pytest_plugin"
ACTIVE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our options if this run is ours."""
    config = pluginmanager.get_plugin("pytestconfig")
    if config and asks_for_us([str(argument) for argument in config.invocation_params.args]):
        config.stash[ACTIVE] = True
        add_options(parser)


def asks_for_us(arguments: Sequence[str]) -> bool:
    """Return whether the command line names this package, as a module or by its path."""
    here = Path(__file__).parent
    names = [argument.split("::")[0] for argument in arguments if not argument.startswith("-")]
    return any(name == PACKAGE or name.startswith(f"{PACKAGE}.") or _within(name, here) for name in names)


def _within(name: str, folder: Path) -> bool:
    path = Path(name).absolute()
    return path == folder or folder in path.parents


def add_options(parser: pytest.Parser) -> None:
    """Add the options of correctness tests, in the words of `adreno-bench run`."""
    from harness.base import option_texts as texts

    group = parser.getgroup("adreno-bench", "correctness tests of adreno-bench")
    group.addoption(
        "--suite", metavar="FILE", help=f"{texts.SUITE} Default: adreno-bench.toml beside the tests, or here."
    )
    group.addoption("--case", action="append", metavar="GLOB", help=texts.CASE)
    group.addoption(
        "--device",
        action="append",
        metavar="DEVICE",
        help=f"{texts.DEVICE} Default: virtual. Repeatable with -n: each worker has one of them.",
    )
    group.addoption("--baselines", metavar="DIR", help=f"{texts.BASELINES} Default: baselines.")
    group.addoption("--adreno-report", metavar="FILE", help="Write one HTML page of all cases.")
    group.addoption("--as-shipped", action="store_true", help=texts.AS_SHIPPED)
    group.addoption("--with-quirk", action="append", metavar="QUIRK", help=texts.WITH_QUIRK)


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the rest if this run is ours."""
    if config.stash.get(ACTIVE, False):
        config.pluginmanager.import_plugin(_rest())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """`-n auto`: one worker for each device."""
    if not config.stash.get(ACTIVE, False):
        return None
    from device_runner.names import load

    devices: Callable[[pytest.Config], Sequence[str]] = load(f"{_rest()}:devices")
    return len(devices(config))


def _rest() -> str:
    from harness.base.tool import tools

    return next(tool.pytest_plugin for tool in tools() if tool.pytest_plugin)
