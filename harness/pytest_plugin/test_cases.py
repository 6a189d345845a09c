"""The correctness tests themselves. A repository of its own may have such a file too: docs/how-to/gate.md."""

from __future__ import annotations

import pytest

# Building happens before the first test, within the suite's own limits; so does everything else.
pytestmark = pytest.mark.timeout(0)


def test_right(adreno_complaint: str) -> None:
    """Test that the path's answer is the oracle's."""
    if adreno_complaint:
        pytest.fail(adreno_complaint, pytrace=False)
