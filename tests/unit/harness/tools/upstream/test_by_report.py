"""The commit at which a report's program says something else, in a repository whose package is a fake TVM."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from defects.presence import presence

from harness.base.failures import UsageError
from harness.judge.revisions.git import git
from harness.tools.shared.environment import InstallFailure
from harness.tools.shared.revisions import Revision, Source
from harness.tools.upstream.bisect.by_report import Ask, find_turn, grafted_commits
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

SCRIPT = """
import sys
from tvm.kept import WORD
from tvm.pattern import STATE
print(WORD)
print("defect", STATE)
sys.exit(STATE == "present")
"""
STATES = ["", "absent", "absent", "broken", "absent", "present", "present"]
"""State that the file of each commit names. The program does not end well with `broken`; the first has no file."""


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> list[Revision]:
    repo = tmp_path_factory.mktemp("repo")
    file = repo / "python/tvm/pattern.py"
    file.parent.mkdir(parents=True)
    git(repo, "init", "--quiet", "--initial-branch=main")
    made = []
    for number, state in enumerate(STATES):
        if state:
            file.write_text(f"STATE = {state!r}\n")
        (repo / "python/tvm/kept.py").write_text("WORD = 'of the commit'\n")
        git(repo, "add", ".")
        git(repo, "commit", "--quiet", "--allow-empty", "-m", str(number))
        commit = git(repo, "rev-parse", "HEAD").strip()
        made.append(Revision(f"c{number}", commit, Source(repo.parent / "asv.json", repo, released=False)))
    return made


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter in which a TVM is installed, whose pattern is absent and whose libraries are beside it."""
    installed = tmp_path / "installed" / "tvm"
    (installed / "lib").mkdir(parents=True)
    (installed / "__init__.py").touch()
    (installed / "kept.py").write_text("WORD = 'of the release'\n")
    (installed / "pattern.py").write_text("STATE = 'absent'\n")
    file = tmp_path / "python"
    # `-I` leaves no way to name a folder but the path itself.
    file.write_text(
        f'#!/bin/sh\ncode="import sys; sys.path.insert(0, {str(installed.parent)!r}); exec(sys.argv.pop(1))"\n'
        f'[ "$2" = -c ] && shift 2\nexec {sys.executable} -S -I -c "$code" "$@"\n'
    )
    file.chmod(0o755)
    return file


def test_the_first_commit_whose_file_has_the_defect(line: list[Revision], python: Path) -> None:
    found = find_turn(line[1:], grafted_commits(SCRIPT, python, ["python/tvm/pattern.py"]), print)
    assert (found.search.good, found.search.candidates) == ("c4", ["c5"])
    assert found.answers["c5"] == ProbeAnswer(Presence.PRESENT, "of the release")


def test_a_commit_without_the_file_is_before_the_defect(line: list[Revision], python: Path) -> None:
    paths = ["python/tvm/pattern.py"]
    found = find_turn([line[0], line[5]], grafted_commits(SCRIPT, python, paths), print)
    assert (found.search.good, found.search.candidates) == ("c0", ["c5"])
    assert "No module named 'tvm.pattern'" in found.answers["c0"].seen


def test_a_commit_with_a_link_is_skipped(line: list[Revision], python: Path, tmp_path: Path) -> None:
    repo = line[0].source.repo
    file = repo / "python/tvm/pattern.py"
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere.py")
    git(repo, "commit", "--quiet", "--all", "-m", "link")
    linked = dataclasses.replace(line[0], commit=git(repo, "rev-parse", "HEAD").strip())
    with pytest.raises(InstallFailure, match=r"python/tvm/pattern\.py is no file"):
        grafted_commits(SCRIPT, python, ["python/tvm/pattern.py"])(linked)


def test_a_fix_is_found_in_the_same_way(line: list[Revision]) -> None:
    fixed = find_turn(line[1:], _told([Presence.PRESENT] * 3 + [Presence.ABSENT] * 3), print)
    assert (fixed.search.good, fixed.search.candidates) == ("c3", ["c4"])


def test_what_cannot_be_judged_beside_the_turn_is_named(line: list[Revision]) -> None:
    states = [Presence.ABSENT, Presence.ABSENT, Presence.CANNOT_TELL, Presence.PRESENT]
    found = find_turn(line[:4], _told(states, first=0), print)
    assert (found.search.good, found.search.candidates) == ("c1", ["c2", "c3"])


def test_a_commit_that_does_not_build_is_skipped(line: list[Revision]) -> None:
    def ask(revision: Revision) -> ProbeAnswer:
        if revision.name == "c3":
            raise InstallFailure("no compiler")
        return presence(revision.name > "c4", "seen")

    found = find_turn(line[1:], ask, print)
    assert found.search.candidates == ["c5"]
    assert found.answers.get("c3", ProbeAnswer(Presence.CANNOT_TELL, "not built: no compiler")).seen.startswith("not")


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([Presence.PRESENT] * 2, "both ends have the same answer: present"),
        ([Presence.ABSENT, Presence.CANNOT_TELL], "the program has no answer at --bad"),
    ],
)
def test_ends_that_tell_nothing_are_refused(line: list[Revision], states: list[Presence], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find_turn(line[:2], _told(states, first=0), print)


@pytest.mark.parametrize(
    "path",
    [
        "src/x.cc",
        "python/",
        "python//etc",
        "python/../x",
        "python/tvm/./x",
        "python/tvm/lib",
        "python/tvm/lib/libtvm.so",
    ],
)
def test_only_files_of_the_package_are_grafted(python: Path, path: str) -> None:
    """A file that the commit lacks is removed, so nothing may lead out of the copy of the package."""
    with pytest.raises(UsageError, match=f"{re.escape(path)} is not a Python file of TVM"):
        grafted_commits(SCRIPT, python, [path])


def _told(states: list[Presence], first: int = 1) -> Ask:
    answers = {f"c{first + place}": ProbeAnswer(state, "seen") for place, state in enumerate(states)}
    return lambda revision: answers[revision.name]


def test_below_the_oldest_release_a_clone_of_tvm_is_the_way_on(line: list[Revision]) -> None:
    ends = [dataclasses.replace(line[0], name="0.25.0.post1"), line[1]]
    answer = presence(True, "seen")
    with pytest.raises(UsageError, match="both ends have the same answer: present") as refused:
        find_turn(ends, lambda _: answer, print)
    assert "clone TVM, and pass --repo FOLDER" in refused.value.hint
