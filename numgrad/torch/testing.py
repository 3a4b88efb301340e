"""Comparisons and examples for tests: ``torch.testing``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from types import NoneType
from typing import Any

import numpy as np

from numgrad.errors import NumgradAssertionError, NumgradTypeError, NumgradValueError
from numgrad.torch import dtypes, random
from numgrad.torch.missing import refuse
from numgrad.torch.wrapping import Tensor

TOLERANCES = {
    np.dtype("float16"): (1e-3, 1e-5), np.dtype("float32"): (1.3e-6, 1e-5),
    np.dtype("float64"): (1e-7, 1e-7), np.dtype("complex64"): (1.3e-6, 1e-5),
    np.dtype("complex128"): (1e-7, 1e-7),
}  # fmt: skip
"""Relative and absolute tolerances by dtype; others are compared exactly."""
_KINDS: tuple[Any, ...] = Tensor, np.ndarray, Number, np.bool, Mapping, Sequence, NoneType


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
    check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: Any = None,
) -> None:  # fmt: skip
    """Raise unless ``|actual - expected| <= atol + rtol * |expected|``, also in lists and mappings.

    Raises
    ------
    NumgradAssertionError
        With the place of the first difference and the largest one.
    NumgradValueError
        If only one of the tolerances is given.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.testing.assert_close(torch.ones(2) / 3 * 3, torch.ones(2))
    """
    if (rtol is None) != (atol is None):
        raise NumgradValueError("assert_close: give both of rtol and atol, or none of them")
    options = {"equal_nan": equal_nan, "dtype": check_dtype, "stride": check_stride}
    difference = _difference(actual, expected, (rtol, atol), options, "")
    if difference:
        text = msg(difference) if callable(msg) else msg
        raise NumgradAssertionError(text or difference)


def _difference(a: Any, b: Any, tolerances: Any, options: dict[str, Any], where: str) -> str:
    """How two values differ, or nothing."""
    kind: Any = next((kind for kind in _KINDS if isinstance(a, kind) and isinstance(b, kind)), None)
    if kind is None or isinstance(a, str):
        raise NumgradTypeError(
            f"assert_close: {where}compares Tensors, arrays, numbers, None, and sequences and "
            f"mappings of them, got {type(a).__name__} and {type(b).__name__}"
        )
    if kind is Mapping and set(a) != set(b):
        return f"{where}keys {sorted(map(str, a))} are not {sorted(map(str, b))}"
    if kind is Sequence and len(a) != len(b):
        return f"{where}{len(a)} items are not {len(b)}"
    if kind is Mapping or kind is Sequence:
        places = a if kind is Mapping else range(len(a))
        inner = (_difference(a[k], b[k], tolerances, options, f"{where}[{k}]") for k in places)
        return next(filter(None, inner), "")
    if kind is Tensor:
        if options["stride"] and a.stride() != b.stride():
            return f"{where}strides {a.stride()} are not {b.stride()}"
        a, b = (x._tensor.numpy(force=True) for x in (a, b))
    if kind is NoneType:
        return ""
    return _of_arrays(np.asarray(a), np.asarray(b), tolerances, options, where)


def _of_arrays(a: Any, b: Any, tolerances: Any, options: dict[str, Any], where: str) -> str:
    if a.shape != b.shape:
        return f"{where}shape {a.shape} is not {b.shape}"
    if options["dtype"] and a.dtype != b.dtype:
        return f"{where}dtype {a.dtype} is not {b.dtype}"
    rtol, atol = tolerances
    if rtol is None:
        both = [TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (a, b)]
        rtol, atol = map(max, zip(*both, strict=True))
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
        if near.all():
            return ""
        error = np.abs(np.asarray(a, np.result_type(a, 0.0)) - b)
    first = tuple(int(k) for k in np.argwhere(~near)[0])
    return (
        f"{where}{int((~near).sum())} of {near.size} elements differ: {a[first]} is not {b[first]} "
        f"at {first}; the largest difference is {error[~near].max()}, rtol={rtol}, atol={atol}"
    )


def make_tensor(
    *shape: Any, dtype: dtypes.dtype, device: Any = "cpu", low: float | None = None,
    high: float | None = None, requires_grad: bool = False, noncontiguous: bool = False,
    exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Draw a Tensor from the uniform distribution on ``[low, high)``, by default -9 to 9."""
    dtypes.device(device)
    sizes = tuple(shape[0]) if shape and isinstance(shape[0], Sequence) else shape
    sizes = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    if dtype is dtypes.DTYPES["bool"]:
        low, high = 0, 2
    inexact = dtype.is_floating_point or dtype.is_complex
    low = (0 if dtype is dtypes.DTYPES["uint8"] else -9) if low is None else low
    high = (9 if inexact else 10) if high is None else high
    x = random.rand(*sizes, dtype=dtype if inexact else None) * (high - low) + low
    x = x if inexact else x.floor().to(dtype)
    if exclude_zero:
        x[x == 0] = 1
    x = x[..., ::2] if noncontiguous and sizes else x
    return x.requires_grad_(requires_grad)


__getattr__ = refuse(globals())
