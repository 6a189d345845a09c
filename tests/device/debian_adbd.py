"""Debian's build of Android's own adbd, unpacked into a cache folder without being installed.

The package is in Debian from trixie on and in bookworm-backports. It is fetched with the distribution's own apt and
mirror, in folders of its own, so nothing of the system changes.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PACKAGES = (
    "adbd",
    "android-libbase",
    "android-libboringssl",
    "android-libcutils",
    "android-liblog",
    "libprotobuf32",
)
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_DEADLINE_S = 60


class NotToBeHad(Exception):
    """Why this machine cannot have adbd."""


def adbd_root(cache: Path) -> Path:
    """Folder that the packages are unpacked in. Raises NotToBeHad."""
    root = cache / "root"
    if not (root / "usr/lib/android-sdk/platform-tools/adbd").exists():
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise NotToBeHad(f"no {tool} here")
        _download(cache, _sources())
        for package in cache.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(root)], cache)
    return root


def _sources() -> str:
    """The mirror that this machine uses, with the release's backports."""
    try:
        lines = [line.partition(": ") for line in SOURCES.read_text().splitlines() if not line.startswith("#")]
    except OSError:
        raise NotToBeHad(f"{SOURCES} cannot be read: not a Debian of today") from None
    first = {key: value.split()[0] for key, _, value in reversed(lines) if value}
    suites = (first["Suites"], f"{first['Suites']}-backports")
    return "".join(f"deb [signed-by={KEYRING}] {first['URIs']} {suite} main\n" for suite in suites)


def _download(cache: Path, sources: str) -> None:
    (cache / "lists/partial").mkdir(parents=True, exist_ok=True)
    (cache / "sources.list").write_text(sources)
    options = {
        "Dir::Etc::SourceList": cache / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": cache / "lists",
        "Dir::Cache": cache,
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "10",
        "Acquire::Retries": "0",
    }
    apt = ["apt-get", "-q", *(part for key, value in options.items() for part in ("-o", f"{key}={value}"))]
    _run([*apt, "update"], cache)
    release = sources.split()[-2]
    _run([*apt, "-t", release, "download", *PACKAGES], cache)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=APT_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"{command[0]} did not end in {APT_DEADLINE_S} s") from None
    if done.returncode != 0:
        raise NotToBeHad(f"{command[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
