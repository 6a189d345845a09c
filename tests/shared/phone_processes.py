"""The processes of a virtual phone, as its host sees them, with a sandbox and without one."""

import contextlib
from pathlib import Path

import psutil


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Without those that only wait for their parent to take notice."""
    living = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE and process.is_running():
                living.append(process)
    return living


def processes_of(home: Path, host: psutil.Process) -> list[psutil.Process]:
    """Everything that the host started, and everything that has the phone's folder in its environment."""
    found = host.children(recursive=True)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process not in found and any(str(home) in value for value in process.environ().values()):
                found.append(process)
    return found


def commands_of(home: Path) -> list[str]:
    """Command lines of what runs on the phone that this process started in `home`."""
    lines = []
    for process in alive(processes_of(home, psutil.Process())):
        with contextlib.suppress(psutil.Error):
            lines.append(" ".join(process.cmdline()))
    return lines
