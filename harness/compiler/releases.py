"""Which releases of apache-tvm and apache-tvm-ffi work together.

TVM's metadata only bounds tvm-ffi from below, so `pip install apache-tvm` alone gives a pair that cannot be imported or
that crashes while it compiles. Found by trying each pair (docs/quirks.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from device_runner.failures import SetupMissing

WORKING_PAIRS = {
    "0.25.0.post1": ("0.1.12",),
    "0.26.0": ("0.1.14.post1", "0.1.13.post3"),
    "0.27.0.post1": ("0.1.14.post1", "0.1.14.post0"),
}
"""By release of apache-tvm; the first tvm-ffi is the one to install."""


def require_working_pair(installed: Mapping[str, str]) -> None:
    """Raise SetupMissing for releases `tvm` and `ffi` that are known not to work together. An untried TVM passes."""
    tvm, ffi = installed["tvm"], installed["ffi"]
    good = WORKING_PAIRS.get(tvm)
    if good and ffi not in good:
        raise SetupMissing(
            f"apache-tvm {tvm} does not work with apache-tvm-ffi {ffi}",
            hint=f"pip install apache-tvm-ffi=={good[0]}",
        )
