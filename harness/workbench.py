"""What `run`, `build` and `list` do first: read the suite, choose cases, open the device, plan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.names import suggestion
from harness.cases.case import Case
from harness.cases.suite import Suite, load_suite
from harness.failures import UsageError
from harness.store import cache_root

if TYPE_CHECKING:
    from device_runner.device import Device, Identity
    from harness.cases.plan import Plan


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
    raise UsageError(f"no case matches {glob!r}", hint=suggestion(glob, globs_that_match))


@dataclass(frozen=True)
class Wanted:
    """What is to be done, on whatever device."""

    suite: Suite
    cases: list[Case]
    cache: Path
    as_shipped: bool
    but_for: tuple[str, ...]

    def plans(self, identity: Identity) -> list[Plan]:
        """The cases, planned for a device."""
        from harness.cases.plan import plan_case

        return [plan_case(self.suite, case, identity, self.cache, self.as_shipped, self.but_for) for case in self.cases]


def wanted(
    suite_file: Path, globs: Sequence[str] | None, *, as_shipped: bool, but_for: Sequence[str] | None = None
) -> Wanted:
    """Read the suite and choose its cases. Raises UsageError before any device is touched.

    `but_for` names quirks that are worked around although the rest is as shipped.
    """
    from harness.cases.plan import check
    from harness.compiler.installed import versions
    from harness.compiler.releases import require_working_pair

    require_working_pair(versions())
    require_choice(as_shipped, but_for or ())
    suite = load_suite(suite_file)
    cases = choose(suite, globs)
    cache = cache_root()
    check(suite, cases, cache)
    return Wanted(suite, cases, cache, as_shipped, tuple(but_for or ()))


def make_ready(what: Wanted) -> None:
    """Make what the compile workers need, once, before the first of them wants it."""
    from device_runner.runtimes import clml as clml_runtime

    if any(case.path == "clml" for case in what.cases) and clml_runtime.needed():
        clml_runtime.library(what.cache)


@contextlib.contextmanager
def opened(
    what: Wanted,
    device_name: str,
    *,
    say: Callable[[str], None],
    pushing: Callable[[int, int], None] | None = None,
) -> Iterator[Work]:
    """Hold one device and plan for it. `pushing` is told how many bytes of a file have been sent, and of how many."""
    from device_runner.fleet.known import remember
    from device_runner.registry import open_device

    say(f"opening {device_name} (the first time, this compiles the runtimes that TVM's wheel lacks)")
    with open_device(device_name, what.cache, say=say, progress=pushing) as device:
        make_ready(what)
        remember(device_name, device.identity, what.cache)
        yield Work(what.suite, device, what.plans(device.identity), what.cache)


@contextlib.contextmanager
def prepared(
    suite_file: Path,
    globs: Sequence[str] | None,
    device_name: str,
    *,
    as_shipped: bool,
    but_for: Sequence[str] | None = None,
    say: Callable[[str], None],
    pushing: Callable[[int, int], None] | None = None,
) -> Iterator[Work]:
    """Open the one device that is meant and plan the chosen cases for it.

    Raises UsageError before any device is touched, or `AmbiguousDevice` if several are meant.
    """
    from device_runner.fleet.select import select_one

    what = wanted(suite_file, globs, as_shipped=as_shipped, but_for=but_for)
    with opened(what, select_one(device_name, what.cache, say), say=say, pushing=pushing) as work:
        yield work


def require_choice(as_shipped: bool, but_for: Sequence[str]) -> None:
    """Raise UsageError for quirks that there are not, or that are worked around anyway."""
    from harness.quirks import require_known

    require_known(but_for)
    if but_for and not as_shipped:
        raise UsageError("--with-quirk goes with --as-shipped", hint="without it all quirks are worked around")
