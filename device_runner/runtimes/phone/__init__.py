"""TVM's runtime for real phones and boards: kept on this host, brought to the device.

TVM's wheels hold no runtime for Android, so a person builds one (docs/tutorial/first-phone.md) and gives the folder to
`adreno-bench runtime add`, which checks it. It is kept under the hash of its content, and pushed when a device of its
ABI is opened. One for this host's own processor is what the virtual phone runs in place of our stand-ins.
"""

from device_runner.runtimes.phone.install import install, started_in
from device_runner.runtimes.phone.store import PhoneRuntime, RuntimeFolder, RuntimeStore

__all__ = ["RuntimeFolder", "PhoneRuntime", "RuntimeStore", "install", "started_in"]
