"""Tables of constants, and forms of functions for single precision.

Note [One body]
---------------
Where a function takes the same steps in both precisions it is written once, for float64, and
``single`` makes the form for float32 of the same text: each global name in it stands for its
counterpart there. That of ``name_f64`` is ``name_f32``, that of the constant ``NAME_F64`` is
``NAME_F32``, and that of any other one, ``NAME`` or ``D_NAME``, is ``F_NAME``, beside it in the
module. ``INT`` and ``FLOAT`` are the types of numbers. A constant without counterpart is an error.
"""

import sys
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.codegen.device import DeviceFunction
from numgrad.errors import NumgradAttributeError

INT, FLOAT = np.int64, np.float64
_SINGLE: dict[Any, Any] = {INT: np.int32, FLOAT: np.float32}


def floats(text: str) -> tuple[float, ...]:
    """A table of constants, of their decimal or hexadecimal forms between white space."""
    return tuple(float.fromhex(x) if "0x" in x else float(x) for x in text.split())


def float64s(text: str) -> tuple[np.float64, ...]:
    """The same of float64."""
    return tuple(map(np.float64, floats(text)))


def float32s(text: str) -> tuple[np.float32, ...]:
    """The same of float32."""
    return tuple(map(np.float32, floats(text)))


def single(double: DeviceFunction) -> DeviceFunction:
    """The form for float32 of a function for float64: Note [One body]."""
    function: Any = double.py_func
    before = function.__globals__
    names = {name: before[name] for name in function.__code__.co_names if name in before}
    after = {name: _counterpart(name, value, before) for name, value in names.items()}
    copy = FunctionType(function.__code__, {**before, **after})
    copy.__doc__, copy.__module__ = function.__doc__, function.__module__
    # linker symbols come from the name
    copy.__name__ = copy.__qualname__ = function.__name__.replace("f64", "f32")
    return DeviceFunction(copy, inline=double.inline, contract=double.contract)


def _counterpart(name: str, value: Any, names: dict[str, Any]) -> Any:
    """The value that a name of the text for float64 has in that for float32."""
    if isinstance(value, DeviceFunction) and name.endswith("_f64"):
        return getattr(sys.modules[value.__module__], f"{name[:-2]}32")
    if name.endswith("_F64"):
        return names[f"{name[:-2]}32"]
    if isinstance(value, type) and value in _SINGLE:
        return _SINGLE[value]
    other = names.get(f"F_{name.removeprefix('D_')}")
    if other is None and isinstance(value, np.generic | tuple):
        raise NumgradAttributeError(f"{name} has no counterpart for float32: Note [One body]")
    return value if other is None else other


def through_float64(double: DeviceFunction) -> DeviceFunction:
    """The form for float32 that computes in float64 and rounds once."""

    def of_one(x):
        return np.float32(double(np.float64(x)))

    def of_two(a, x):
        return np.float32(double(np.float64(a), np.float64(x)))

    def of_three(a, b, x):
        return np.float32(double(np.float64(a), np.float64(b), np.float64(x)))

    def of_four(a, b, c, x):
        return np.float32(double(np.float64(a), np.float64(b), np.float64(c), np.float64(x)))

    count = double.py_func.__code__.co_argcount
    return _named((of_one, of_two, of_three, of_four)[count - 1], double, inline=True)


def through_complex128(double: DeviceFunction) -> DeviceFunction:
    """The form for complex64 that computes in complex128: wide enough to round only once."""

    def narrow(z):
        return np.complex64(double(np.complex128(z)))

    return _named(narrow, double, inline=True)


def of_parts(
    name: str, parts: DeviceFunction, *, turned: bool = False
) -> tuple[DeviceFunction, DeviceFunction]:
    """The function of these real and imaginary parts, in both precisions.

    If ``turned`` the parts are those of a function ``f``, and the result is ``-i f(i z)``.
    """

    def straight(z):
        real, imag = parts(z.real, z.imag)
        return complex(real, imag)

    def quarter(z):
        imag, real = parts(z.imag, z.real)
        return complex(real, imag)

    function = quarter if turned else straight
    function.__name__ = function.__qualname__ = f"{name}_c128"
    wide = DeviceFunction(function)
    return wide, through_complex128(wide)


def _named(narrow: Any, double: DeviceFunction, *, inline: bool) -> DeviceFunction:
    name = double.__name__.replace("f64", "f32").replace("c128", "c64")
    narrow.__name__ = narrow.__qualname__ = name  # linker symbols come from the name
    return DeviceFunction(narrow, inline=inline)
