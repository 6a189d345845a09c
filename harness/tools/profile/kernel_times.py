"""What the kernels of each case took over the commits of a history, from the profiles kept beside its records."""

from __future__ import annotations

import glob
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern

from pydantic import ValidationError

from harness.base.outcome import Outcome
from harness.judge.history.events import Event
from harness.judge.history.results import History, Point, Series, state_of_quirks
from harness.tools.profile.groups import by_kind
from harness.tools.shared.kernels.profile import ENDING, Head, Profile, read_profiles

NEWEST = 40
"""Commits whose kernels are read; of those before, the two sides of each step."""
COMPARED = 2
"""Newest profiles of a series that are kept whole."""


@dataclass
class CaseKernels:
    """One series, as far as its kernels were watched."""

    series: Series
    times_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    """Time of each kind of operator by its name, for each commit in order."""
    profiles: dict[str, Profile] = field(default_factory=dict)
    """Profiles by commit in order: the newest, and both sides of each step and of the last change of the build."""
    rebuilt: tuple[str, str] | None = None
    """The last two neighbouring commits with kernel times whose builds differ; None if none do lately."""

    def point(self, commit: str) -> Point:
        """Return the point of a commit."""
        return next(point for point in self.series.points if point.commit == commit)

    @property
    def newest(self) -> tuple[Point, Profile]:
        """The newest commit that has any, which need not be the history's newest."""
        commit, profile = list(self.profiles.items())[-1]
        return self.point(commit), profile


Key = tuple[str, str, str]
"""Machine, case and state of quirks."""
Kernels = Mapping[Key, CaseKernels]


def key_of(series: Series) -> Key:
    """Return the key under which the kernels of a series are."""
    return series.machine, series.case.id, series.quirks


def load_kernels(results: Path, history: History, moved: Sequence[Event], *, only_moved: bool = False) -> Kernels:
    """Return the kernels of each series that has any; with `only_moved`, of the commits on either side of a step alone.

    Files that cannot be read are added to what the history skipped.
    """
    kernels_by_key = {key_of(series): CaseKernels(series) for series in history.series}
    for machine, commits in history.commits.items():
        folder = results / machine
        if any(folder.glob(f"*{ENDING}")):
            recent = [] if only_moved else commits[-NEWEST:]
            _load(folder, commits, recent, kernels_by_key, _sides(machine, moved), history.skipped)
    return {key: kernels for key, kernels in kernels_by_key.items() if kernels.profiles}


def _sides(machine: str, moved: Sequence[Event]) -> dict[str, set[Key]]:
    """Return the commits on either side of a step, with the series that made it."""
    sides: dict[str, set[Key]] = {}
    for event in moved:
        if event.step and event.series.machine == machine:
            for point in (event.before, event.after):
                sides.setdefault(point.commit, set()).add(key_of(event.series))
    return sides


def _load(
    folder: Path,
    commits: Sequence[str],
    recent: Collection[str],
    kernels_by_key: Mapping[Key, CaseKernels],
    sides: Mapping[str, Collection[Key]],
    skipped: list[str],
) -> None:
    """Read the commits of one machine, the newest first, so that it is known which profiles are to be kept whole."""
    points = _points(folder.name, kernels_by_key, {*recent, *sides})
    newer: dict[Key, tuple[str, Profile]] = {}
    for commit in (hash_ for hash_ in reversed(commits) if hash_ in points):
        named, here = sides.get(commit, ()), points[commit]
        points_here = here if commit in recent else {key: here[key] for key in named if key in here}
        for key, profile in _profiles(folder, commit, points_here, skipped).items():
            if commit in recent:
                _add(kernels_by_key[key], commit, profile, newer.get(key))
                newer[key] = commit, profile
            if key in named:
                kernels_by_key[key].profiles[commit] = profile
    for key in (key for key in kernels_by_key if key[0] == folder.name):
        kernels_by_key[key].times_ms = dict(reversed(kernels_by_key[key].times_ms.items()))
        kernels_by_key[key].profiles = dict(reversed(kernels_by_key[key].profiles.items()))


def _add(kernels: CaseKernels, commit: str, profile: Profile, newer: tuple[str, Profile] | None) -> None:
    """Add one of the newest commits; `newer` is what was added before."""
    kernels.times_ms[commit] = _times_ms(profile)
    if newer and not kernels.rebuilt and newer[1].artifact != profile.artifact:
        kernels.rebuilt = commit, newer[0]
        kernels.profiles.update([newer, (commit, profile)])
    if len(kernels.profiles) < COMPARED:
        kernels.profiles[commit] = profile


def _points(
    machine: str, kernels_by_key: Mapping[Key, CaseKernels], commits: Collection[str]
) -> dict[str, dict[Key, Point]]:
    """Return the points with a latency, by commit and series."""
    points: dict[str, dict[Key, Point]] = {}
    for key, kernels in kernels_by_key.items():
        if key[0] == machine:
            for point in kernels.series.points:
                if point.commit in commits and point.outcome is Outcome.OK and point.artifact:
                    points.setdefault(point.commit, {})[key] = point
    return points


def _profiles(folder: Path, commit: str, points: Mapping[Key, Point], skipped: list[str]) -> dict[Key, Profile]:
    """Return the last profile of each of these points: of the same build, whose answer was right."""

    def key(head: Head | Profile) -> Key:
        return folder.name, head.case, state_of_quirks(as_shipped=head.as_shipped)

    def wanted(head: Head) -> bool:
        point = points.get(key(head))
        return point is not None and point.artifact == head.artifact

    profiles: dict[Key, Profile] = {}
    for file in sorted(folder.glob(f"{glob.escape(commit[:8])}-*{ENDING}")):
        try:
            profiles.update((key(profile), profile) for profile in read_profiles(file, wanted))
        except (OSError, ValueError) as error:
            why = "no profile" if isinstance(error, ValidationError) else str(error).partition("\n")[0]
            skipped.append(f"{file}: {why}")
    return profiles


def _times_ms(profile: Profile) -> dict[str, float]:
    times: dict[str, float] = {}
    for label, alike in by_kind(profile):
        times[intern(label)] = times.get(label, 0.0) + sum(operator.ms for operator in alike)
    return times
