"""Builds pages: templates and figures, with scripts beside a page of a site, or inside a page that stands alone.

Plotly's script is taken from the installed package and packed, to two fifths of its length. Pages work from a folder.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.failures import SetupMissing
from device_runner.files import write_whole
from harness.judge.report import words

if TYPE_CHECKING:
    from jinja2 import Environment

ROOM = "harness.judge.report"
PLOTLY, SCRIPT, FILTER, COPY = SCRIPTS = ("plotly.js", "figures.js", "filter.js", "copy.js")
FIGURES = (PLOTLY, SCRIPT)
"""Scripts of a page with figures."""


def environment(*packages: str) -> Environment:
    """Return our templates and those of packages, with what all of them use. Raises SetupMissing without jinja2."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise SetupMissing(f"{error.name} is not installed", hint="pip install 'adreno-bench[history]'") from None
    return _environment(packages)


@cache
def _environment(packages: Sequence[str]) -> Environment:
    """Make an environment once, which keeps its compiled templates: a dozen pages of one command share most of them."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from jinja2.utils import htmlsafe_json_dumps

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, ROOM)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.globals.update(zip=zip, words=words)
    templates.filters["json"] = lambda value: htmlsafe_json_dumps(value, separators=(",", ":"), ensure_ascii=False)
    return templates


def write_scripts(folder: Path) -> None:
    """Put the scripts of a site beside its pages."""
    for name in SCRIPTS:
        (folder / name).write_text(_script(name), encoding="utf-8")


def write_page(
    file: Path, template: str, *, package: str = ROOM, scripts: Sequence[str] = FIGURES, **facts: Any
) -> None:
    """Write a page that stands alone, from a package's template that extends `base.html.j2`. Raises SetupMissing."""
    shared = {"pages": {}, "page": "", "skipped": [], "displaced": [], "scripts": [_script(name) for name in scripts]}
    write_whole(file, environment(package).get_template(template).render(**shared, **facts))


@cache
def _script(name: str) -> str:
    """Return the text of a script; packing plotly's takes a tenth of a second."""
    text = (files(ROOM) / "templates" / name).read_text("utf-8")
    if name != PLOTLY:
        return text
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise SetupMissing(f"{error.name} is not installed", hint="pip install 'adreno-bench[history]'") from None
    return text.replace("GZIPPED", base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode())
