"""What chooses the next schedule of a task; light, as the command line shows the names."""

from __future__ import annotations

from enum import Enum
from importlib.util import find_spec

from device_runner.failures import SetupMissing


class CostModel(str, Enum):
    """What chooses candidates."""

    RANDOM = "random"
    XGB = "xgb"

    def require(self) -> None:
        """Raise SetupMissing if what it needs is not installed."""
        if self is CostModel.XGB and not find_spec("xgboost"):
            raise SetupMissing("--cost-model xgb needs xgboost", hint="pip install 'adreno-bench[xgb]'")
