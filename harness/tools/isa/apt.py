"""Debian packages, downloaded and unpacked into a folder of ours by the user's own apt; the system is not touched.

apt gets a root of its own: our suites at the user's mirror, its state in our folder, no package installed. It accepts
nothing that the archive's key, which Debian's keyring package brings, has not signed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from device_runner.disk import disk_full
from harness.base.process import run_to_end
from harness.tools.isa.failures import NoToolchain

DEADLINE_S = 600.0
_FOLDERS = (
    "var/cache/apt/archives/partial",
    "var/lib/apt/lists/partial",
    "etc/apt/apt.conf.d",
    "etc/apt/preferences.d",
)
"""Folders that apt expects in its root."""
_CONNECTION = re.compile(r'Acquire::(?:https?(?:::[\w.:-]+)*|Retries|ForceIPv[46]|Check-Valid-Until|Check-Date) ".*";')
"""What of the user's configuration decides how the archive is reached, by which proxy, and when it is out of date."""
_LAST_ERRORS = 3
OLD_VERSIONS = "https://snapshot.debian.org has every version; harness/tools/isa/pinned.py says which are wanted"


def mirror() -> str:
    """Return the address of Debian's archive that the user's own apt takes packages from. Raises NoToolchain."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NoToolchain(f"there is no {tool} here, which downloads the compiler", hint="use Debian or Ubuntu")
    printed = _run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"])
    sources = [line.split(" ", 1) for line in printed.splitlines() if " " in line]
    archives = [uri.rstrip("/") for origin, uri in sources if origin in ("Debian", "") and "security" not in uri]
    named = next((uri for uri in archives if uri.endswith("/debian")), "")
    if not named:
        hint = "name one with --mirror: the address below which dists/ and pool/ lie"
        raise NoToolchain("no source of this machine's apt is a mirror of Debian's archive", hint=hint)
    return named


def unpack(
    packages: Mapping[str, str],
    suites: Sequence[str],
    keyring: str,
    address: str,
    folder: Path,
    say: Callable[[str], None],
) -> dict[str, str]:
    """Unpack packages, and what they need, into `folder/root`, and return the version of each by name.

    `packages` are versions by name. Raises NoToolchain, DiskFull.
    """
    if not Path(keyring).exists():
        raise NoToolchain(f"{keyring} is missing", hint="sudo apt-get install debian-archive-keyring")
    apt, root = folder / "apt", folder / "root"
    for needed in (root, *(apt / name for name in _FOLDERS)):
        needed.mkdir(parents=True)
    environment = {**os.environ, "APT_CONFIG": str(_configuration(apt, suites, keyring, address)), "LC_ALL": "C.UTF-8"}
    say("reading the archive's index")
    _apt(["update", "--error-on=any"], environment)
    say("downloading 90 MB")
    pinned = [f"{name}={version}" for name, version in packages.items()]
    _apt(["install", "--yes", "--download-only", *pinned], environment)
    say("unpacking 440 MB")
    versions = dict(_unpack_one(package, root) for package in sorted(apt.glob("var/cache/apt/archives/*.deb")))
    shutil.rmtree(apt)
    return versions


def _configuration(apt: Path, suites: Sequence[str], keyring: str, address: str) -> Path:
    sources = (f"deb [arch=amd64 signed-by={keyring}] {address} {suite} main\n" for suite in suites)
    (apt / "etc/apt/sources.list").write_text("".join(sources))
    (apt / "status").touch()
    lines = [line for line in _run(["apt-config", "dump"]).splitlines() if _CONNECTION.fullmatch(line)]
    ours = {
        "Dir": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Dir::Etc::netrc": "/etc/apt/auth.conf",
        "Dir::Etc::netrcparts": "/etc/apt/auth.conf.d",
        "APT::Architecture": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::AllowInsecureRepositories": "false",
    }
    file = apt / "apt.conf"
    file.write_text("\n".join([*lines, *(f'{name} "{value}";' for name, value in ours.items()), ""]))
    return file


def _unpack_one(package: Path, root: Path) -> tuple[str, str]:
    _run(["dpkg-deb", "--extract", str(package), str(root)])
    name, version = _run(["dpkg-deb", "--show", "--showformat", "${Package}\t${Version}", str(package)]).split("\t")
    return name, version


def _apt(command: Sequence[str], environment: Mapping[str, str]) -> None:
    try:
        _run(["apt-get", "--quiet=2", *command], environment)
    except NoToolchain as failure:
        gone = re.search(r"Version '(.+?)' for '(.+?)' was not found|Unable to locate package (\S+)", failure.evidence)
        if gone:
            package = f"{gone[2]} {gone[1]}" if gone[2] else gone[3]
            raise NoToolchain(
                f"{package} is no longer in the archive", hint=OLD_VERSIONS, evidence=failure.evidence
            ) from None
        raise


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return what a program prints. Raises NoToolchain with its last complaints, DiskFull."""
    try:
        done = run_to_end(command, DEADLINE_S, env=environment)
    except subprocess.TimeoutExpired:
        raise NoToolchain(f"{command[0]} did not end within {DEADLINE_S:.0f} s", hint="try again") from None
    if done.returncode == 0:
        return done.stdout
    complaint = f"{done.stdout}\n{done.stderr}".strip()
    complaints = [line for line in complaint.splitlines() if line.startswith(("E:", "dpkg"))][:_LAST_ERRORS]
    raise disk_full(complaint) or NoToolchain(
        f"{command[0]} failed: {' '.join(complaints) or f'exit code {done.returncode}'}",
        hint="`adreno-bench isa setup` tries again",
        evidence=complaint,
    )
