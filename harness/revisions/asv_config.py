"""asv's configuration, as asv itself reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from device_runner.failures import SetupMissing
from harness.failures import UsageError


def configuration(config: Path) -> Any:
    """What asv reads of its configuration. Raises SetupMissing without asv, UsageError for a file that is not one."""
    try:
        from asv.config import Config
        from asv.util import UserError
    except ImportError:
        raise SetupMissing("asv is not installed", hint="pip install 'adreno-bench[history]'") from None
    try:
        return Config.load(str(config))
    except (UserError, OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{config} cannot be used: {error}", hint="pass --config FILE") from error
