"""What the host's own steps can find wrong: the user's model, the compiler, the code that it made.

Continues the tree of `device_runner.failures`: one line, a hint, evidence, and the outcome that names the owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from device_runner.failures import Failure, RigFailure


class UsageError(Failure):
    """The person asked for something that cannot be: a wrong name, key, value or file. Never a case's outcome."""

    outcome = "usage"


def reason_alone(error: Exception) -> str:
    """Return what went wrong with a file, without Python's number and without the name, which the message has."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    if isinstance(error, ValueError) and callable(problems := getattr(error, "errors", None)):  # pydantic's
        first = problems()[0]
        return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, "))))
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


class ModelError(UsageError):
    """The model that was asked for cannot be used as it is; the hint says how to mend it."""


class OracleNotFinite(Failure):
    """The oracle's own answer holds NaN or infinity: nothing can be compared with it."""

    outcome = "oracle-not-finite"


class InputRefused(Failure):
    """The oracle, or another runtime outside TVM, refuses the inputs: an index beyond its table, say."""

    outcome = "input-refused"


class NoOutsideAnswer(Failure):
    """Nobody outside TVM can compute the network: the reasons of each. Never a case's outcome: LLVM answers instead."""

    outcome = "no-outside-answer"


class CompileFailure(Failure):
    """The compiler did not make a usable library of a good model."""

    outcome = "compile-error"


class UnsupportedOperator(CompileFailure):
    """The model uses an operator that TVM's importer does not know."""


class MisreadOperator(UnsupportedOperator):
    """The model uses an operator in a way that TVM's importer misreads."""


class InvalidKernel(CompileFailure):
    """The compiler reported success, and its OpenCL source cannot be right (found before a device sees it)."""


class CompilerCrash(CompileFailure):
    """The compiler's process died."""

    outcome = "compiler-crash"


class CompileTimeout(CompileFailure):
    """The compiler did not end within its deadline."""

    outcome = "compile-timeout"


class CompileOutOfMemory(CompileFailure):
    """The compiler met the limit of its memory. With another limit the same input may compile: this is not kept."""


_REVIVED: tuple[type[Failure], ...] = (
    *(CompileFailure, CompileOutOfMemory, CompilerCrash, CompileTimeout, InputRefused, MisreadOperator),
    *(ModelError, NoOutsideAnswer, OracleNotFinite),
)


def described(failure: Failure) -> dict[str, str]:
    """Return a failure as plain values, of which `revived` makes it again in another process."""
    texts = {name: getattr(failure, name) for name in ("outcome", "message", "hint", "evidence")}
    return {**texts, "kind": type(failure).__name__}


def revived(fields: Mapping[str, str]) -> Failure:
    """Return a failure that `described` wrote down, as the class that it names, or whose outcome it does."""
    for kind in sorted(_REVIVED, key=lambda kind: kind.__name__ != fields.get("kind")):
        if kind.outcome == fields["outcome"]:
            return kind(fields["message"], hint=fields["hint"], evidence=fields["evidence"])
    return RigFailure(fields["message"], hint=fields["hint"], evidence=fields["evidence"])
