"""The releases of apache-tvm that this harness knows, each with the releases of apache-tvm-ffi that it works with.

TVM's metadata only bounds tvm-ffi from below, so `pip install apache-tvm` alone gives a pair that cannot be imported or
that crashes while it compiles. Found by trying each pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from device_runner.failures import SetupMissing


@dataclass(frozen=True)
class Release:
    """One release of apache-tvm."""

    tvm: str
    ffi: tuple[str, ...]
    """Releases of apache-tvm-ffi that work with it; the first is the one to install."""
    released_at: str
    """When PyPI received its wheel for Linux on x86-64 (`upload_time_iso_8601` of its JSON API)."""

    @property
    def pins(self) -> list[str]:
        """The packages that work together, as pip takes them."""
        return [f"apache-tvm=={self.tvm}", f"apache-tvm-ffi=={self.ffi[0]}"]


_TABLE = (
    Release("0.25.0.post1", ("0.1.12",), "2026-06-24T23:33:23+00:00"),
    Release("0.26.0", ("0.1.14.post1", "0.1.13.post3"), "2026-08-11T02:34:21+00:00"),
    Release("0.27.0.post1", ("0.1.14.post1", "0.1.14.post0"), "2026-09-29T21:06:25+00:00"),
)
RELEASES: Mapping[str, Release] = MappingProxyType({release.tvm: release for release in _TABLE})
"""By release of apache-tvm, the oldest first."""


def require_working_pair(installed: Mapping[str, str]) -> None:
    """Raise SetupMissing for releases `tvm` and `ffi` known not to work together. An untried TVM passes."""
    tvm, ffi = installed["tvm"], installed["ffi"]
    release = RELEASES.get(tvm)
    if release and ffi.partition("+")[0] not in release.ffi:
        raise SetupMissing(
            f"apache-tvm {tvm} does not work with apache-tvm-ffi {ffi}",
            hint=f"pip install apache-tvm-ffi=={release.ffi[0]}",
        )
