"""The comments of a pull request, by GitHub's REST interface. A job's environment says which one, and with what token.

Source: docs.github.com, REST API, "Issue comments"; GitHub Actions, "Default environment variables".
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from device_runner.failures import RigFailure
from device_runner.foreign_json import read_json
from harness.base.failures import UsageError, reason_alone

TIMEOUT_S = 30.0
LARGEST_ANSWER_BYTES = 16 << 20
LARGEST_EVENT_BYTES = 16 << 20
COMMENTS_OF_A_PAGE, MOST_PAGES = 100, 50
LONGEST_BODY = 60_000
"""Characters; GitHub takes 65,536."""
REFUSED = (401, 403, 404)
"""What GitHub answers to a token that may not write: those of forks and of jobs without the permission."""
CUT = "\n\n... cut here: the summary of the job has the whole."


class Forbidden(Exception):
    """The token may not do this."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: urllib would send the token along, to whatever host is named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Refuse."""


@dataclass(frozen=True)
class PullRequest:
    """One pull request, and the token to write to it."""

    api: str
    """Address of the REST interface, without a slash at its end."""
    repository: str
    """OWNER/NAME."""
    number: int
    token: str = field(repr=False)

    @classmethod
    def of_job(cls, environment: Mapping[str, str]) -> PullRequest | str:
        """Return the pull request of a job, or why there is none to write to.

        Raises UsageError for an environment that GitHub Actions would not set.
        """
        if not (event := environment.get("GITHUB_EVENT_PATH", "")):
            return "GITHUB_EVENT_PATH is not set; a job of GitHub Actions has it"
        if (number := _number(Path(event))) is None:
            return "the job's event is not a pull request"
        if not (token := environment.get("GITHUB_TOKEN", "")):
            return "there is no GITHUB_TOKEN, as in a pull request from a fork"
        api = environment.get("GITHUB_API_URL", "https://api.github.com")
        repository = environment.get("GITHUB_REPOSITORY", "")
        if not re.fullmatch(r"[\w-]+/(?!\.{1,2}$)[\w.-]+", repository):
            raise UsageError(f"GITHUB_REPOSITORY is {repository!r}", hint="GitHub Actions sets it: OWNER/NAME")
        address = urlsplit(api)
        if address.scheme != "https" and (address.scheme, address.hostname) != ("http", "127.0.0.1"):
            raise UsageError(f"GITHUB_API_URL is {api!r}: a token is sent by https alone", hint="correct the address")
        return cls(api.rstrip("/"), repository, number, token)

    def put_comment(self, name: str, text: str, author: str) -> str:
        """Write the comment of this name, or replace its text; return its address.

        A comment of another author is never touched, whatever it begins with.

        Raises:
            Forbidden: The token may not write.
            RigFailure: GitHub does not answer, or not as its documentation says.
        """
        body = body_of(name, text)
        if (there := self._find(marker(name), author)) is None:
            comment = self._ask("POST", f"issues/{self.number}/comments", {"body": body})
        else:
            comment = self._ask("PATCH", f"issues/comments/{there}", {"body": body})
        return str(comment.get("html_url", "")) if isinstance(comment, dict) else ""

    def _find(self, mark: str, author: str) -> int | None:
        """Return the id of the comment that begins with a marker; None without one."""
        for page in range(1, MOST_PAGES + 1):
            query = f"issues/{self.number}/comments?per_page={COMMENTS_OF_A_PAGE}&page={page}"
            comments = self._ask("GET", query)
            if not isinstance(comments, list):
                raise RigFailure("GitHub's list of comments is no list", hint="run the job again")
            for comment in comments:
                if str(comment.get("body", "")).startswith(mark) and comment["user"]["login"] == author:
                    return int(comment["id"])
            if len(comments) < COMMENTS_OF_A_PAGE:
                break
        return None

    def _ask(self, method: str, path: str, fields: Mapping[str, str] | None = None) -> Any:
        url = f"{self.api}/repos/{self.repository}/{path}"
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "User-Agent": "adreno-bench",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        data = json.dumps(fields).encode() if fields else None
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as answer:
                text = answer.read(LARGEST_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            if error.code in REFUSED:
                raise Forbidden(f"GitHub refuses to {method} {path.partition('?')[0]}: {error.code}") from None
            raise RigFailure(f"GitHub answers {error.code} to {method} {path}", hint="run the job again") from None
        except (OSError, http.client.HTTPException) as error:
            raise RigFailure(f"GitHub does not answer: {error}", hint="run the job again") from None
        try:
            return read_json(text)
        except ValueError as error:
            raise RigFailure(f"GitHub's answer cannot be read: {error}", hint="run the job again") from None


def marker(name: str) -> str:
    """Return what the comment of a name begins with, which GitHub does not show. Raises UsageError for a bad name."""
    if not re.fullmatch(r"[\w.-]{1,80}", name):
        raise UsageError(f"{name!r} is not a name of a comment", hint="letters, digits, dots and dashes")
    return f"<!-- adreno-bench: {name} -->"


def body_of(name: str, text: str) -> str:
    """Return the comment: behind the marker, calling nobody by name, and no longer than GitHub takes."""
    quiet = text.replace("@", "@\N{ZERO WIDTH SPACE}")
    if len(quiet) > LONGEST_BODY:
        quiet = quiet[: quiet.rfind("\n", 0, LONGEST_BODY)] + CUT
    return f"{marker(name)}\n{quiet}"


def _number(event: Path) -> int | None:
    """Return the number of the pull request that an event is about; None for another event."""
    try:
        if event.stat().st_size > LARGEST_EVENT_BYTES:
            raise ValueError("too large")
        fields = read_json(event.read_bytes())
        about = fields.get("pull_request") or {}
        return int(about["number"]) if "number" in about else None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH names {event}, which cannot be read: {reason_alone(error)}") from None
