"""The help of options that both the command line and the pytest plugin have."""

from __future__ import annotations

SUITE = "Suite file."
CASE = "Only cases whose id matches, for example 'resnet18-*' or '*-clml-*-tuned'. Repeatable."
PATH = "Path to use instead of those of the suite: opencl, texture or clml. Repeatable."
PRECISION = "Precision to use instead of those of the suite: float32, float16 or float16_acc32. Repeatable."
TUNING = "Tuning to use instead of those of the suite: untuned or tuned. Repeatable."
DEVICE = "Device: virtual, local, an adb serial (see `adreno-bench devices`), or labels."
AS_SHIPPED = "Work around only the essential defects of TVM, without which nothing compiles."
WITH_QUIRK = "With --as-shipped: also work around this defect. Repeatable."
BASELINES = "Folder of baselines."
SCHEDULES = "File of tuned schedules. Cases on opencl and texture also run with them."
