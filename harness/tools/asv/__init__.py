"""asv's own commands: what our plugin adds to them, so that a plain `asv run` or `asv show` works as `history` does."""

from harness.base.tool import Tool

TOOL = Tool("asv", asv_plugin="harness.tools.asv.plugin")
