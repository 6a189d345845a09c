"""What to install where a module is missing, as the metadata of this package has it."""

from __future__ import annotations

import re
from importlib import metadata

_PACKAGE = "adreno-bench"
_NOT_FOR_USERS = "dev"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*?(?:extra == ['\"](?P<extra>\w+)['\"])?$")


def how_to_install(module: str) -> str:
    """The command that brings a module of somebody else's.

    The distribution is taken to be called as the module is; where it is not, the whole of what is needed is installed.
    """
    try:
        lines = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        lines = []
    found = [match for line in lines if (match := _REQUIREMENT.match(line)) and _same(match["name"], module)]
    extras = [match["extra"] for match in found if match["extra"] not in (None, _NOT_FOR_USERS)]
    if extras:
        return f"pip install '{_PACKAGE}[{extras[0]}]'"
    return f"pip install {module if found else _PACKAGE}"


def _same(distribution: str, module: str) -> bool:
    return re.sub(r"[-_.]+", "_", distribution).lower() == module.lower()
