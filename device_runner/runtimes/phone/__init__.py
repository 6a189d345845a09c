"""TVM's runtime for real phones and boards: checked, kept on this host, brought to the device.

TVM's wheels hold no runtime for Android, so a person builds one (docs/tutorial/first-phone.md) and gives the folder to
`adreno-bench runtime add`. It is checked here, without a phone, because what a phone says about a wrong library is
`tvm_rpc` ending at once. It is kept under the hash of its content, and pushed when a device of its ABI is opened. One
for this host's own processor is what the virtual phone runs in place of our stand-ins.
"""

from device_runner.runtimes.phone.check import RuntimeFolder, RuntimeRefused, examine
from device_runner.runtimes.phone.install import install, started_in
from device_runner.runtimes.phone.store import PhoneRuntime, RuntimeStore

__all__ = ["RuntimeFolder", "PhoneRuntime", "RuntimeRefused", "RuntimeStore", "examine", "install", "started_in"]
