"""Two models, or two sets of options, measured in turns on one device."""

from harness.base.tool import Tool

TOOL = Tool("ab", side_by_side="harness.tools.ab.side_by_side:measure_side_by_side")
