"""Update formulas on the rows that a row-sparse gradient has, and on no others.

Note [Rows as tensors]
----------------------
The kernel of an update steps tensors that lie anywhere in memory. A row of a parameter with the
same row of each state array is such a tensor, so one launch steps all rows of a gradient in place,
by the formula that steps whole tensors. Uniform values (a count of steps) are the parameter's, so
a variant of the kernel reads and writes them once.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from numgrad.codegen import threads
from numgrad.core.row_sparse import RowSparseArray
from numgrad.kernels.multi_tensor import UpdateKernel


def update_rows(
    kernel: UpdateKernel,
    numbers: list[float],
    param: np.ndarray,
    grad: RowSparseArray,
    elements: list[np.ndarray],
    uniforms: list[np.ndarray],
) -> None:
    """Apply a formula to the rows of ``grad``: Note [Rows as tensors].

    Parameters
    ----------
    kernel, numbers
        The formula, compiled for shared uniform values, and its numbers.
    param, elements
        Parameter and states of its shape, all of the dtype of the gradient.
    grad
        Coalesced.
    uniforms
        States of one number.
    """
    values = grad.values
    rows = grad.indices if len(values) else np.zeros(1, np.int64)  # one without elements
    reals = values.size * (2 if values.dtype.kind == "c" else 1)
    arrays = (param, *elements)
    plain = [np.require(a, None, ("C", "A")) for a in arrays]
    each = np.arange(rows.size + 1)
    pointers = np.empty((2 + len(elements) + len(uniforms), rows.size), np.int64)
    columns = [(plain[0], rows), (values, each[:-1]), *[(a, rows) for a in plain[1:]]]
    for k, (array, which) in enumerate(columns):
        np.add(_address(array), which * array.strides[0], out=pointers[k])
    for k, array in enumerate(uniforms):
        pointers[len(columns) + k] = _address(array)
    run = threads.choose(
        kernel.entry,
        partial(kernel.entry, True),
        kernel.work_ns(reals),
        partial(kernel.entry, False, True),
    )
    run(pointers, each * (reals // rows.size), *numbers)
    for array, copy in zip(arrays, plain, strict=True):
        if copy is not array:
            array[rows] = copy[rows]


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
