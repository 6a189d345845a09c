"""A device's identity as an asv machine, so that a new driver starts a new series and is never a regression."""

from __future__ import annotations

from device_runner.device import Identity
from harness.failures import UsageError


def machine_of(identity: Identity) -> dict[str, str]:
    """What asv keeps of a machine. Its own fields come first, then ours, which it publishes just the same."""
    return {
        "machine": identity.key,
        "os": identity.rom,
        "arch": identity.abi,
        "cpu": identity.soc,
        "num_cpu": "",
        "ram": "",
        "gpu": identity.gpu,
        "driver": identity.driver,
        "clml": identity.clml,
        "emulated": ", ".join(identity.emulated),
    }


def register(identity: Identity) -> str:
    """Write the machine into asv's file of the user and return its name. Raises UsageError if that file is not asv's.

    An entry of this name that was written by hand is replaced: the device knows better.
    """
    from asv.machine import MachineCollection
    from asv.util import UserError

    machine = machine_of(identity)
    try:
        MachineCollection.save(machine["machine"], machine)
    except (UserError, TypeError, AttributeError) as error:
        file = MachineCollection.get_machine_file_path()
        raise UsageError(f"{file} is not asv's: {error}", hint="mend it or move it away") from error
    return machine["machine"]
