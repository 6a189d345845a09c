"""An arm64 Linux under qemu, for the virtual phone: Debian's userland, PoCL, TVM's AArch64 wheels, our OpenCL runtime.

Nothing of it is installed: packages are unpacked into a folder, and programs of that folder run one by one under
`qemu-aarch64-static`. PoCL starts a linker for each kernel, which the kernel of this machine takes from this machine; a
mount namespace puts the cross linker in its place.
"""

from __future__ import annotations

import importlib.metadata
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from device_runner.runtimes.opencl.library import OPENCL
from device_runner.runtimes.recipe import CppToolchain, build

DEBIAN, PYTHON = "bookworm", "3.11"
PACKAGES = ("python3", "pocl-opencl-icd", "ocl-icd-libopencl1", "libstdc++6")
TOOLS = {
    "qemu-aarch64-static": "qemu-user-static",
    "mmdebstrap": "mmdebstrap",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "bwrap": "bubblewrap",
}
WHEELS = ("apache-tvm", "apache-tvm-ffi", "typing_extensions", "numpy")
GCC = Path("/usr/lib/gcc-cross/aarch64-linux-gnu")
SERVER = "import sys; from device_runner.rpc_server.tvm_rpc.server import main; sys.exit(main())"
LIBC = """
#include <stdlib.h>
extern char** environ;
void __libc_init(void* raw, void (*onexit)(void), int (*main)(int, char**, char**), const void* structors) {
  (void)onexit, (void)structors;
  exit(main((int)*(long*)raw, (char**)raw + 1, environ));
}
"""
OURS = Path(__file__).parents[2]


def missing() -> str:
    """What must be installed first; empty if nothing."""
    packages = sorted(package for tool, package in TOOLS.items() if shutil.which(tool) is None)
    return f"apt-get install {' '.join(packages)}" if packages else ""


class Arm64Machine:
    """What was unpacked and built in a folder; made at the first use, then kept."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.site = folder / "site"
        self.opencl_runtime = folder / "libtvm_runtime_opencl.so"
        versions = [f"{name}=={importlib.metadata.version(name)}" for name in WHEELS]
        made = folder / "made"
        if made.exists() and made.read_text() == str(versions):
            return
        shutil.rmtree(folder)
        folder.mkdir()
        self._unpack(versions)
        self._build()
        made.write_text(str(versions))

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

    def android_program(self, program: Path, folder: Path) -> Path:
        """A script that runs a program for Android as it is, with glibc's loader and library for bionic's.

        `libc.so` has the one function that only bionic's has, by which a program begins.
        """
        loader = self.root / "system/bin/linker64"
        loader.parent.mkdir(parents=True, exist_ok=True)
        if not loader.is_symlink():
            loader.symlink_to("../../lib/ld-linux-aarch64.so.1")
        (folder / "libc.c").write_text(LIBC)
        (folder / "empty.c").write_text("")
        make = ["aarch64-linux-gnu-gcc", "-shared", "-fPIC", "-Wl,--no-as-needed"]
        for name, source in (("libc", "libc.c"), ("libdl", "empty.c"), ("libm", "empty.c")):
            made = ["-o", f"{folder}/{name}.so", f"-Wl,-soname,{name}.so", f"{folder}/{source}", "-ldl", "-lm"]
            subprocess.run([*make, *made], check=True)
        *words, _, _, _, _ = self.program
        own = f"LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH:"  # what the bundle's script says, and bionic's in front
        words = [word.replace("LD_LIBRARY_PATH=", own) for word in words]
        script = folder / "runner"
        quoted = " ".join('"' + word + '"' for word in [*words, str(program)])
        script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        return script

    def start_python(self, program: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program of this machine, whose own Python is another program that is emulated.

        Nothing but numpy is on its path.
        """
        (folder / "only").mkdir()
        for package in ("numpy", "numpy.libs"):
            (folder / "only" / package).symlink_to(self.site / package)
        *start, _, _, _ = self.program
        start = [f"PYTHONPATH={folder}/only" if word.startswith("PYTHONPATH=") else word for word in start]
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n')
        python.chmod(0o755)
        code = f"import runpy, sys; sys.executable = {str(python)!r}; sys.argv = {[str(program), *words]!r}; "
        command = [str(python), "-c", f"{code}runpy.run_path({str(program)!r}, run_name='__main__')"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)

    def runtime(self) -> list[Path]:
        """TVM's runtime libraries, tvm-ffi first."""
        names = ("tvm_ffi/lib/libtvm_ffi.so", "tvm/lib/libtvm_runtime.so", "tvm/lib/libtvm_runtime_extra.so")
        return [*(self.site / name for name in names), self.opencl_runtime]

    def runtime_folder(self, folder: Path) -> Path:
        """A runtime for boards in one folder; its `tvm_rpc` loads the libraries and does nothing."""
        for library in ("tvm/lib/libtvm_runtime.so", "tvm/lib/libtvm_runtime_extra.so", "tvm_ffi/lib/libtvm_ffi.so"):
            shutil.copy(self.site / library, folder)
        shutil.copy(self.opencl_runtime, folder)
        (folder / "main.cc").write_text("int main() {}")
        flags = [
            "-Wl,--no-as-needed,--allow-shlib-undefined,-z,max-page-size=65536",
            f"-L{folder}",
            "-ltvm_runtime",
            "-ltvm_ffi",
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

    def _build(self) -> None:
        links = self.root.parent / "links"
        links.mkdir()
        (links / "libOpenCL.so").symlink_to(self.root / "usr/lib/aarch64-linux-gnu/libOpenCL.so.1")
        packages = self.site / "tvm", self.site / "tvm_ffi"
        includes, libraries = (tuple(package / part for package in packages) for part in ("include", "lib"))
        toolchain = CppToolchain(includes, libraries, "", "aarch64-linux-gnu-g++", "")
        build(toolchain, OPENCL, self.opencl_runtime, [f"-L{links}", "-idirafter/usr/include"])
