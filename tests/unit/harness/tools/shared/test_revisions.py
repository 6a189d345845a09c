"""What a person's word for a revision means."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.base.failures import UsageError
from harness.compile.compiler.releases import RELEASES
from harness.judge.revisions.git import git
from harness.tools.shared.revisions import revision
from harness.tools.upstream.bisect.line import describe, revisions_between


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository `m0 - m1 - (side merged) - m3`, tagged v1.0 at m0 and v2.0 at m3."""
    repo = tmp_path_factory.mktemp("repository")
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "m0")
    git(repo, "tag", "v1.0")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "m1")
    git(repo, "checkout", "--quiet", "-b", "side")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "s0")
    git(repo, "checkout", "--quiet", "main")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "m2")
    git(repo, "merge", "--quiet", "--no-ff", "-m", "m3", "side")
    git(repo, "tag", "v2.0")
    return repo


@pytest.fixture
def config(repository: Path, tmp_path: Path) -> Path:
    """The configuration of a copy of that repository."""
    shutil.copytree(repository, tmp_path / "tvm")
    file = tmp_path / "asv.conf.json"
    file.write_text(json.dumps({"version": 1, "project": "tvm", "repo": "tvm", "install_command": ["true"]}))
    return file


def test_a_release_is_a_release_whatever_the_configuration_says(config: Path, tmp_path: Path) -> None:
    found = revision("0.26.0", config, tmp_path / "cache")
    assert (found.name, found.source.released) == ("0.26.0", True)
    assert git(found.source.repo, "show", f"{found.commit}:requirements.txt").startswith("apache-tvm==0.26.0\n")


@pytest.mark.parametrize(("word", "name"), [("0.26", "0.26.0"), ("v0.27.0", "0.27.0.post1"), ("0.25", "0.25.0.post1")])
def test_the_first_numbers_of_a_release_name_it(config: Path, tmp_path: Path, word: str, name: str) -> None:
    assert revision(word, config, tmp_path / "cache").name == name


def test_the_releases_are_the_same_commits_in_every_cache(config: Path, tmp_path: Path) -> None:
    commits = [revision("0.27.0.post1", config, tmp_path / name).commit for name in ("a", "b")]
    assert commits[0] == commits[1]


def test_releases_between_two_are_in_the_order_they_came_out(config: Path, tmp_path: Path) -> None:
    ends = [revision(word, config, tmp_path / "cache") for word in ("0.25.0.post1", "0.27.0.post1")]
    assert [one.name for one in revisions_between(*ends)] == list(RELEASES)
    with pytest.raises(
        UsageError, match=r"is later than --bad 0.25.*swap them: --good 0\.25\.0\.post1 --bad 0\.27\.0\.post1"
    ):
        revisions_between(*reversed(ends))


def test_a_repository_may_be_named_a_bare_one_too(config: Path, tmp_path: Path) -> None:
    bare = tmp_path / "mirror"
    git(tmp_path, "clone", "--quiet", "--bare", "tvm", "mirror")
    config.write_text(config.read_text().replace('"tvm", "install', '"elsewhere", "install'))
    found = revision("v2.0", config, tmp_path, bare)
    assert found.source.repo == bare.resolve()
    with pytest.raises(UsageError, match=r"--repo names .*, which is no repository here"):
        revision("v2.0", config, tmp_path, tmp_path / "nowhere")


def test_commits_may_be_limited_to_those_that_touch_a_path(config: Path, tmp_path: Path) -> None:
    repo = tmp_path / "tvm"
    for name, text in (("src", "a"), ("docs", "b"), ("src", "c"), ("docs", "d")):
        (repo / name).write_text(text)
        git(repo, "add", name)
        git(repo, "commit", "--quiet", "-m", f"{name} {text}")
    good, bad = revision("v2.0", config, tmp_path), revision("main", config, tmp_path)
    line = revisions_between(good, bad, paths=["src"])
    assert [describe(one).rpartition(": ")[2] for one in line] == ["m3", "src a", "src c", "docs d"]
    with pytest.raises(UsageError, match=r"no commit from .* touches include"):
        revisions_between(good, bad, paths=["include"])


def test_commits_between_two_follow_first_parents(config: Path, tmp_path: Path) -> None:
    good, bad = revision("v1.0", config, tmp_path), revision("v2.0", config, tmp_path)
    line = revisions_between(good, bad)
    assert [describe(one).rpartition(": ")[2] for one in line] == ["m0", "m1", "m2", "m3"]
    assert all(one.commit.startswith(one.name) for one in line)


@pytest.mark.parametrize(
    ("good", "bad", "why"),
    [
        ("v2.0", "v1.0", "swap them: --good"),
        ("v1.0", "v1.0", "are the same"),
        ("side", "v2.0", "does not descend"),
        ("v1.0", "0.26.0", "not of one"),
    ],
)
def test_ends_that_make_no_line_are_refused(config: Path, tmp_path: Path, good: str, bad: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        revisions_between(revision(good, config, tmp_path), revision(bad, config, tmp_path))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("0.26.1", "the releases are 0.25.0"),
        ("0.24.0", "the releases are 0.25.0"),
        ("2.0", "did you mean 'v2.0'"),
        ("v2", "did you mean 'v2.0'"),
        ("--help", "the releases are"),
        ("", "the releases are"),
    ],
)
def test_a_word_that_means_nothing_is_named_with_the_nearest(
    config: Path, tmp_path: Path, word: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=f"'{word}' is no file, no known release of TVM and no revision of .*: {hint}"):
        revision(word, config, tmp_path)


def test_without_a_repository_a_commit_cannot_be_meant(tmp_path: Path) -> None:
    config = tmp_path / "asv.conf.json"
    with pytest.raises(UsageError, match=r"no commit .there is no "):
        revision("main", config, tmp_path)
    config.write_text('{"version": 1, "repo": "nowhere"}')
    with pytest.raises(UsageError, match=r"no commit .*nowhere, which is no repository here"):
        revision("main", config, tmp_path)
