"""A stand-in of GitHub's REST interface on 127.0.0.1: the comments of issues, and a record of every request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"


@dataclass
class GitHub:
    """What the stand-in has, and was asked."""

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    """As GitHub has them: `id`, `body`, `user`."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path with its query, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    writes: bool = True
    """Whether the token may write: that of a fork may not."""
    answer: tuple[int, bytes] | None = None
    """Answer to everything, in place of the right one."""

    def add(self, body: str, author: str = BOT) -> dict[str, Any]:
        """Add a comment."""
        number = 1000 + len(self.comments)
        made = {"id": number, "body": body, "user": {"login": author}, "html_url": f"https://example/{number}"}
        self.comments.append(made)
        return made

    def reply(self, method: str, path: str, fields: Any) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        if self.answer:
            return self.answer
        if method != "GET" and not self.writes:
            return 403, b'{"message": "Resource not accessible by integration"}'
        address = urlsplit(path)
        if method == "GET" and address.path == "/repos/some/repo/issues/7/comments":
            asked = parse_qs(address.query)
            size, page = int(asked["per_page"][0]), int(asked["page"][0])
            return 200, json.dumps(self.comments[size * (page - 1) : size * page]).encode()
        if method == "POST" and address.path == "/repos/some/repo/issues/7/comments":
            return 201, json.dumps(self.add(fields["body"])).encode()
        number = address.path.removeprefix("/repos/some/repo/issues/comments/")
        for comment in self.comments:
            if method == "PATCH" and number == str(comment["id"]):
                comment["body"] = fields["body"]
                return 200, json.dumps(comment).encode()
        return 404, b'{"message": "Not Found"}'


@contextmanager
def github() -> Iterator[GitHub]:
    """Yield a stand-in that answers until the context ends."""
    there = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            fields = json.loads(self.rfile.read(length)) if length else None
            there.requests.append((self.command, self.path))
            there.headers.append(dict(self.headers))
            status, body = there.reply(self.command, self.path, fields)
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", there.url + "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = _answer

        def log_message(self, *_: Any) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
