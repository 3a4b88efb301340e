"""Comparisons and examples for tests: ``torch.testing``."""

from __future__ import annotations

from typing import Any

from numgrad import testing as base
from numgrad.torch import dtypes, random
from numgrad.torch.creation import check_options
from numgrad.torch.missing import refuse
from numgrad.torch.wrapping import Tensor


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, check_device: bool = True,
    check_layout: bool = True, **options: Any,
) -> None:  # fmt: skip
    """Raise unless nested values are close: ``ng.testing.assert_close``.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.testing.assert_close(torch.ones(2) / 3 * 3, torch.ones(2))
    """
    base.assert_close(actual, expected, **options)


def make_tensor(
    *shape: Any, dtype: dtypes.dtype, device: Any = "cpu", low: float | None = None,
    high: float | None = None, requires_grad: bool = False, noncontiguous: bool = False,
    exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Draw a Tensor from the uniform distribution on ``[low, high)``, by default -9 to 9."""
    check_options("make_tensor", device)
    sizes, inexact = dtypes.sizes(shape), dtype.category >= dtypes.FLOAT
    sizes = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    least, most = (-9 if dtype.is_signed else 0), (9 if inexact else 10)
    low, high = least if low is None else low, most if high is None else high
    low, high = (0, 2) if dtype.category == dtypes.BOOL else (low, high)
    x = random.rand(*sizes, dtype=dtype if inexact else None) * (high - low) + low
    x = x if inexact else x.floor().to(dtype)
    x = x[..., ::2] if noncontiguous and sizes else x
    if exclude_zero:
        x[x == 0] = 1
    return x.requires_grad_(requires_grad)


__getattr__ = refuse(globals())
