"""Write docs/reference/api.md from the docstrings and types of `adreno_bench`.

python -m benchmarks.api_page
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import adreno_bench
from harness.tools.python import interface

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
HEAD = """# Python

The functions and classes of `import adreno_bench`, from their docstrings. `python -m benchmarks.api_page` writes it.

```python
import adreno_bench as bench

results = bench.run("net.onnx", paths=["texture"])  # as `adreno-bench run --model net.onnx --path texture`
results["net", "texture"].latency_ms
results.to_pandas()  # pip install 'adreno-bench[pandas]'
polars.DataFrame(results), pyarrow.table(results)  # pip install 'adreno-bench[records]'
bench.compare(bench.load("records.jsonl"), results)  # as `adreno-bench compare`
print(bench.compare("a.onnx", "b.onnx", paths="texture", minutes=5).answer)
```

Import only `adreno_bench`: `harness` and `device_runner` are internal, and may change in any version.
[A notebook](../tutorial/notebook.ipynb) shows the matrix. Ctrl-C, or the stop button, raises KeyboardInterrupt after
the device is free again.
"""
SECTION = re.compile(r"^(Args|Raises):\n((?:    .*\n?|\n)+)", re.MULTILINE)
ALIASES = {"Words": str(interface.Words), "Place": str(interface.Place)}
ENTRY = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def page() -> str:
    """Return the page as Markdown."""
    names = sorted(adreno_bench.__all__, key=lambda name: (name[0].isupper(), name))
    return "\n".join([HEAD, *(part for name in names for part in _entry(name, getattr(adreno_bench, name)))])


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"## {name}\n"
    if isinstance(value, FunctionType):
        yield from _function(name, value)
        return
    yield f"{_text(inspect.getdoc(value) or '')}\n"
    fields = (field for kind in _kinds(value) for field in _fields(kind))
    if rows := [f"| `{field}` | `{kind}` | {text} |" for field, kind, text in fields]:
        yield "\n".join(["| field | type | |", "|---|---|---|", *rows]) + "\n"
    for kind in _kinds(value) if value.__module__.startswith("harness.tools.python") else ():
        for method, function in vars(kind).items():
            if isinstance(function, FunctionType) and _is_public(method):
                yield f"### {name}.{method}\n"
                yield from _function(method, function)


def _kinds(kind: type) -> list[type]:
    """Return a class and those of ours that it builds on, these first."""
    return [base for base in reversed(kind.__mro__) if base.__module__.startswith(("harness", "device_runner"))]


def _is_public(method: str) -> bool:
    return not method.startswith("_") or method in ("__getitem__", "__arrow_c_stream__")


def _function(name: str, function: FunctionType) -> Iterator[str]:
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    shown, returns = [*_parameters(parameters)], signature.return_annotation
    inner = ", ".join(shown)
    if len(inner) > 80:
        inner = "".join(f"\n    {parameter}," for parameter in shown) + "\n"
    yield f"```python\n{name}({inner}) -> {returns}\n```\n"
    yield f"{_text(inspect.getdoc(function) or '')}\n"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield parameters as they are written, with the types that aliases stand for."""
    star = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            yield "*"
            star = True
        kind = re.sub(r"\b(Words|Place)\b", lambda alias: ALIASES[alias[0]], str(parameter.annotation))
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        yield f"{'*' * (parameter.kind is parameter.VAR_POSITIONAL)}{parameter.name}: {kind}{default}"


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and docstring of each public field of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if "ClassVar" in ast.unparse(statement.annotation):
                continue
            text = ast.literal_eval(after.value) if _is_text(after) else ""  # type: ignore[union-attr]
            yield statement.target.id, ast.unparse(statement.annotation).replace("|", "\\|"), _line(text)
        elif isinstance(statement, ast.FunctionDef) and _is_property(statement) and not statement.name.startswith("_"):
            returns = ast.unparse(statement.returns) if statement.returns else ""
            yield statement.name, returns.replace("|", "\\|"), _line(ast.get_docstring(statement) or "")


def _is_property(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) in ("property", "cached_property") for decorator in function.decorator_list)


def _is_text(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _text(text: str) -> str:
    """Return a docstring as Markdown: its arguments and errors are lists."""

    def as_list(section: re.Match[str]) -> str:
        title = "" if section[1] == "Args" else "Raises:\n\n"
        return title + "\n".join(f"* `{name}`: {_line(what)}" for name, what in ENTRY.findall(section[2])) + "\n\n"

    return SECTION.sub(as_list, text + "\n").strip()


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
