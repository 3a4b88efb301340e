"""The norm of all elements of several gradients.

Note [Norms that do not overflow]
---------------------------------
The squares of 1e200 overflow, those of 1e-200 vanish, and the norm does neither. The plain sum
of powers is right wherever it is finite and well above what underflow may have lost; elsewhere the
elements are scaled by their largest magnitude first.

Squares of all gradients of one dtype are summed by one kernel, in float64. For other orders the
norm of each gradient is an operation, and these are put together in float64 in their order. Either
way the total is the same bit by bit for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.core.interpreter import state
from numgrad.core.options import Option
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.kernels.multi_tensor_norm import sum_of_squares
from numgrad.operations.norm import vector_norm
from numgrad.operations.reduce import max as largest
from numgrad.tensors.tensor import Tensor

Gradient: TypeAlias = Tensor | RowSparseTensor

_ORDER = Option(name="norm_type", annotation="float")


def total_norm(
    name: str, tensors: Sequence[Gradient], order: float, error_if_nonfinite: bool
) -> float:
    """The norm of that order; ``name`` is the function that was called.

    Raises
    ------
    NumgradTypeError
        If a dtype is neither floating nor complex.
    NumgradRuntimeError
        With ``error_if_nonfinite``, if the norm is NaN or infinite.
    """
    _ORDER.check(name, order)
    order = float(order)
    if state.ground.deferred:
        return _later(name, tensors, order, error_if_nonfinite)
    arrays = [
        t.coalesce().values._array if isinstance(t, RowSparseTensor) else t._array for t in tensors
    ]
    by_dtype: dict[np.dtype, list[np.ndarray]] = {}
    for array in arrays:
        by_dtype.setdefault(array.dtype, []).append(array)
    for dtype in by_dtype:
        if dtype.kind not in "fc":
            raise NumgradTypeError(
                f"{name}: a norm is that of floating or complex numbers, got dtype {dtype}"
            )
    with no_grad():
        if order == 2:
            total = _euclidean(by_dtype)
        elif order == 0:
            total = math.fsum(_norm(Tensor(a), order) for a in arrays if a.size)
        else:
            norms = [_norm(Tensor(a), order) for a in arrays if a.size]
            total = _norm(Tensor(np.array(norms)), order) if norms else 0.0
    if error_if_nonfinite and not math.isfinite(total):
        raise NumgradRuntimeError(
            f"{name}: the norm of order {order} of {len(tensors)} gradients is {total}; find out "
            "where they stop to be finite (ng.autograd.detect_anomaly), or pass "
            "error_if_nonfinite=False"
        )
    return total


def _later(name: str, tensors: Sequence[Gradient], order: float, error_if_nonfinite: bool) -> Any:
    """The norm in a function that is being compiled: computed at each call, as here."""

    def compute(*arrays: np.ndarray) -> tuple[np.ndarray]:
        total = total_norm(name, [Tensor(a) for a in arrays], order, error_if_nonfinite)
        return (np.array(total),)

    (total,) = state.ground.called(compute, tensors, [((), np.dtype(np.float64))])
    return total


def _euclidean(by_dtype: dict[np.dtype, list[np.ndarray]]) -> float:
    def root(factor: float) -> float:
        sums = [sum_of_squares(arrays, dtype, factor) for dtype, arrays in by_dtype.items()]
        return math.sqrt(sum(sums))

    every = [array for arrays in by_dtype.values() for array in arrays if array.size]
    plain = root(1.0)
    size = sum([array.size for array in every])
    if math.isnan(plain) or _is_exact(plain, size, np.dtype(np.float64), 2):
        return plain
    scale = max([largest(abs(Tensor(array))).item() for array in every], default=0.0)
    if scale == 0 or math.isinf(scale):
        return scale
    factor = 2.0 ** max(-1000, min(1000, -math.frexp(scale)[1]))
    return root(factor) / factor


def _norm(x: Tensor, order: float) -> float:
    plain = vector_norm(x, ord=order).item()
    if order <= 0 or math.isinf(order) or _is_exact(plain, x.size, x.dtype, order):
        return plain
    scale = largest(abs(x)).item()
    if scale == 0 or not math.isfinite(scale):
        return scale
    return scale * vector_norm(x / scale, ord=order).item()


def _is_exact(total: float, size: int, dtype: np.dtype, order: float) -> bool:
    """Whether no power in the sum of them overflowed, and what underflowed does not count."""
    limits = np.finfo(dtype)
    lost = (size * float(limits.tiny) / float(limits.eps)) ** (1 / order)
    return lost < total < math.inf
