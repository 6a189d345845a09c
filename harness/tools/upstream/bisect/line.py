"""The line of revisions between two ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.base.failures import UsageError
from harness.compile.compiler.releases import RELEASES
from harness.judge.revisions.git import git
from harness.tools.shared.revisions import Revision, revision_at


def revisions_between(good: Revision, bad: Revision, *, paths: Sequence[str] = ()) -> list[Revision]:
    """Return all revisions from `good` to `bad`, both included, along the first parents. Raises UsageError.

    With `paths`, of those between the ends only the ones that touch a file there.
    """
    if good.source != bad.source:
        raise UsageError(f"{good} and {bad} are not of one repository", hint="name two releases, or two commits")
    if good.commit == bad.commit:
        raise UsageError(f"{good} and {bad} are the same revision", hint="name two that differ")
    repo = good.source.repo
    if _commits_after(repo, bad.commit, good.commit):
        raise UsageError(f"--good {good} is later than --bad {bad}", hint=f"swap them: --good {bad} --bad {good}")
    line = _commits_after(repo, good.commit, bad.commit)
    if not line:
        raise UsageError(
            f"{bad} does not descend from {good} along first parents",
            hint="--good is the earlier of the two, and both lie on one branch",
        )
    if paths:
        touching = git(repo, "rev-list", "--first-parent", f"{good.commit}..{bad.commit}", "--", *paths).split()
        if not touching:
            raise UsageError(
                f"no commit from {good} to {bad} touches {', '.join(paths)}", hint="paths are the repository's"
            )
        line = [commit for commit in line if commit in {*touching, bad.commit}]
    return [good, *(revision_at(commit, good.source) for commit in line[:-1]), bad]


def _commits_after(repo: Path, first: str, last: str) -> list[str]:
    """Return the commits after `first` up to `last` along first parents; none if `last` does not descend from it."""
    line = git(repo, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    return line if line and git(repo, "rev-parse", f"{line[0]}^").strip() == first else []


def advice_before(good: str, otherwise: str) -> str:
    """Return what to do if the good end is bad already: `otherwise`, unless no release is older."""
    if good != next(iter(RELEASES)):
        return otherwise
    return (
        f"{good} is the oldest release that can be installed; for commits before it clone TVM, and pass "
        "--repo FOLDER --good COMMIT --bad COMMIT"
    )


def describe(revision: Revision) -> str:
    """One line on a revision, as its repository has it."""
    return git(
        revision.source.repo, "show", "--no-patch", "--format=%h %ad %an: %s", "--date=short", revision.commit
    ).strip()
