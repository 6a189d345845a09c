"""moto's S3 server on 127.0.0.1, as a process, with the faults of a bucket: 503 and slowness.

Run as `python s3_server.py FOLDER`; it prints its port. `FOLDER/fail` holds how many requests are still to be answered
with 503, `FOLDER/slow` how many seconds each takes. While `FOLDER/sealed` exists, nothing can be written.
`FOLDER/requests` gets a line for each.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BUCKET = "bench"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass(frozen=True)
class Bucket:
    """A bucket of a server that runs."""

    url: str
    faults: Path
    environment: dict[str, str]
    """What makes s3fs, in any process, find the server."""

    def files(self) -> Any:
        """The bucket as fsspec sees it, without what a client remembers."""
        import fsspec

        files = fsspec.filesystem("s3", use_listings_cache=False)
        files.invalidate_cache()
        return files

    def objects(self) -> list[str]:
        """Names of all objects."""
        return sorted(name.partition("/")[2] for name in self.files().find(BUCKET))


@contextmanager
def bucket(folder: Path) -> Iterator[Bucket]:
    """Start a server with an empty bucket. Skips the test where moto or s3fs is not installed."""
    for package in ("moto", "s3fs", "flask_cors"):
        pytest.importorskip(package, reason="`make scale` installs it")
    folder.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout
            found = {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(server.stdout.readline())}"}
            with pytest.MonkeyPatch.context() as patch:
                for name, value in found.items():
                    patch.setenv(name, value)
                made = Bucket(f"s3://{BUCKET}/prefix", folder, found)
                _forget_clients()
                made.files().mkdir(BUCKET)
                yield made
        finally:
            server.kill()
            _forget_clients()


def _forget_clients() -> None:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def main(folder: Path) -> None:
    """Serve until killed."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    served, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def fails() -> bool:
        with lock:
            left = int(file.read_text()) if (file := folder / "fail").exists() else 0
            if left:
                file.write_text(str(left - 1))
            return left > 0

    def application(environ: Any, start_response: Any) -> Any:
        with lock, (folder / "requests").open("a") as log:
            log.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}\n")
        if (slow := folder / "slow").exists():
            time.sleep(float(slow.read_text()))
        if fails():
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"]
        if environ["REQUEST_METHOD"] == "PUT" and (folder / "sealed").exists():
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        return served(environ, start_response)

    server = make_server("127.0.0.1", 0, application, threaded=True)
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    os.environ.pop("AWS_ENDPOINT_URL", None)
    main(Path(sys.argv[1]))
