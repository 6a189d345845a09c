"""Folders that fsspec reaches by a URL, such as those of a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from device_runner.failures import SetupMissing
from harness.base.failures import UsageError

DEADLINE_S = 300.0
"""Longest transfer of one file, with the repeats of the client."""


class BadObject(Exception):
    """An object is not what it should be."""


class RemoteFolder:
    """A folder at a URL, behind the methods of fsspec. Any thread may use it."""

    def __init__(self, url: str) -> None:
        """Open a URL without asking it anything.

        Raises UsageError for one that fsspec does not know, SetupMissing without the package for it.
        """
        self.url = url
        try:
            import fsspec

            local = {"auto_mkdir": True} if url.startswith("file:") else {}
            self._files, self._root = fsspec.url_to_fs(url, use_listings_cache=False, **local)
        except ImportError as error:
            hint = "`pip install 'adreno-bench[store]'`"
            raise SetupMissing(f"{url} needs a package: {error}", hint=hint) from None
        except ValueError as error:
            hint = "use a URL such as s3://BUCKET/NAME"
            raise UsageError(f"{url} cannot be opened: {error}", hint=hint) from None

    def at(self, name: str) -> str:
        """Return the whole name of a file in the folder; of the folder itself if the name is empty."""
        return f"{self._root}/{name}" if name else self._root

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of fsspec's file system. Raises what that raises."""
        if self._files.async_impl:
            options["timeout"] = DEADLINE_S
        return getattr(self._files, method)(*arguments, **options)

    def copy(self, name: str, file: Path, most_bytes: int) -> None:
        """Read an object, by its whole name, into a file.

        Raises BadObject as soon as it has more bytes, and what fsspec raises.
        """
        from fsspec.callbacks import Callback

        def limit(_: int | None, read: int, **_more: object) -> None:
            if read > most_bytes:
                raise BadObject(f"it has more than {most_bytes} bytes")

        self.call("get_file", name, str(file), callback=Callback(hooks={"limit": limit}))
        limit(None, file.stat().st_size)  # not every file system calls back


def reason_of(error: Exception) -> str:
    """Return a line for a person; many of these errors are empty, or of several lines."""
    return " ".join(str(error).split())[:300] or type(error).__name__
