"""What correctness tests were asked to do, from pytest's command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

SUITE = "adreno-bench.toml"


def devices(config: pytest.Config) -> tuple[str, ...]:
    """The devices that were named, or the virtual one."""
    return tuple(config.getoption("device", None) or ("virtual",))


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
    def of(cls, config: pytest.Config, beside: Path) -> Options:
        """The options of this run. A suite file `beside` the tests is their default."""
        own = beside / SUITE
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
    """The device of this process: that of its number if it is a worker of pytest-xdist (`gw0`, `gw1`, ...).

    Workers beyond the devices share, and wait for each other, as they do for anybody who holds a device.
    """
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return devices[int(worker.removeprefix("gw")) % len(devices)]
