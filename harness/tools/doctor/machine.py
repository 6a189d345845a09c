"""What this machine has and lacks: each check tries the thing instead of looking for its files.

A check yields findings; a failure of any kind becomes one, so that one broken part does not hide another.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from device_runner.names import load
from device_runner.registry import WHY_NO_SANDBOX, WHY_NO_USERLAND, list_devices, open_device
from harness.base.process import complaint_of, run_to_end
from harness.base.tool import places
from harness.tools.shared.finding import Check, Condition, DoctorFinding, guarded

ROOM_NEEDED_BYTES = 2_000_000_000
IMPORT_DEADLINE_S = 60


def examine(cache: Path) -> Iterator[DoctorFinding]:
    """Yield all findings, as they are made."""
    for what, check in CHECKS.items():
        yield from guarded(what, check(cache))
    for what, place in places("doctor_checks"):
        yield from guarded(what, load(place)(cache))


def _python(_: Path) -> Iterator[DoctorFinding]:
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield DoctorFinding("python", Condition.OK if sys.version_info >= (3, 10) else Condition.MISSING, text)


def _harness(_: Path) -> Iterator[DoctorFinding]:
    from harness.compile.compiler.releases import HARNESS, harness_version

    yield DoctorFinding(HARNESS, Condition.OK, harness_version())


def _tvm(_: Path) -> Iterator[DoctorFinding]:
    from device_runner import installed_tvm
    from harness.compile.compiler.releases import RELEASES, require_working_pair, versions

    installed = versions()
    text = f"TVM {installed['tvm']} with tvm-ffi {installed['ffi']}, from {installed_tvm.package_folder('tvm')}"
    require_working_pair(installed)
    done = run_to_end([sys.executable, "-c", "import tvm, tvm.relax"], IMPORT_DEADLINE_S)
    if done.returncode:
        fix = "install the pair of requirements.lock"
        yield DoctorFinding("tvm", Condition.MISSING, f"{text} cannot be imported: {complaint_of(done)}", fix)
    elif installed["tvm"] not in RELEASES:
        fix = f"nothing, if you built it: what it lacks is named when it is met; tried were {', '.join(RELEASES)}"
        yield DoctorFinding("tvm", Condition.NOTE, f"{text}; not a release that was tried", fix)
    else:
        yield DoctorFinding("tvm", Condition.OK, text)


def _opencl(cache: Path) -> Iterator[DoctorFinding]:
    from device_runner.runtimes import probe
    from device_runner.runtimes.opencl import needed, own, sidecar
    from harness.tools.doctor.opencl_status import opencl_status

    library = sidecar(cache) if needed() else own()
    whose = "ours, compiled against the installed TVM" if needed() else "TVM's own"
    yield DoctorFinding("opencl runtime", Condition.OK, f"{whose} ({library.name})")
    prober = probe.library(cache)
    yield DoctorFinding("probe", Condition.OK, f"compiled for this host's processor ({prober.name})")
    status = opencl_status(library, prober)
    if status.chosen is None:
        yield DoctorFinding("opencl device", Condition.MISSING, status.problem, "sudo apt-get install pocl-opencl-icd")
        return
    for device in status.devices:
        mark = " (used)" if device == status.chosen else ""
        yield DoctorFinding("opencl device", Condition.OK, f"{device.platform} / {device.name}{mark}, by the probe")


def _adb(_: Path) -> Iterator[DoctorFinding]:
    import adbutils

    yield DoctorFinding("adb", Condition.OK, f"{adbutils.adb_path()} (adbutils {adbutils.__version__})")


def _sandbox(_: Path) -> Iterator[DoctorFinding]:
    if reason := load(WHY_NO_SANDBOX)():
        fix = "sudo apt-get install bubblewrap, and allow unprivileged user namespaces"
        yield DoctorFinding(
            "sandbox", Condition.NOTE, f"none ({reason}): the virtual device runs in a plain folder", fix
        )
    else:
        yield DoctorFinding("sandbox", Condition.OK, "bubblewrap with user namespaces")


def _userland(_: Path) -> Iterator[DoctorFinding]:
    if reason := load(WHY_NO_USERLAND)():
        text = f"this host's own ({reason}), which records call emulated"
        yield DoctorFinding("phone's shell", Condition.NOTE, text, "sudo apt-get install mksh toybox")
    else:
        yield DoctorFinding("phone's shell", Condition.OK, "mksh and toybox, on the virtual device")


def _disk(cache: Path) -> Iterator[DoctorFinding]:
    cache.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(cache).free
    fix = "`adreno-bench cache --prune`" if free_bytes < ROOM_NEEDED_BYTES else ""
    yield DoctorFinding.of("disk", f"{free_bytes / 1e9:.0f} GB free in {cache}", fix, Condition.MISSING)


def _virtual(cache: Path) -> Iterator[DoctorFinding]:
    with open_device("virtual", cache) as device:
        who = device.identity
        images = f"{who.image2d_max_width}x{who.image2d_max_height}x{who.image_max_array_layers}"
        fp16 = {True: "yes", False: "no", None: "unknown"}[who.fp16]
        source = {"probe": "by the probe", "tvm": "by TVM's device attributes"}.get(who.opencl_told_by, "")
        text = f"answers; GPU {who.gpu}; driver {who.driver}; images to {images}; fp16 {fp16}; {source}"
        yield DoctorFinding("virtual device", Condition.OK, text)


def _phones(cache: Path) -> Iterator[DoctorFinding]:
    phones = [entry for entry in list_devices(cache) if entry.kind == "phone"]
    if not phones:
        yield DoctorFinding("phones", Condition.NOTE, "none attached", "enable USB debugging and plug one in")
    for phone in phones:
        fix = "" if phone.state == "ready" else "unlock it and accept the debugging prompt"
        yield DoctorFinding.of(f"phone {phone.name}", phone.state, fix)


CHECKS: dict[str, Check] = {
    "python": _python,
    "adreno-bench": _harness,
    "tvm": _tvm,
    "disk": _disk,
    "opencl": _opencl,
    "adb": _adb,
    "sandbox": _sandbox,
    "phone's shell": _userland,
    "virtual device": _virtual,
    "phones": _phones,
}
"""Checks of this host; each builds on those before it."""


COMMAND = "sudo apt-get install -y --no-install-recommends"


def missing_packages(root: Path = Path("/"), which: Callable[[str], object] = shutil.which) -> list[str]:
    """Return the packages that a run needs and that are not there, by their Debian names. Any OpenCL counts as one.

    `.ci/system-packages` installs the same.

    Args:
        root: Root of the file system.
        which: Finds a program.
    """
    programs: Mapping[str, str] = {"g++": "g++", "bubblewrap": "bwrap", "mksh": "mksh", "toybox": "toybox"}
    files: Mapping[str, Sequence[str]] = {
        "pocl-opencl-icd": ("etc/OpenCL/vendors/*.icd",),
        "opencl-headers": ("usr/include/CL/cl.h",),
        "ocl-icd-opencl-dev": ("usr/lib/*/libOpenCL.so", "usr/lib*/libOpenCL.so"),
    }
    missing = [name for name, patterns in files.items() if not any(any(root.glob(pattern)) for pattern in patterns)]
    return [*missing, *(name for name, program in programs.items() if not which(program))]


def fix_command(missing: Sequence[str]) -> str:
    """Return the command that brings packages; a comment if none is missing."""
    return f"{COMMAND} {' '.join(missing)}" if missing else "# nothing is missing"
