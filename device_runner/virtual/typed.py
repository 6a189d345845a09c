"""A dataclass from JSON that a person wrote: every value has the type that its field is annotated with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def made(kind: type[T], values: object, name: str = "") -> T:
    """A `kind` of these values. Raises ValueError that names the value which is not as it should be."""
    if not isinstance(values, Mapping):
        raise _wrong(name or "it", "an object")
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(f"there is no {_path(name, unknown[0])}; known are {', '.join(known)}")
    try:
        return kind(**{key: _value(hints[key], value, _path(name, key)) for key, value in values.items()})
    except TypeError as error:  # a field without a default is missing
        raise ValueError(f"{name}: {error}") from None


def _path(outer: str, inner: str) -> str:
    return f"{outer}.{inner}" if outer else inner


def _value(kind: Any, value: object, name: str) -> Any:
    options = [option for option in get_args(kind) if option is not NoneType]
    if is_dataclass(kind):
        return made(kind, value, name)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise _wrong(name, "a list")
        return tuple(_value(options[0], item, f"{name}[{index}]") for index, item in enumerate(value))
    if options:  # X | None
        return None if value is None else _value(options[0], value, name)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind or (isinstance(value, float) and not isfinite(value)):
        raise _wrong(name, _WORDS[kind])
    return value


def _wrong(name: str, wanted: str) -> ValueError:
    return ValueError(f"{name} should be {wanted}")


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
