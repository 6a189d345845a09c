"""TVM's releases as a git repository: one commit and tag for each, dated as released, holding the packages' pins."""

from __future__ import annotations

from pathlib import Path

from harness.compiler.releases import RELEASES
from harness.revisions.git import git

PINS = "requirements.txt"
"""The file that a commit holds."""


def repository(repo: Path) -> None:
    """Make a repository of every release that is known, whether or not this Python could install it."""
    init(repo)
    for release in RELEASES:
        commit(repo, release)


def init(repo: Path) -> None:
    """Make an empty repository unless there is one."""
    repo.mkdir(parents=True, exist_ok=True)
    if not (repo / ".git").exists():
        git(repo, "init", "--quiet", "--initial-branch=main")


def commit(repo: Path, release: str) -> None:
    """Add a known release. The commit is the same on every machine."""
    (repo / PINS).write_text("\n".join(RELEASES[release].pins) + "\n", encoding="utf-8")
    git(repo, "add", PINS)
    git(repo, "commit", "--quiet", "--message", f"apache-tvm {release}", date=RELEASES[release].released_at)
    git(repo, "tag", release)
