"""What a revision of the compiler is.

Releases and commits are one thing: commits of a repository that an asv configuration tells how to install. The
repository of the releases is made in the cache; its commits are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from device_runner.names import suggestion
from device_runner.store import Store, keep, key_of
from harness.base.failures import UsageError
from harness.compile.compiler.releases import HARNESS, RELEASES, find_release, harness_version, is_release
from harness.judge.revisions.git import GitFailure, git
from harness.judge.revisions.repository import CONFIG, PINS, commit, configuration, init, write_configuration

REPOSITORY_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Source:
    """A repository of the compiler and the asv configuration that installs its commits. Both paths are absolute."""

    config: Path
    repo: Path
    released: bool
    """Whether its commits are releases, which the installed packages name for themselves."""


@dataclass(frozen=True)
class Revision:
    """One revision of the compiler."""

    name: str
    """Name for people: a release, or the first digits of a commit."""
    commit: str
    source: Source

    def __str__(self) -> str:
        return self.name


def revision(word: str, config: Path, cache: Path, repo: Path | None = None) -> Revision:
    """Return what a word means: a known release, else a revision of `repo`, or of the repository that `config` names.

    Raises UsageError if it is neither.
    """
    if release := find_release(word):
        source = releases(cache)
        return Revision(release, git(source.repo, "rev-parse", f"{release}^{{commit}}").strip(), source)
    tags: list[str] = []
    try:
        repository = commits(config, repo)
        tags = git(repository.repo, "tag", "--list").split()
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
        return revision_at(git(repository.repo, *asked).strip(), repository)
    except GitFailure:
        why = f"no revision of {repository.repo}"
    except UsageError as error:
        why = f"no commit ({error.message})"
    # The nearest to a release that there is not says nothing, unless it is its tag.
    candidates = [tag for tag in tags if tag == f"v{word}"] if is_release(word) else [*RELEASES, *tags]
    hint = suggestion(word, candidates, otherwise="the releases are", choices=RELEASES)
    raise UsageError(f"{word!r} is no file, no known release of TVM and {why}", hint=hint)


def revision_at(commit: str, source: Source) -> Revision:
    """Return a commit of a repository under the name of its release, or its first ten digits."""
    tags = git(source.repo, "tag", "--points-at", commit).split() if source.released else []
    return Revision(tags[0] if tags else commit[:10], commit, source)


def commits(config: Path, repo: Path | None = None) -> Source:
    """Return the repository that an asv configuration names, or `repo` instead.

    Raises UsageError if it is not there.
    """
    if not config.exists():
        raise UsageError(f"there is no {config}", hint="pass --config FILE")
    place = repo.absolute() if repo else config.resolve().parent / str(configuration(config).repo)
    folder, who = place.resolve(), "--repo" if repo else config
    if not (folder / ".git").exists() and not (folder / "objects").is_dir():
        raise UsageError(f"{who} names {folder}, which is no repository here", hint="clone it there, or pass --repo")
    return Source(config.resolve(), folder, released=False)


def releases(cache: Path) -> Source:
    """Return a repository of every known release, made anew only when the list of releases changes."""
    requirements = _requirements()
    key = key_of({"pins": {release.tvm: release.pins for release in RELEASES.values()}, "requirements": requirements})

    def make(scratch: Path) -> None:
        repository(scratch / "repo")
        install = (
            f"in-dir={{env_dir}} python -m pip install --no-compile {' '.join(requirements)} -r {{build_dir}}/{PINS}"
        )
        write_configuration(scratch, repo="repo", install_command=[install], uninstall_command=[])

    folder = Store(cache, "releases", sums=False).obtain(key, make, REPOSITORY_TIMEOUT_S)
    keep(folder)
    return Source(folder / CONFIG, folder / "repo", released=True)


def _requirements() -> list[str]:
    """Return what this harness needs beside TVM, as installed here, so that only TVM differs between releases."""
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    pins = []
    harness_version()  # refuses, with what to do, where there is no metadata
    for text in requires(HARNESS) or ():
        requirement = Requirement(text)
        if requirement.name.startswith("apache-tvm") or (
            requirement.marker and not requirement.marker.evaluate({"extra": ""})
        ):
            continue
        try:
            pins.append(f"{requirement.name}=={version(requirement.name)}")
        except PackageNotFoundError:  # newer than what is installed here: as good as we run ourselves
            continue
    return sorted(pins)


def repository(repo: Path) -> None:
    """Make a repository of every release that is known, whether or not this Python could install it."""
    init(repo)
    for release in RELEASES:
        commit(repo, release)
