"""Dtypes that functions of floats convert their operands to, and those of their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.codegen.library import COMPLEX_LIBRARY, REAL_BESIDE
from numgrad.errors import NumgradTypeError


def _common(operands: Sequence[Any]) -> np.dtype:
    """The common dtype; Python numbers are weak."""
    return np.result_type(*[np.empty(0, o) if isinstance(o, np.dtype) else o(0) for o in operands])


def is_complex(operand: Any) -> bool:
    """Of a dtype, or the type of a Python number."""
    return operand is complex or getattr(operand, "kind", "") == "c"


def dtype_or_type(value: Any) -> Any:
    """What dtype rules take: the dtype of an array, the type of a Python number."""
    return getattr(value, "dtype", type(value))


def _promoted(name: str, operands: Sequence[Any]) -> np.dtype:
    """The common dtype of real operands."""
    dtype = _common(operands)
    if dtype.kind == "c":
        raise NumgradTypeError(
            f"{name}: defined for real operands only, got {dtype}; apply it to real() and imag()"
        )
    return dtype


def floating(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Loop and result dtypes of a real function: integers become floating."""
    (dtype,), _ = resolve(np.sqrt, [_promoted(name, operands)])
    return [dtype] * len(operands), dtype


def kept(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of a function that compares with the integer 0 and keeps integers."""
    dtype = _promoted(name, [*operands, int])
    return [dtype] * len(operands), dtype


def _complex(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype] | None:
    """Dtypes where some operand is complex: kernels compute in complex128."""
    if not any(map(is_complex, operands)):
        return None
    dtype, beside = _common(operands), REAL_BESIDE[name]
    if any(map(is_complex, operands[:beside])):
        raise NumgradTypeError(
            f"{name}: only the last operand may be complex; apply real() to those before it"
        )
    real, complex_ = np.dtype(np.float64), np.dtype(np.complex128)
    return [real] * beside + [complex_] * (len(operands) - beside), dtype


def _of_either(rule: Any, name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of a function that takes complex operands too, by ``rule`` where none is."""
    return _complex(name, operands) or resolve(rule, operands)


def by_library(name: str, rule: Any = None) -> dict[str, Any]:
    """Options of an operation of which the kernel library may have a form for complex numbers.

    ``rule`` has the dtypes of real operands, by default ``floating``.
    """
    rule = rule or partial(floating, name)
    if name not in COMPLEX_LIBRARY:
        return {"types": rule, "real": True}
    return {
        "types": partial(_of_either, rule, name),
        "real": False,
        "holomorphic": True,
        "real_beside": REAL_BESIDE[name],
    }
