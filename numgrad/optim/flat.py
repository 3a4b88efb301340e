"""Parameters and their gradients as one real vector, for methods that need dot products of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.node import mark_all_written
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.tensor import Tensor


class FlatParameters:
    """Parameters laid end to end; complex ones count as pairs of real numbers.

    The vector has the widest real dtype among the parameters. ``optimizer`` is named in errors.
    """

    def __init__(self, optimizer: str, params: Sequence[Tensor]) -> None:
        for param in params:
            where = f"{optimizer}.step: a parameter of shape {param.shape}"
            if param.dtype.kind not in "fc":
                raise NumgradTypeError(
                    f"{where} has dtype {param.dtype}; parameters must be float32, float64, "
                    "complex64 or complex128"
                )
            if not param._array.flags.writeable:
                raise NumgradRuntimeError(
                    f"{where} lies in memory that must not be written; optimize a copy"
                )
        self.params = params
        self.dtype = np.result_type(*[_real(param.dtype) for param in params])
        self.size = sum(param.size * _reals(param.dtype) for param in params)

    def values(self) -> np.ndarray:
        """A copy of the parameters."""
        return self._join([param._array for param in self.params])

    def gradient(self) -> np.ndarray:
        """A copy of the gradients: zeros where there is none, and where a row-sparse one has none."""
        return self._join([_dense_gradient(param) for param in self.params])

    def write(self, vector: np.ndarray) -> None:
        """Set the parameters from a vector."""
        stop = 0
        for param in self.params:
            start, stop = stop, stop + param.size * _reals(param.dtype)
            part = vector[start:stop].astype(_real(param.dtype), copy=False)
            param._array[...] = part.view(param.dtype).reshape(param.shape)
        mark_all_written(self.params)

    def _join(self, arrays: list[np.ndarray]) -> np.ndarray:
        flat = [np.ravel(array).view(_real(array.dtype)) for array in arrays]
        return np.concatenate(flat, dtype=self.dtype)


def _real(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part."""
    return np.empty(0, dtype).real.dtype


def _reals(dtype: np.dtype) -> int:
    """Real numbers an element consists of."""
    return 2 if dtype.kind == "c" else 1


def _dense_gradient(param: Tensor) -> np.ndarray:
    grad: Any = param._grad
    if grad is None:
        return np.zeros(param.shape, param.dtype)
    return grad._array.dense() if grad.is_sparse else grad._array
