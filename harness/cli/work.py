"""What `run`, `build` and `list` do first: read the suite, choose cases, open the device, plan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.artifact import cache_root
from harness.case import Case
from harness.failures import UsageError
from harness.suite import Suite, load_suite, nearest

if TYPE_CHECKING:
    from device_runner.device import Device
    from harness.plan import Plan


@dataclass(frozen=True)
class Work:
    """A device held by us, and what is to be done on it."""

    suite: Suite
    device: Device
    plans: list[Plan]
    cache: Path


def choose(suite: Suite, globs: Sequence[str] | None) -> list[Case]:
    """The suite's cases that match any of the globs, or else those that it could have.

    So '*-clml-*-tuned' means what it says where the suite lists untuned cases only. Raises UsageError for a glob that
    matches nothing.
    """
    chosen = {case for glob in globs or ["*"] for case in _matching(suite, glob)}
    return sorted(chosen, key=suite.reachable[-1].index)


def _matching(suite: Suite, glob: str) -> list[Case]:
    for cases in suite.reachable:
        if found := [case for case in cases if case.matches(glob)]:
            return found
    globs_that_match = sorted({f"{c.model}-*" for c in suite.cases} | {f"*-{c.path}-*" for c in suite.cases})
    raise UsageError(f"no case matches {glob!r}", hint=nearest(glob, globs_that_match))


@contextlib.contextmanager
def prepared(
    suite_file: Path,
    globs: Sequence[str] | None,
    device_name: str,
    *,
    as_shipped: bool,
    say: Callable[[str], None],
    pushing: Callable[[int, int], None] | None = None,
) -> Iterator[Work]:
    """Open the device and plan the chosen cases for it. Raises UsageError before any device is touched.

    `pushing` is told how many bytes of a file have been sent, and of how many.
    """
    from device_runner import clml_runtime
    from device_runner.registry import open_device
    from harness.build import versions
    from harness.pairs import require_working_pair
    from harness.plan import check, plan_case

    require_working_pair(versions())
    suite = load_suite(suite_file)
    cases = choose(suite, globs)
    cache = cache_root()
    check(suite, cases, cache)
    say(f"opening {device_name} (the first time, this compiles the runtimes that TVM's wheel lacks)")
    with open_device(device_name, cache, say=say, progress=pushing) as device:
        if any(case.path == "clml" for case in cases) and clml_runtime.needed():
            clml_runtime.library(cache)  # once, before the compile workers want it
        identity = device.identity
        yield Work(suite, device, [plan_case(suite, case, identity, cache, as_shipped) for case in cases], cache)
