"""An arm64 Linux under qemu, for the virtual phone: Debian's userland, PoCL, TVM's AArch64 wheels, our OpenCL runtime.

Nothing of it is installed: packages are unpacked into a folder. The RPC server is one program of that folder, started
under `qemu-aarch64-static`; PoCL starts a linker for each kernel, which the kernel of this machine takes from this
machine, and a mount namespace puts the cross linker in its place. Bundles are run with the folder as their root, by a
kernel that starts programs for arm64 under qemu by itself (binfmt_misc, in a namespace of its own), so all of them are.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from device_runner.runtimes.opencl import OPENCL
from device_runner.runtimes.recipe import CppToolchain
from device_runner.stand_ins.virtual import userland

DEBIAN, PYTHON = "bookworm", "3.11"
PACKAGES = (
    "python3",
    "coreutils",
    "dash",
    "sed",
    "mksh",
    "toybox",
    "pocl-opencl-icd",
    "ocl-icd-libopencl1",
    "libstdc++6",
)
TOOLS = {
    "qemu-aarch64-static": "qemu-user-static",
    "mmdebstrap": "mmdebstrap",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "bwrap": "bubblewrap",
    "mksh": "mksh",
    "toybox": "toybox",
}
WHEELS = ("apache-tvm", "apache-tvm-ffi", "typing_extensions", "numpy")
GCC = Path("/usr/lib/gcc-cross/aarch64-linux-gnu")
SERVER = "import sys; from device_runner.stand_ins.tvm_rpc.server import main; sys.exit(main())"
STARTED_BY_THE_KERNEL = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
"""There if programs for arm64 simply run here; Ubuntu's qemu-user-static sees to that."""
REGISTER = r"""
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":qemu-aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >/proc/sys/fs/binfmt_misc/register
exec "$@"
"""
"""Linux 6.7 and later have a binfmt_misc for each user namespace."""
ANDROID_NAMES = {
    "libc.so.6": "libc.so",
    "libm.so.6": "libm.so",
    "libdl.so.2": "libdl.so",
    "libpthread.so.0": "libdl.so",
    "ld-linux-aarch64.so.1": "libdl.so",
    "libstdc++.so.6": "libstdc++.so",
    "libgcc_s.so.1": "libstdc++.so",
    "libOpenCL.so.1": "libOpenCL.so",
}
"""What glibc's libraries are called on Android; none of the names is longer."""
ANDROID_LIBRARIES = {
    "libc.so": ["-lm", "-ldl"],
    "libm.so": ["-lm"],
    "libdl.so": ["-ldl"],
    "libstdc++.so": ["-lstdc++", "-lgcc_s"],
}
"""Empty libraries with these names lead to glibc's."""
LIBC = """
#include <stdlib.h>
extern char** environ;
void __libc_init(void* raw, void (*onexit)(void), int (*main)(int, char**, char**), const void* structors) {
  (void)onexit, (void)structors;
  exit(main((int)*(long*)raw, (char**)raw + 1, environ));
}
"""
"""The one function that only bionic's has, by which a program begins."""
RUN_S = 1500
OURS = Path(__file__).parents[2]


def missing() -> str:
    """What must be installed first; empty if nothing."""
    packages = sorted(package for tool, package in TOOLS.items() if shutil.which(tool) is None)
    return f"apt-get install {' '.join(packages)}" if packages else ""


def cannot_start() -> str:
    """Why the kernel of this machine cannot start programs for arm64 by itself; empty if it can."""
    if subprocess.run([*registered(), "true"], capture_output=True, check=False).returncode == 0:
        return ""
    return "the kernel starts no programs for arm64: apt-get install qemu-user-static binfmt-support, or Linux 6.7"


def registered() -> list[str]:
    """What a command is started by, in whose namespace programs for arm64 simply run."""
    return [] if STARTED_BY_THE_KERNEL.exists() else ["unshare", "-Urm", "sh", "-ec", REGISTER, "sh"]


