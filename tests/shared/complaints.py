"""The line with which a command refuses, run in this process."""

from typer.testing import CliRunner

from device_runner.failures import Failure
from harness.cli import app


def complaint(*words: str) -> str:
    """Run a command that has to fail; its one line."""
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, Failure), done.exception or done.output
    return str(done.exception)
