"""The dtypes that kernels have, their names in generated source, and how NumPy promotes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError

KERNEL_DTYPES = tuple(
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    )
)  # fmt: skip
_KERNEL_DTYPES = frozenset(KERNEL_DTYPES)

_NAMES = {dtype: ("boolean" if dtype.kind == "b" else dtype.name) for dtype in KERNEL_DTYPES}
BOOL, INT64, FLOAT32, FLOAT64, COMPLEX64 = (
    np.dtype(n) for n in ("bool", "int64", "float32", "float64", "complex64")
)


def type_name(dtype: np.dtype) -> str:
    """Numba's name of a dtype."""
    return _NAMES[dtype]


def short(dtype: np.dtype) -> str:
    """Kind and size in two or three characters, as in NumPy's codes: ``f8``, ``c16``, ``b1``."""
    return f"{dtype.kind}{dtype.itemsize}"


def kernel_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype a kernel computes in where NumPy's rules give ``dtype``.

    NumPy gives float16 for functions of 8-bit integers; there are no float16 kernels, so float32.
    It compares two Python integers as objects, of any size.
    """
    if dtype.kind == "O":
        return INT64
    return FLOAT32 if dtype == np.float16 else dtype


def check_dtype(operation: str, dtype: np.dtype) -> None:
    """Raise unless kernels exist for ``dtype``."""
    if dtype not in _KERNEL_DTYPES:
        if dtype.newbyteorder("=") in _KERNEL_DTYPES:
            raise NumgradTypeError(
                f"{operation}: dtype {dtype} has bytes in the other order than this machine; "
                f"convert with astype(np.{dtype.name})"
            )
        raise NumgradTypeError(
            f"{operation}: no kernels for dtype {dtype}; convert with astype to one of "
            f"{', '.join(d.name for d in KERNEL_DTYPES)}"
        )


def native(array: np.ndarray) -> np.ndarray:
    """The same numbers with bytes in this machine's order; files of other machines have others."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def convert(x: np.ndarray, dtype: np.dtype, **options: Any) -> np.ndarray:
    """``x.astype(dtype, **options)``, with the same integers on every CPU.

    C leaves a float out of an integer's range undefined, so NumPy's results differ between CPUs
    there. Kernels convert as ``kernels.vmath.scalar`` says, and so does this.
    """
    result = x.astype(dtype, **options)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        limit = 2.0 ** (8 * dtype.itemsize - (dtype.kind == "i"))
        inside = (x > -1.0) & (x < limit) if dtype.kind == "u" else (x >= -limit) & (x < limit)
        if not inside.all():
            np.copyto(result, _wrapped(x.astype(FLOAT64), dtype), where=~inside)
    return result


def _wrapped(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers of float64 in and out of range: those of ``kernels.vmath.scalar``."""
    bits = max(8 * dtype.itemsize, 32)
    half = 2.0 ** (bits - 1)
    above = (x >= half) & (dtype.kind == "u" and dtype.itemsize >= 4)
    x = np.where(above, x - half, x)
    lower = -half if bits == 64 else np.nextafter(-half - 1.0, 0.0)
    signed = np.where((x >= lower) & (x < half), x, -half).astype(f"i{bits // 8}")
    return np.where(above, signed ^ np.iinfo(signed.dtype).min, signed).astype(dtype)


def resolve(
    rule: np.ufunc | Callable[..., Any], operands: Sequence[np.dtype | type]
) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of the operands inside of a loop, and of its result.

    The rule is NumPy's for a ufunc, or a function of the operands that returns both. ``operands``
    are dtypes, or ``int``, ``float``, ``complex`` for Python numbers.
    """
    if not isinstance(rule, np.ufunc):
        inputs, output = rule(operands)
        return [kernel_dtype(d) for d in inputs], kernel_dtype(output)
    try:
        *inputs, output = rule.resolve_dtypes((*operands, None))
    except TypeError as error:
        names = ", ".join(getattr(o, "name", getattr(o, "__name__", str(o))) for o in operands)
        raise NumgradTypeError(
            f"{rule.__name__}: not defined for {names}; convert with astype first"
        ) from error
    return [kernel_dtype(d) for d in inputs], kernel_dtype(output)


def numpy_name(dtype: np.dtype) -> str:
    """A dtype as generated code spells it."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"
