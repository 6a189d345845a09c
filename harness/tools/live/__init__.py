"""A run on the terminal: the matrix of models and paths, filled cell by cell."""

from harness.base.tool import Tool

TOOL = Tool("live", live_screen="harness.tools.live.matrix_screen:MatrixScreen")
