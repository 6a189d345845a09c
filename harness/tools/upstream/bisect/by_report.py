"""The commit with which the program of a defect's report says something else: no case is built, no device is used."""

from __future__ import annotations

import dataclasses
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from device_runner.files import scratch_folder
from harness.base.failures import UsageError
from harness.judge.revisions.git import call, git
from harness.tools.shared.environment import InstallFailure, environment
from harness.tools.shared.revision_search import RevisionSearch, RevisionState
from harness.tools.shared.revisions import Revision
from harness.tools.upstream.bisect.line import advice_before
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer
from harness.tools.upstream.report import reproduce

PACKAGE = "python/"
"""Folder of TVM's repository that holds the package `tvm`."""
_SHARED = ("lib", "lib64", "include", "3rdparty", "src")
"""Parts of an installed TVM that no commit's Python files replace: hundreds of megabytes."""
_PACKAGE_PATH = "import importlib.util; print(*importlib.util.find_spec('tvm').submodule_search_locations)"

Ask = Callable[[Revision], ProbeAnswer]
"""Runs the program with a revision. Raises InstallFailure."""


@dataclass(frozen=True)
class ReportSearch:
    """Answers of the program by revision, in the order of the line, and where they turn."""

    line: Sequence[str]
    answers: dict[str, ProbeAnswer] = field(default_factory=dict)

    def state(self, name: str) -> RevisionState:
        """Return `good` for the first end's answer, `bad` for the last end's, `skip` for any other."""
        answer = _meaning(self.answers[name])
        ends = {_meaning(self.answers[self.line[0]]): RevisionState.GOOD}
        ends[_meaning(self.answers[self.line[-1]])] = RevisionState.BAD
        return ends.get(answer, RevisionState.SKIP)

    @property
    def search(self) -> RevisionSearch:
        """The search, with what is known."""
        return RevisionSearch(self.line, {name: self.state(name) for name in self.answers if name in self.line[1:-1]})


def _meaning(answer: ProbeAnswer) -> tuple[Presence, str]:
    """Return what makes two answers the same: a program that cannot tell fails in the same way."""
    return answer.state, answer.seen if answer.state is Presence.CANNOT_TELL else ""


def find_turn(line: Sequence[Revision], ask: Ask, say: Callable[[str], None]) -> ReportSearch:
    """Bisect a line of revisions, oldest first. Raises UsageError if both ends say the same."""
    revisions = {revision.name: revision for revision in line}
    report = ReportSearch(list(revisions))

    def inspect(name: str) -> None:
        try:
            report.answers[name] = ask(revisions[name])
        except InstallFailure as failure:
            report.answers[name] = ProbeAnswer(Presence.CANNOT_TELL, f"not built: {failure.message}")
        say(f"{name}: {report.answers[name].state.value}")

    inspect(report.line[0])
    inspect(report.line[-1])
    first, last = (report.answers[report.line[end]] for end in (0, -1))
    if last.state is Presence.CANNOT_TELL:
        raise UsageError(f"the program has no answer at --bad: {last.seen}", hint="name a --bad that fits")
    if first.state is last.state:
        raise UsageError(
            f"both ends have the same answer: {last.state.value}: {last.seen}",
            hint=advice_before(report.line[0], "name an earlier --good or a later --bad"),
        )
    while name := report.search.next:
        inspect(name)
    return dataclasses.replace(
        report, answers={name: report.answers[name] for name in report.line if name in report.answers}
    )


def whole_commits(script: str, cache: Path, say: Callable[[str], None]) -> Ask:
    """Return how to run a program with commits that are built from source, each in an environment of its own."""
    return lambda revision: reproduce(script, environment(revision, cache, say))


def grafted_commits(script: str, python: Path, paths: Sequence[str]) -> Ask:
    """Return how to run a program with an installed TVM in which some Python files are those of a commit.

    Args:
        script: The program.
        python: Interpreter with the TVM that all else is taken from.
        paths: Files and folders of TVM's repository, below `python/`.
    """
    for path in paths:
        if not _is_grafted(path):
            raise UsageError(f"{path} is not a Python file of TVM", hint=f"name paths below {PACKAGE}")

    def ask(revision: Revision) -> ProbeAnswer:
        with _graft(revision, python, paths) as folder:
            return reproduce(script, python, package=folder)

    return ask


def _is_grafted(path: str) -> bool:
    """Return whether a path leads to where a graft may replace and remove files: into the copy, and not out of it."""
    names = path.removeprefix(PACKAGE).rstrip("/").split("/")
    shared = names[0] == "tvm" and len(names) > 1 and names[1] in _SHARED
    return path.startswith(PACKAGE) and not {"", ".", ".."} & {*names} and not shared


@contextmanager
def _graft(revision: Revision, python: Path, paths: Sequence[str]) -> Iterator[Path]:
    """Yield a folder with a copy of the installed package in which these paths are the commit's."""
    installed = Path(call([str(python), "-I", "-c", _PACKAGE_PATH], python.parent, 60.0).stdout.strip())
    repo, commit = revision.source.repo, revision.commit
    with scratch_folder() as scratch:
        package = scratch / "package" / "tvm"
        shutil.copytree(installed, package, ignore=lambda at, _: _SHARED if Path(at) == installed else ("__pycache__",))
        for name in _SHARED:
            if (installed / name).exists():
                (package / name).symlink_to(installed / name)
        there = [path for path in paths if git(repo, "ls-tree", "--name-only", commit, "--", path).strip()]
        for path in {*paths} - {*there}:
            _remove(package.parent / path.removeprefix(PACKAGE))
        if there:
            archive = scratch / "files.tar"
            git(repo, "archive", f"--output={archive}", commit, "--", *there)
            with tarfile.open(archive) as files:
                # Python before 3.11.4 has no filters. Without links nothing can lead out of the folder.
                if other := next((member.name for member in files if not (member.isreg() or member.isdir())), ""):
                    raise InstallFailure(f"{other} is no file")
                files.extraction_filter = getattr(tarfile, "data_filter", None)
                files.extractall(scratch)
            shutil.copytree(scratch / PACKAGE, package.parent, dirs_exist_ok=True)
        yield package.parent


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
