"""OpenCL C as TVM writes it: taken apart into kernels, and checked without a device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.base.failures import InvalidKernel

_DEFINITION = re.compile(r"__kernel\s+void\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)\s*\(([^{};]*)\)\s*\{")
_IMAGE = re.compile(r"(?:__(read_only|write_only|read_write)\s+)?image2d(?:_array)?_t\s+(?:restrict\s+)?(\w+)")
_FORMAT = r"\b(?:convert_|as_)?{}\d*(?:_sat)?(?:_rt[ezpn])?\b"
"""A type of OpenCL C, or a conversion to it: inside one kernel there may be nothing else of it."""
_HALF, _DOUBLE = (re.compile(_FORMAT.format(name)) for name in ("half", "double"))
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_NAME_LAST = re.compile(r"(\w+)\s*$")
_LOCAL = re.compile(r"__local\s+([a-z]+)(\d*)\s+\w+\[(\d+)\]")
_BYTES = {"char": 1, "uchar": 1, "bool": 1, "short": 2, "ushort": 2, "half": 2, "long": 8, "ulong": 8, "double": 8}
"""Sizes of numbers that are not of four bytes."""
_ACCESS = re.compile(r"\b(READ_IMAGE|read_image|write_image)\w*\s*\(\s*(\w+)")


@dataclass(frozen=True)
class Kernel:
    """One kernel: its parameters and its body as text."""

    name: str
    parameters: str
    body: str

    @property
    def images(self) -> dict[str, str]:
        """Image parameters by name, with their access qualifier (empty if it is missing)."""
        return {name: access or "" for access, name in _IMAGE.findall(self.parameters)}

    @property
    def half(self) -> bool:
        """Whether it has numbers in half precision, which OpenCL C knows with `cl_khr_fp16` alone."""
        return any(map(_HALF.search, (self.parameters, self._own)))

    @property
    def double(self) -> bool:
        """Whether it has numbers in double precision, which OpenCL C knows with `cl_khr_fp64` alone."""
        return any(map(_DOUBLE.search, (self.parameters, self._own)))

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group."""
        return sum(_BYTES.get(kind, 4) * int(lanes or 1) * int(n) for kind, lanes, n in _LOCAL.findall(self._own))

    @property
    def code(self) -> str:
        """Definition of the kernel, with parameters numbered as they occur: their names differ from network to network.

        So does their order, as TVM sorts them by name.
        """
        declared = self.parameters.split(",")
        names = {match[1] for parameter in declared if (match := _NAME_LAST.search(parameter))}
        used = [word for word in _WORD.findall(self._own) if word in names]
        numbered = {name: f"p{number}" for number, name in enumerate(dict.fromkeys(used))}

        def renamed(text: str) -> str:
            return _WORD.sub(lambda word: numbered.get(word[0], word[0]), text)

        parameters = sorted(renamed(parameter).strip() for parameter in declared)
        return f"{', '.join(parameters)}{renamed(self._own)}"

    @property
    def _own(self) -> str:
        """Statements of the kernel, without the declarations of the next one."""
        return self.body.partition("\n}")[0]


def kernels(source: str) -> Iterator[Kernel]:
    """Yield every kernel that is defined in the source (TVM repeats the declarations before each)."""
    start = None
    for match in [*_DEFINITION.finditer(source), None]:
        if start:
            yield Kernel(start.group(1), start.group(2), source[start.end() : match.start() if match else len(source)])
        start = match


def check_images(source: str) -> None:
    """Check that every image parameter says how it is accessed, and that the body accesses it that way.

    Raises `InvalidKernel` with the first kernel that does not: TVM builds such kernels without complaint when its
    texture passes have not run, and only the device's compiler, at the first inference, refuses them.
    """
    for kernel in kernels(source):
        accesses = {("write" if how == "write_image" else "read", name) for how, name in _ACCESS.findall(kernel.body)}
        for image, access in kernel.images.items():
            if not access:
                raise _invalid(kernel, f"does not say whether it reads or writes its image {image}")
            ways = {"read_only": {"read"}, "write_only": {"write"}, "read_write": {"read", "write"}}[access]
            if not any((how, image) in accesses for how in ways):
                raise _invalid(kernel, f"takes the image {image} as {access} and never accesses it so")


def _invalid(kernel: Kernel, what: str) -> InvalidKernel:
    return InvalidKernel(
        f"the compiler reported success, but its kernel {kernel.name} {what}",
        hint="TVM's texture passes did not run on it; `adreno-bench quirks` lists the known defects",
        evidence=f"__kernel void {kernel.name}({kernel.parameters}) {{{kernel.body}",
    )
