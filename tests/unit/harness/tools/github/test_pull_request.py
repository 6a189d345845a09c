"""The comment of a pull request: opened once, edited in place, and never needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from complaints import complaint
from github_stand_in import GitHub, github
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.tools.github.pull_request import CUT, LONGEST_BODY, body_of

MARK = "<!-- adreno-bench: report -->"
COMMENTS = "/repos/some/repo/issues/7/comments"
FIRST_PAGE = ("GET", f"{COMMENTS}?per_page=100&page=1")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """GitHub, and the environment of a job on a pull request."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"action": "synchronize", "pull_request": {"number": 7}}))
    with github() as there:
        job = {
            "GITHUB_TOKEN": "secret-token",
            "GITHUB_API_URL": there.url,
            "GITHUB_REPOSITORY": "some/repo",
            "GITHUB_EVENT_PATH": str(event),
        }
        for name, value in job.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "report.md").write_text("**1 wrong** in 2 cases\n")
        monkeypatch.chdir(tmp_path)
        yield there


def comment(*words: str) -> Result:
    return CliRunner().invoke(app, ["github", "comment", "report.md", *words], catch_exceptions=False)


def test_the_first_run_opens_the_comment(there: GitHub) -> None:
    there.add("I like it", "somebody")
    done = comment()
    assert (done.exit_code, done.stdout) == (0, "the comment is https://example/1001\n")
    assert there.requests == [FIRST_PAGE, ("POST", COMMENTS)]
    assert [one["body"] for one in there.comments] == ["I like it", f"{MARK}\n**1 wrong** in 2 cases\n"]
    assert {headers["Authorization"] for headers in there.headers} == {"Bearer secret-token"}
    assert "secret-token" not in done.output


def test_every_later_run_edits_it_in_place(there: GitHub) -> None:
    comment()
    Path("report.md").write_text("**Nothing became worse** in 2 cases\n")
    assert comment().stdout == "the comment is https://example/1000\n"
    assert there.requests[2:] == [FIRST_PAGE, ("PATCH", "/repos/some/repo/issues/comments/1000")]
    assert [one["body"] for one in there.comments] == [f"{MARK}\n**Nothing became worse** in 2 cases\n"]


def test_it_is_found_behind_a_hundred_others(there: GitHub) -> None:
    for number in range(150):
        there.add(f"{number}", "somebody")
    ours = there.add(f"{MARK}\nold")
    comment()
    assert there.requests[1:] == [
        ("GET", f"{COMMENTS}?per_page=100&page=2"),
        ("PATCH", f"/repos/some/repo/issues/comments/{ours['id']}"),
    ]


def test_each_name_has_a_comment_of_its_own(there: GitHub) -> None:
    comment("--name", "arm64")
    comment("--name", "x86-64")
    comment("--name", "arm64")
    assert [one["body"].splitlines()[0] for one in there.comments] == [
        "<!-- adreno-bench: arm64 -->",
        "<!-- adreno-bench: x86-64 -->",
    ]


def test_a_comment_of_somebody_else_with_our_marker_is_not_touched(there: GitHub) -> None:
    theirs = there.add(f"{MARK}\nmine", "somebody")
    comment()
    assert theirs["body"] == f"{MARK}\nmine"
    assert len(there.comments) == 2


def test_a_fork_without_a_token_asks_nothing(there: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "")
    done = comment()
    assert (done.exit_code, done.stdout, there.requests) == (0, "", [])
    assert "no comment: there is no GITHUB_TOKEN, as in a pull request from a fork" in done.stderr


def test_a_fork_whose_token_may_only_read_is_no_failure(there: GitHub) -> None:
    there.writes = False
    done = comment()
    assert done.exit_code == 0
    assert there.requests == [FIRST_PAGE, ("POST", COMMENTS)]
    assert "GitHub refuses to POST issues/7/comments: 403" in done.stderr
    assert "secret-token" not in done.output


def test_a_push_has_no_comment(there: GitHub) -> None:
    Path("event.json").write_text('{"ref": "refs/heads/main"}')
    assert "no comment: the job's event is not a pull request" in comment().stderr
    assert there.requests == []


def test_outside_of_github_nothing_is_written(there: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    done = comment()
    assert "no comment: GITHUB_EVENT_PATH is not set; a job of GitHub Actions has it" in done.stderr
    assert (done.exit_code, there.requests) == (0, [])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((500, b"{}"), "GitHub answers 500 to GET"),
        ((302, b""), "GitHub answers 302 to GET"),
        ((200, b"<html>"), "GitHub's answer cannot be read"),
        ((200, b'{"message": "?"}'), "GitHub's list of comments is no list"),
    ],
)
def test_what_github_does_wrong_is_one_line(there: GitHub, answer: tuple[int, bytes], says: str) -> None:
    there.answer = answer
    assert says in complaint("github", "comment", "report.md")
    assert len(there.requests) == 1, "a redirect would take the token along"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("GITHUB_API_URL", "http://example.com", "a token is sent by https alone"),
        ("GITHUB_REPOSITORY", "../..", "GITHUB_REPOSITORY is"),
        ("GITHUB_REPOSITORY", "a/b/c", "GITHUB_REPOSITORY is"),
        ("GITHUB_EVENT_PATH", "gone.json", "gone.json, which cannot be read"),
    ],
)
def test_an_environment_of_no_job_is_refused(
    there: GitHub, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    assert says in complaint("github", "comment", "report.md")
    assert there.requests == []


def test_a_long_report_is_cut_at_a_line_and_nobody_is_called() -> None:
    body = body_of("report", "kernel @someone failed\n" * 10_000)
    assert len(body) < LONGEST_BODY + 200
    assert body.endswith(f"failed{CUT}")
    assert "@someone" not in body
