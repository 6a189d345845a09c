"""Every path answers right on the device: `pytest tests/gates --device D --suite adreno-bench.toml`."""

import pytest

from harness.pytest_plugin.test_cases import test_right

__all__ = ["test_right"]

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.timeout(0), pytest.mark.usefixtures("warm_driver")]
