"""Python's and NumPy's C functions, builtins of machine code and their words, reference counts."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from sys import getrefcount
from typing import Any, Self

import numpy as np

OBJECTS = {
    "numgrad_py_ndarray": np.ndarray, "numgrad_py_complex": complex, "numgrad_py_none": None,
}  # fmt: skip
"""Python objects that machine code refers to, by the linker's symbols."""
_NEW_ARRAY = 94
"""The place of ``PyArray_NewFromDescr`` in NumPy's C API, which never changes."""
_METH_KEYWORDS, _METH_FASTCALL = 0x02, 0x80


def object_addresses() -> dict[str, int]:
    """Addresses of ``OBJECTS`` by symbol."""
    return {symbol: id(value) for symbol, value in OBJECTS.items()}


def function_address(symbol: str) -> int:
    """The address of a C function of Python's, 0 if there is none of that name."""
    function = getattr(ctypes.pythonapi, symbol, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def capsule_name(capsule: Any) -> str:
    """The name of a capsule; Cython's is the declaration of a function in C."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get_name(capsule).decode()


def capsule_pointer(capsule: Any, name: str | None) -> int:
    """The address in a capsule of that name."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, None if name is None else name.encode())


_NUMPY_DOMAIN = 389047  # of tracemalloc


def trace(place: int, size: int) -> None:
    """Tell ``tracemalloc`` of memory, as NumPy tells it of arrays."""
    track = ctypes.pythonapi.PyTraceMalloc_Track
    track.argtypes = ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t
    track(_NUMPY_DOMAIN, place, size)


def untrace(place: int) -> None:
    """Tell ``tracemalloc`` that memory is free."""
    untrack = ctypes.pythonapi.PyTraceMalloc_Untrack
    untrack.argtypes = ctypes.c_uint, ctypes.c_size_t
    untrack(_NUMPY_DOMAIN, place)


def new_array_address() -> int:
    """The address of NumPy's function that makes arrays."""
    numpy: Any = import_module("numpy._core._multiarray_umath")
    table = capsule_pointer(numpy._ARRAY_API, None)
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_NEW_ARRAY] or 0


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def builtin(name: str, address: int, own: bytes, *, keywords: bool = False) -> Callable[..., Any]:
    """A builtin function: machine code whose ``self`` is ``own``, which holds what it names."""
    definition = _definition(name, address, _METH_FASTCALL | keywords * _METH_KEYWORDS)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    return make(ctypes.addressof(definition), own, None)


@cache
def _definition(name: str, address: int, flags: int) -> _MethodDefinition:
    """The definition of all functions of a name, a machine code and a way to be called."""
    definition = _MethodDefinition(name.encode(), address, flags, None)
    # functions are looked at when Python ends, after modules are gone: what they point to stays
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return definition


# ------------------------------------------------------------------------------ reference counts


def is_unreferenced(array: np.ndarray) -> bool:
    """Whether nobody else has an array, or what its memory belongs to.

    It is that of an element of a list, which a loop's variable and a parameter of the caller's
    refer to besides.
    """
    if getrefcount(array) > _usual_counts()[0]:
        return False
    base = array.base
    while base is not None:
        if not isinstance(base, np.ndarray) or getrefcount(base) > _usual_counts()[1]:
            return False
        base = base.base
    return True


@cache
def _usual_counts() -> tuple[int, int]:
    """Counts of an array in a list, passed on twice, and of its base: versions differ in them."""

    def passed_on(source: np.ndarray) -> tuple[int, int]:
        return counted(source)

    def counted(array: np.ndarray) -> tuple[int, int]:
        count = getrefcount(array)
        base = array.base
        return count, getrefcount(base)

    arrays = [np.empty(2)[:1]]
    for source in arrays:
        return passed_on(source)
    raise AssertionError


_INTEGERS = (int, np.integer)


class Words(bytes):
    """Words for machine code; ``referenced`` are the objects whose addresses are among them."""

    referenced: Any

    @classmethod
    def of(cls, *values: Any) -> Self:
        """The words: integers as they are, the places of tables, addresses of other objects."""
        made = cls(struct.pack(f"{len(values)}q", *map(_word, values)))
        made.referenced = [value for value in values if not isinstance(value, _INTEGERS)]
        return made


def _word(value: Any) -> int:
    if isinstance(value, _INTEGERS):
        return int(value)
    return value.address if type(value) is ObjectTable else id(value)


class ObjectTable:
    """The objects that a text names, in memory where its machine code finds their addresses.

    The text has the address of the table in the variable ``context``; ``table["NAME"]`` is how it
    writes an object. The first word is a number that machine code looks at, 0 in the beginning.
    """

    def __init__(self, **objects: Any) -> None:
        self.objects = objects
        self.words = np.array([0, *map(id, objects.values())])
        self._positions = {name: k for k, name in enumerate(objects, 1)}

    def __getitem__(self, name: str) -> str:
        return f"peek(int64, context + {8 * self._positions[name]})"

    @property
    def address(self) -> int:
        """Where it lies; who calls machine code with it keeps the table."""
        return self.words.ctypes.data
