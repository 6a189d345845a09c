"""tvm-ffi by its C interface: functions are called, and values converted, without its Python package.

That package is compiled for one release of Python; the interface is the same for all. Source: tvm/ffi/c_api.h of
apache-tvm-ffi 0.1.14 and dlpack.h: the numbers and the layouts below are theirs.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from device_runner.device import Array

NONE, INT, BOOL, FLOAT, POINTER = range(5)
DEVICE = 6
DL_TENSOR, RAW_TEXT, BYTE_ARRAY = 7, 8, 9
SMALL_TEXT, SMALL_BYTES = 11, 12
OBJECTS, TEXT, BYTES = 64, 65, 66
HEADER_BYTES = 24
"""Of every object: reference counts, type and deleter."""
CPU, OPENCL = 1, 4
"""Kinds of devices."""
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class Device(NamedTuple):
    """A device of TVM's: its kind and number."""

    kind: int
    number: int = 0


class Error(Exception):
    """What TVM raised, as text: kind, message, and the places in its source."""


class _Any(ctypes.Structure):
    _fields_ = [("type_index", ctypes.c_int32), ("length", ctypes.c_uint32), ("value", ctypes.c_uint64)]


class _ByteArray(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Object:
    """An object of TVM's that we own a reference to."""

    def __init__(self, ffi: Ffi, type_index: int, handle: int) -> None:
        self.ffi, self.type_index, self.handle = ffi, type_index, handle

    def __call__(self, *arguments: Any) -> Any:
        """Call it, if it is a function."""
        return self.ffi.called(self.handle, arguments)

    def __getitem__(self, name: str) -> Object:
        """The function of a module, or of one that it imports. Raises Error if it has none."""
        found = self.ffi.function("ffi.ModuleGetFunction")(self, name, True)
        if found is None:
            raise Error(f"AttributeError: the module has no function {name}")
        return found  # type: ignore[no-any-return]

    def numpy(self) -> Array:
        """A tensor's content, copied to this process's memory."""
        import numpy as np

        tensor = _Tensor.from_address(self.handle + HEADER_BYTES)
        shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
        kind = _KINDS[tensor.code]
        array = np.empty(shape, kind if kind == "bool" else f"{kind}{tensor.bits}")
        copy = self.ffi.function("runtime.TVMTensorCopyToBytes")
        copy(self, ctypes.c_void_p(array.ctypes.data), array.nbytes)
        return array

    def __del__(self) -> None:
        self.ffi.library.TVMFFIObjectDecRef(ctypes.c_void_p(self.handle))


class Ffi:
    """TVM's runtime in this process."""

    def __init__(self, libraries: Sequence[Path]) -> None:
        """Load the libraries, tvm-ffi's own among them, each after those that it needs. Raises OSError."""
        for library in libraries:
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(None)  # whatever has been loaded
        self._functions: dict[str, Object] = {}

    def function(self, name: str) -> Object:
        """A global function. Raises Error if there is none."""
        if name not in self._functions:
            text = name.encode()
            handle, named = ctypes.c_void_p(), _ByteArray(_address(text), len(text))
            self._check(self.library.TVMFFIFunctionGetGlobal(ctypes.byref(named), ctypes.byref(handle)))
            if not handle.value:
                raise Error(f"AttributeError: there is no function {name}")
            self._functions[name] = Object(self, OBJECTS, handle.value)
        return self._functions[name]

    def called(self, function: int, arguments: Sequence[Any]) -> Any:
        """What a function returns. Raises Error."""
        packed, kept, result = (_Any * len(arguments))(), [], _Any()
        for place, argument in enumerate(arguments):
            kept.append(self._pack(packed[place], argument))
        call = self.library.TVMFFIFunctionCall
        self._check(call(ctypes.c_void_p(function), packed, len(arguments), ctypes.byref(result)))
        return self._unpacked(result)

    def _pack(self, into: _Any, argument: Any) -> Any:
        """Write an argument; returns what has to live until the call is over."""
        if argument is None:
            into.type_index = NONE
        elif isinstance(argument, bool):
            into.type_index, into.value = BOOL, int(argument)
        elif isinstance(argument, int):
            into.type_index, into.value = INT, argument & (1 << 64) - 1
        elif isinstance(argument, float):
            into.type_index, into.value = FLOAT, struct.unpack("Q", struct.pack("d", argument))[0]
        elif isinstance(argument, Device):
            into.type_index, into.value = DEVICE, argument.kind | argument.number << 32
        elif isinstance(argument, ctypes.c_void_p):
            into.type_index, into.value = POINTER, argument.value or 0
        elif isinstance(argument, Object):
            into.type_index, into.value = argument.type_index, argument.handle
        elif isinstance(argument, str):
            text = ctypes.create_string_buffer(argument.encode())
            into.type_index, into.value = RAW_TEXT, ctypes.addressof(text)
            return text
        elif isinstance(argument, bytes):
            array = _ByteArray(_address(argument), len(argument))
            into.type_index, into.value = BYTE_ARRAY, ctypes.addressof(array)
            return array, argument
        else:
            tensor, held = _view(argument)
            into.type_index, into.value = DL_TENSOR, ctypes.addressof(tensor)
            return tensor, held
        return None

    def _unpacked(self, result: _Any) -> Any:
        kind, value = result.type_index, result.value
        if kind == NONE:
            return None
        if kind in (INT, BOOL):
            number = ctypes.c_int64(value).value
            return bool(number) if kind == BOOL else number
        if kind == FLOAT:
            return struct.unpack("d", struct.pack("Q", value))[0]
        if kind in (SMALL_TEXT, SMALL_BYTES):
            content = struct.pack("Q", value)[: result.length]
            return content.decode(errors="replace") if kind == SMALL_TEXT else content
        if kind < OBJECTS:
            raise Error(f"TypeError: a function returned a value of kind {kind}")
        made = Object(self, kind, value)
        if kind in (TEXT, BYTES):
            content = _content(value + HEADER_BYTES)
            return content.decode(errors="replace") if kind == TEXT else content
        return made

    def _check(self, code: int) -> None:
        if code == 0:
            return
        raised = ctypes.c_void_p()
        self.library.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
        if not raised.value:
            raise Error(f"RuntimeError: code {code} without a message")
        error = Object(self, OBJECTS, raised.value)
        at, size = error.handle + HEADER_BYTES, ctypes.sizeof(_ByteArray)
        kind, message, places = (_content(at + number * size).decode(errors="replace") for number in range(3))
        raise Error(f"{kind}: {message}\n{places}")


def _address(content: bytes) -> int | None:
    """Where bytes lie, as long as somebody holds them."""
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value


def _content(at: int) -> bytes:
    """The bytes that a `TVMFFIByteArray` at an address speaks of."""
    array = _ByteArray.from_address(at)
    return ctypes.string_at(array.data, array.size) if array.size else b""


def _view(array: Array) -> tuple[_Tensor, object]:
    """A `DLTensor` that looks at an array, and what has to live as long as it."""
    import numpy as np

    held = np.ascontiguousarray(array)
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    dtype = held.dtype
    tensor = _Tensor(held.ctypes.data, CPU, 0, array.ndim, _CODES[dtype.kind], 8 * dtype.itemsize, 1, shape, None, 0)
    return tensor, (held, shape)
