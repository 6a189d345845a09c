"""The probe: a small TVM module of ours that tells what TVM's runtimes do not tell of a device's OpenCL.

It is C against tvm-ffi's C interface alone, so one source serves this host, phones and boards, whichever OpenCL runtime
TVM has there. It is pushed and loaded like any artifact, and registers nothing.
"""

from device_runner.runtimes.probe.answers import (
    Answer,
    BadAnswer,
    OpenCLDevice,
    answer_of,
    batches_of,
    launches_of,
    peaks_of,
    plain,
)
from device_runner.runtimes.probe.library import ENDING, Probe, library

__all__ = [
    "ENDING",
    "Answer",
    "BadAnswer",
    "OpenCLDevice",
    "Probe",
    "answer_of",
    "batches_of",
    "launches_of",
    "library",
    "peaks_of",
    "plain",
]
