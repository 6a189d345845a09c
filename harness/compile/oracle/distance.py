"""The two sizes of an array that an error is measured in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def peak_and_rms(numbers: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the largest magnitude and the root mean square, which squares of large and small numbers must not spoil.

    Both are 0 of no numbers, and both are NaN or infinite if a number is.
    """
    import numpy as np

    peak = float(np.abs(numbers).max(initial=0.0))
    if peak == 0.0 or not np.isfinite(peak):
        return peak, peak
    return peak, peak * float(np.sqrt(np.mean(np.square(numbers / peak))))
