"""The entry in Python, for what the fast one leaves: Note [Entries] in ``entry``."""

import ctypes
import struct
from typing import Any

import numpy as np

from numgrad.codegen.native.signature import Argument, Signature
from numgrad.errors import NumgradTypeError


class SlowEntry:
    """Call a kernel with whatever can be converted; say what cannot."""

    __slots__ = ("_owned", "_packed", "name", "nogil", "signature")

    def __init__(
        self, name: str, signature: Signature, packed: int, nogil: bool, owned: Any = None
    ) -> None:
        self.name, self.signature, self.nogil = name, signature, nogil
        self._owned = owned  # the machine code: Note [Lifetime of machine code]
        make = ctypes.CFUNCTYPE if nogil else ctypes.PYFUNCTYPE
        self._packed = make(ctypes.c_int32, ctypes.c_char_p)(packed)

    def __call__(self, *arguments: Any) -> Any:
        expected = self.signature.arguments
        if len(arguments) != len(expected):
            raise NumgradTypeError(
                f"kernel {self.name} takes {len(expected)} arguments, got {len(arguments)}"
            )
        slots = bytearray()
        for number, (argument, value) in enumerate(zip(expected, arguments, strict=True)):
            if argument.rank is None:
                slots += self._scalar(number, argument.dtype, value)
            else:
                slots += self._array(number, argument, value)
        found = ctypes.create_string_buffer(bytes(slots), len(slots) + 16)
        if self._packed(found):
            raise MemoryError
        return _unpacked(self.signature.result, found.raw[-16:])

    def _array(self, number: int, argument: Argument, array: Any) -> bytes:
        if (
            not isinstance(array, np.ndarray)
            or array.ndim != argument.rank
            or array.itemsize != argument.dtype.itemsize
            or (argument.contiguous and not array.flags.c_contiguous)
        ):
            given = (
                f"shape {array.shape}, strides {array.strides} and dtype {array.dtype}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise NumgradTypeError(
                f"kernel {self.name}: argument {number + 1} must be {argument}, got {given}"
            )
        strides = () if argument.contiguous else array.strides
        words = (array.__array_interface__["data"][0], *array.shape, *strides)
        return struct.pack(f"{len(words)}q", *words)

    def _scalar(self, number: int, dtype: np.dtype, value: Any) -> bytes:
        try:
            if dtype.kind == "c":
                found = complex(value)
                return struct.pack("2d", found.real, found.imag)
            if dtype.kind == "f":
                return struct.pack("d", float(value))
            if dtype.kind == "b":
                return struct.pack("q", bool(value))
            return struct.pack("Q" if dtype.kind == "u" else "q", int(value))
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise NumgradTypeError(
                f"kernel {self.name}: argument {number + 1} must be a {dtype} number, got "
                f"{type(value).__name__} {value!r:.40}"
            ) from error


def _unpacked(dtype: np.dtype | None, slots: bytes) -> Any:
    """The result as a Python number, from the two slots that it may take."""
    if dtype is None:
        return None
    if dtype.kind == "c":
        return complex(*struct.unpack("2d", slots))
    (value,) = struct.unpack_from({"f": "d", "u": "Q"}.get(dtype.kind, "q"), slots)
    return bool(value) if dtype.kind == "b" else value
