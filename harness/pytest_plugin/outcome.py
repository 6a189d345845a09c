"""What a run of correctness tests as a whole tells the shell."""

from __future__ import annotations

import pytest


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run in which every case was skipped has judged nothing, and that is not good."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and exitstatus == pytest.ExitCode.OK and not reporter.stats.get("passed"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
