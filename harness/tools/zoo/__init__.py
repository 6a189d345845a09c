"""The zoo: networks that a suite may name, built here layer by layer, and a trained one."""

from harness.base.tool import Tool

TOOL = Tool("zoo", models="harness.tools.zoo.models:ZOO")
