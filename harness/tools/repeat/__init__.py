"""`run --repeat`: more inferences of a case, each on inputs of its own."""

from harness.base.tool import Tool

TOOL = Tool("repeat", probes=("harness.tools.repeat.probe:make_probe",))