class Arm64Machine:
    """What was unpacked and built in a folder; made at the first use, then kept."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.site = folder / "site"
        self.opencl_runtime = folder / "libtvm_runtime_opencl.so"
        versions = [f"{name}=={importlib.metadata.version(name)}" for name in WHEELS]
        contents = str((PACKAGES, versions))
        made = folder / "made"
        if made.exists() and made.read_text() == contents:
            return
        shutil.rmtree(folder)
        folder.mkdir()
        self._unpack(versions)
        self._build()
        self._make_android()
        made.write_text(contents)

    @property
    def program(self) -> list[str]:
        """The command that starts an RPC server of this machine."""
        libraries = self.root / "usr/lib/aarch64-linux-gnu"
        variables = {
            "PYTHONPATH": f"{self.site}:{OURS}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OCL_ICD_VENDORS": f"{self.root}/etc/OpenCL/vendors",
            # qemu redirects most paths to its own root, but not those that PoCL makes out of where it was loaded from.
            "LD_LIBRARY_PATH": f"{libraries}:{self.root}/lib/aarch64-linux-gnu",
            "LIBRARY_PATH": f"{next(GCC.iterdir())}:/usr/aarch64-linux-gnu/lib",
        }
        linker = ["--ro-bind", "/usr/bin/aarch64-linux-gnu-ld", str(Path("/usr/bin/ld").resolve())]
        sandbox = [str(shutil.which("bwrap")), "--dev-bind", "/", "/", *linker, "--die-with-parent", "--"]
        environment = ["env", *(f"{name}={value}" for name, value in variables.items())]
        python = [f"{self.root}/usr/bin/python{PYTHON}", "-B", "-c", SERVER]
        return [*sandbox, *environment, str(shutil.which("qemu-aarch64-static")), "-L", str(self.root), *python]

    def run(self, folder: Path, *command: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
        """Run a command of this machine in one of our folders, which it sees as `/data`."""
        places = ["--bind", self.root, "/", "--ro-bind", "/sys", "/sys", "--bind", folder, "/data"]
        mounted = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/data", "--die-with-parent"]
        variables = ["env", f"PATH={path}", "HOME=/tmp"]
        words = [*registered(), "bwrap", *map(str, places), *mounted, "--", *variables, *command]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=RUN_S)

    def android_runtime(self, folder: Path) -> Path:
        """A runtime as an NDK would have built it, as far as names go: its libraries' code is still for glibc."""
        self.runtime_folder(folder, ["-Wl,--dynamic-linker=/system/bin/linker64"])
        for file in folder.iterdir():
            content = file.read_bytes()
            for name, theirs in ANDROID_NAMES.items():
                ended = f"\0{name}\0".encode()
                content = content.replace(ended, f"\0{theirs}".encode().ljust(len(ended), b"\0"))
            file.write_bytes(content)
        return folder

    def runtime_folder(self, folder: Path, more: Sequence[str] = ()) -> Path:
        """A runtime for boards in one folder; its `tvm_rpc` loads the libraries and does nothing."""
        folder.mkdir(exist_ok=True)
        for library in ("tvm/lib/libtvm_runtime.so", "tvm/lib/libtvm_runtime_extra.so", "tvm_ffi/lib/libtvm_ffi.so"):
            shutil.copy(self.site / library, folder)
        shutil.copy(self.opencl_runtime, folder)
        (folder / "main.cc").write_text("int main() {}")
        flags = [
            "-Wl,--no-as-needed,--allow-shlib-undefined,-z,max-page-size=65536",
            f"-L{folder}",
            "-ltvm_runtime",
            "-ltvm_ffi",
            *more,
        ]
        command = ["aarch64-linux-gnu-g++", "-o", str(folder / "tvm_rpc"), str(folder / "main.cc"), *flags]
        subprocess.run(command, check=True)
        return folder

    def _unpack(self, wheels: list[str]) -> None:
        debian = ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", "--skip=check/qemu"]
        subprocess.run([*debian, f"--include={','.join(PACKAGES)}", DEBIAN, self.root], check=True)
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 24, 27, 28)]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        foreign = [*platforms, f"--python-version={PYTHON}", "--only-binary=:all:", f"--target={self.site}"]
        subprocess.run([*pip, *foreign, *wheels], check=True)
        (self.site / "tvm/lib/libtvm_compiler.so").unlink()

    def _make_android(self) -> None:
        """What a program for Android finds: its loader, a shell with its tools, and libraries by their names there."""
        tools, libraries = self.root / "system/bin", self.root / "usr/lib/aarch64-linux-gnu"
        tools.mkdir(parents=True)
        userland.install(tools, "11")
        for name, program in (("sh", "mksh"), ("toybox", "toybox")):
            shutil.copy(next(self.root.glob(f"**/bin/{program}")), tools / name)
        (tools / "ld").symlink_to("/usr/bin/ld")  # PoCL's, which a phone's OpenCL does without
        (tools / "linker64").symlink_to("/lib/ld-linux-aarch64.so.1")
        (libraries / "libOpenCL.so").symlink_to("libOpenCL.so.1")
        for name, needs in ANDROID_LIBRARIES.items():
            source = self.root.parent / "empty.c"
            source.write_text(LIBC if name == "libc.so" else "")
            flags = ["-shared", "-fPIC", f"-Wl,--no-as-needed,-soname,{name}", "-o", str(libraries / name), str(source)]
            subprocess.run(["aarch64-linux-gnu-gcc", *flags, *needs], check=True)

    def _build(self) -> None:
        links = self.root.parent / "links"
        links.mkdir()
        (links / "libOpenCL.so").symlink_to(self.root / "usr/lib/aarch64-linux-gnu/libOpenCL.so.1")
        packages = self.site / "tvm", self.site / "tvm_ffi"
        includes, libraries = (tuple(package / part for package in packages) for part in ("include", "lib"))
        toolchain = CppToolchain(includes, libraries, "", "aarch64-linux-gnu-g++", "")
        flags = [f"-L{links}", "-idirafter/usr/include"]
        made = OPENCL.library(self.root.parent, extra_flags=flags, toolchain=toolchain)
        shutil.copyfile(made, self.opencl_runtime)
