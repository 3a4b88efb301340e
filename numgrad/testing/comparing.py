"""``assert_close``: nested values compared with the tolerances of their dtypes."""

from __future__ import annotations

from numbers import Number
from types import NoneType
from typing import Any

import numpy as np

from numgrad.core import tree
from numgrad.errors import NumgradAssertionError, NumgradTypeError, NumgradValueError

TOLERANCES = {
    np.dtype("float16"): (1e-3, 1e-5), np.dtype("float32"): (1.3e-6, 1e-5),
    np.dtype("float64"): (1e-7, 1e-7), np.dtype("complex64"): (1.3e-6, 1e-5),
    np.dtype("complex128"): (1e-7, 1e-7),
}  # fmt: skip
"""Relative and absolute tolerances by dtype, as PyTorch has them; others are compared exactly."""


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_dtype: bool = True, check_stride: bool = False, msg: Any = None,
) -> None:  # fmt: skip
    """Raise unless ``|actual - expected| <= atol + rtol * |expected|``, for each of nested values.

    Parameters
    ----------
    actual, expected
        Tensors, arrays, numbers and None, in the same nesting of containers.
    rtol, atol
        Tolerances; by default those of the less exact dtype, such as 1.3e-6 and 1e-5 of float32,
        1e-7 twice of float64; integers and booleans have to be equal.
    equal_nan
        Whether NaN is close to NaN.
    check_dtype, check_stride
        Whether dtypes, and strides of Tensors and arrays, have to be the same.
    msg
        The text of the error, or a function that makes it of the one that there would be.

    Raises
    ------
    NumgradAssertionError
        With the place of the first difference and the largest one.
    NumgradTypeError
        If values are of different or other kinds.
    NumgradValueError
        If only one of the tolerances is given.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.testing.assert_close({"w": ng.ones(2) / 3 * 3}, {"w": ng.ones(2)})
    """
    if (rtol is None) != (atol is None):
        raise NumgradValueError("assert_close: give both of rtol and atol, or none of them")
    left: list[Any] = []
    right: list[Any] = []
    nesting = tree.flatten(expected, right)
    elsewhere = tree.align(nesting, actual, left, "")
    if (nesting is None) != (tree.container_of(type(actual)) is None):
        left, elsewhere = [actual], None  # a container and a leaf: kinds that do not fit
        right, nesting = [expected], None
    if elsewhere is not None:
        difference = f"{elsewhere or 'the values'}: nested otherwise than expected"
        raise NumgradAssertionError(_text(msg, difference))
    options = (rtol, atol), equal_nan, check_dtype, check_stride
    for a, b, place in zip(left, right, tree.paths(nesting, ""), strict=True):
        difference = _difference(a, b, *options)
        if difference:
            raise NumgradAssertionError(_text(msg, f"{place}: {difference}".lstrip(": ")))


def _text(msg: Any, difference: str) -> Any:
    return (msg(difference) if callable(msg) else msg) or difference


def _kind(value: Any) -> Any:
    if hasattr(value, "detach"):
        return "Tensor"
    kinds: Any = np.ndarray, (Number, np.bool), NoneType
    return next((kind for kind in kinds if isinstance(value, kind)), None)


def _difference(
    a: Any, b: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, check_stride: bool
) -> str:
    """How two values differ, or nothing."""
    kind = _kind(a)
    if kind is None or kind != _kind(b):
        raise NumgradTypeError(
            "assert_close: compares Tensors, arrays, numbers, None, and containers of them, got "
            f"{type(a).__name__} and {type(b).__name__}"
        )
    if kind is NoneType:
        return ""
    a, b = (np.asarray(x.detach() if kind == "Tensor" else x) for x in (a, b))
    if a.shape != b.shape:
        return f"shape {a.shape} is not {b.shape}"
    if check_stride and a.strides != b.strides:
        return f"strides {a.strides} are not {b.strides}"
    if check_dtype and a.dtype != b.dtype:
        return f"dtype {a.dtype} is not {b.dtype}"
    rtol, atol = tolerances
    if rtol is None:
        both = [TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (a, b)]
        rtol, atol = map(max, zip(*both, strict=True))
    with np.errstate(all="ignore"):
        near = a == b
        if rtol or atol or equal_nan:
            near = near | np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if near.all():
            return ""
        error = np.abs(np.asarray(a, np.result_type(a, 0.0)) - b)
    first = tuple(int(k) for k in np.argwhere(~near)[0])
    return (
        f"{int((~near).sum())} of {near.size} elements differ: {a[first]} is not {b[first]} "
        f"at {first}; the largest difference is {error[~near].max()}, rtol={rtol}, atol={atol}"
    )
