"""Making Tensors, with the signatures of the Array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError

CPU = "cpu"


def check_device(name: str, device: Any) -> None:
    """Raise unless a device is None or the one there is."""
    if device not in (None, CPU):
        raise NumgradValueError(f"{name}: device {device!r} is not available; it is 'cpu' or None")


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> ng.Tensor:
    """``obj`` as a Tensor, through which gradients flow; with ``copy=True`` always a copy.

    Examples
    --------
    >>> from numgrad import array_api as xp
    >>> xp.asarray([1, 2], dtype=xp.float32)
    tensor([1., 2.], dtype=float32)
    """
    check_device("asarray", device)
    if isinstance(obj, ng.Tensor):
        same = dtype is None or np.dtype(dtype) == obj.dtype
        if copy is False and not same:
            raise NumgradValueError(
                f"asarray: a Tensor of dtype {obj.dtype} becomes {np.dtype(dtype)} by a copy only; "
                "give copy=None"
            )
        out = obj if same else OPS["astype"](obj, dtype=dtype)
        return OPS["copy"](out) if copy and same else out
    if copy is False and not hasattr(obj, "__array__") and not hasattr(obj, "__buffer__"):
        raise NumgradValueError(f"asarray: a {type(obj).__name__} becomes an array by a copy only")
    if copy is not None and isinstance(obj, np.ndarray):
        obj = np.array(obj, dtype=dtype, copy=copy)
    return ng.asarray(obj, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ng.Tensor:
    """A Tensor over the memory of another library's array, without a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from numgrad import array_api as xp
    >>> xp.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    check_device("from_dlpack", device)
    try:
        array = np.from_dlpack(x, copy=copy)
    except AttributeError:
        raise NumgradTypeError(
            f"from_dlpack: a {type(x).__name__} has no __dlpack__; use asarray"
        ) from None
    except BufferError as error:
        raise NumgradValueError(f"from_dlpack: {error}") from error
    return ng.from_numpy(array)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> ng.Tensor:
    """Evenly spaced numbers from ``start`` up to, not including, ``stop``."""
    check_device("arange", device)
    return ng.arange(start, stop, step, dtype=dtype)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> ng.Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``."""
    check_device("linspace", device)
    return ng.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> ng.Tensor:
    """A matrix with ones on the diagonal ``k`` and zeros elsewhere."""
    check_device("eye", device)
    return ng.eye(n_rows, n_cols, k, dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor whose elements are whatever the memory held."""
    check_device("empty", device)
    return ng.empty(shape, dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor of zeros."""
    check_device("zeros", device)
    return ng.zeros(shape, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor of ones."""
    check_device("ones", device)
    return ng.ones(shape, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor with ``fill_value`` everywhere."""
    check_device("full", device)
    return ng.full(shape, fill_value, dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """Uninitialised memory with the shape and dtype of ``x``."""
    check_device("empty_like", device)
    return ng.empty_like(x, dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """Zeros with the shape and dtype of ``x``."""
    check_device("zeros_like", device)
    return ng.zeros_like(x, dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """Ones with the shape and dtype of ``x``."""
    check_device("ones_like", device)
    return ng.ones_like(x, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """``fill_value`` everywhere, with the shape and dtype of ``x``."""
    check_device("full_like", device)
    return ng.full_like(x, fill_value, dtype)
