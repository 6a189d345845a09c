"""The help of options that both the command line and the pytest plugin have."""

from __future__ import annotations

SUITE = "The suite file."
CASE = "Only cases whose id matches, e.g. 'resnet18-*' or '*-clml-*-tuned'. Repeatable."
DEVICE = "virtual, local, the adb serial of a phone (see `adreno-bench devices`), or labels."
AS_SHIPPED = "Work around only those upstream defects without which nothing compiles."
WITH_QUIRK = "With --as-shipped: work around this defect anyway. Repeatable."
BASELINES = "Folder of baselines."
SCHEDULES = "File of tuned schedules: cases on opencl and texture are run with them, too."
