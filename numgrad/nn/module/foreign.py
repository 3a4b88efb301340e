"""Arrays of other libraries in a dictionary of states, taken without importing these libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradTypeError


def is_array(value: Any) -> bool:
    """Whether a value is a Tensor, an ndarray, or an array of another library."""
    return isinstance(value, Tensor | np.ndarray) or (
        hasattr(type(value), "__array__") and not isinstance(value, np.generic | RowSparseTensor)
    )


def array_of(value: Any) -> np.ndarray:
    """The elements of what ``is_array``, in the same memory where the other library allows it.

    Raises
    ------
    NumgradTypeError
        If the value gives no array of numbers; the message begins with what it is.
    """
    if isinstance(value, Tensor):
        return value.detach().numpy()
    detach = getattr(value, "detach", None)  # PyTorch gives no array of what requires grad
    try:
        array = np.asarray(value if detach is None else detach())
    except Exception as error:
        raise NumgradTypeError(
            f"is a {_kind(value)} that gives no ndarray ({error}); convert it first"
        ) from None
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"is a {_kind(value)} of dtype {array.dtype}, which is not one of numbers here; "
            "convert it first"
        )
    return array


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind is np.ndarray else f"{kind.__module__}.{kind.__qualname__}"
