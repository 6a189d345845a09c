"""What can go wrong between a kernel's source and its machine code."""

from __future__ import annotations

from device_runner.failures import KernelBuildFailure, RigFailure, SetupMissing


class NoToolchain(SetupMissing):
    """The open compiler is not there, or cannot be had or run here."""


class UnknownOutput(RigFailure):
    """The compiler printed something that is not known here, so that no number of it can be believed."""


class KernelRefused(KernelBuildFailure):
    """The open compiler refused a kernel."""


class KernelCrash(KernelBuildFailure):
    """The open compiler died of a kernel."""

    outcome = "compiler-crash"


class KernelHang(KernelBuildFailure):
    """The open compiler did not come to an end with a kernel."""

    outcome = "compile-timeout"
