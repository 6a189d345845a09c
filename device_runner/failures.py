"""What can go wrong, and whose it is.

Every failure that a person may meet is a `Failure`: one line that says what happened, a hint that says what to do
next, and the evidence for an engineer (the tail of a log). The branch it hangs on says who owns it: the path under
test (`PathFailure`), the device (`DeviceFailure`) or the rig (`RigFailure`). `outcome` is the word that stands in the
record; docs/reference/glossary.md explains each.
"""

from __future__ import annotations

from typing import Any, ClassVar

EVIDENCE_LIMIT_BYTES = 8_192


class Failure(Exception):
    """Something went wrong: `message` for a person, `hint` for the next step, `evidence` for an engineer."""

    outcome: ClassVar[str] = "infra-error"

    def __init__(self, message: str, *, hint: str = "", evidence: str = "") -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.hint = hint
        self.evidence = evidence[-EVIDENCE_LIMIT_BYTES:]

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs to carry it to another process of ours, whatever arguments its class takes."""
        return _revived, (type(self), self.__dict__)


def _revived(kind: type[Failure], fields: dict[str, Any]) -> Failure:
    failure = kind.__new__(kind, fields["message"])
    failure.__dict__.update(fields)
    return failure


class PathFailure(Failure):
    """The path under test misbehaved on the device."""

    outcome = "runtime-error"
    gpu_resets = 0
    """How often the GPU was reset meanwhile, by the program or by something else."""


class KernelBuildFailure(PathFailure):
    """The device's OpenCL compiler refused a kernel; the build log is the evidence."""

    outcome = "kernel-build-error"


class ProgramFailure(PathFailure):
    """The program raised an error while it was loaded or run."""


class DeviceCrash(PathFailure):
    """The process that ran the program died."""

    outcome = "device-crash"


class Hang(PathFailure):
    """The program did not end within its deadline, on a device that still answers."""

    outcome = "hang"


class Unsupported(PathFailure):
    """This device cannot run this case: an extension or a number format is missing."""

    outcome = "unsupported"


class DeviceFailure(Failure):
    """The device is at fault, not the program."""

    outcome = "device-lost"


class DeviceLost(DeviceFailure):
    """The device went away or stopped answering."""


class DeviceFull(DeviceFailure):
    """The device has no space left, or its storage is read-only."""

    outcome = "infra-error"


class FlatBattery(DeviceFailure):
    """The device's battery is too low to measure by."""

    outcome = "throttled"


class DeviceBusy(DeviceFailure):
    """Somebody else holds the device."""

    outcome = "infra-error"


class RigFailure(Failure):
    """The rig (host, adb, drivers, compilers) is at fault, not the code under test."""

    outcome = "infra-error"


class LinkFailure(RigFailure):
    """The way to the device broke: the adb server, the relay, or an RPC server in which no program had run."""


class NotRunAgain(RigFailure):
    """The session ended before the program ran another time."""


class DiskFull(RigFailure):
    """A disk of this host has no space left (`device_runner.disk`)."""


class SetupMissing(RigFailure):
    """Something that the rig needs is not installed; the hint is the command that installs it."""
