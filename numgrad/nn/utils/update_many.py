"""In-place updates of many Tensors by one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.autograd.versions import INFERENCE, mark_all_written, version_of
from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import addresses
from numgrad.core.interpreter import state
from numgrad.kernels.multi_tensor import UpdateKernel, update_kernel
from numgrad.tensors.tensor import Tensor


def update_many(
    formula: Callable[..., dict[str, Any]], columns: Sequence[Sequence[Tensor]], number: float
) -> list[int]:
    """Apply an update formula to Tensors, one launch for each dtype.

    Parameters
    ----------
    formula
        A function of one symbol for each column, by the names of its parameters, and of a number;
        returns ``{name: new value}`` for the first.
    columns
        The Tensors that are changed, and, in the same order, those that are read. Complex ones are
        pairs of reals.
    number
        The last argument of the formula.

    Returns
    -------
    list
        The positions of Tensors that were left alone and need operations of their own: layouts that
        the kernel does not take, dtypes that differ between columns, a Tensor that is there twice
        or was made in inference mode; all of them where operations are watched (forward mode).
    """
    watched = state.interpreters or state.mutation is not None
    if watched or len(set(map(id, columns[0]))) < len(columns[0]):
        return list(range(len(columns[0])))
    by_dtype: dict[np.dtype, list[int]] = {}
    for k, tensor in enumerate(columns[0]):
        by_dtype.setdefault(tensor.dtype, []).append(k)
    left = []
    for dtype, members in by_dtype.items():
        arrays = [column[k]._array for column in columns for k in members]
        found = None
        if dtype.kind in "fc" and all(version_of(columns[0][k]) is not INFERENCE for k in members):
            # a second column is only read
            found = addresses(arrays, len(members), len(columns), 1, dtype)
        if found is None:
            left += members
            continue
        kernel = _kernel(formula, np.finfo(dtype).dtype)
        run = threads.choose(
            kernel.entry,
            partial(kernel.entry, True),
            kernel.work_ns(found.total),
            partial(kernel.entry, False, True),
        )
        run(found.pointers, found.starts, number)
        mark_all_written([columns[0][k] for k in members])
    return left


@cache
def _kernel(formula: Callable[..., dict[str, Any]], dtype: np.dtype) -> UpdateKernel:
    code = formula.__code__
    *elements, number = code.co_varnames[: code.co_argcount]
    return update_kernel(formula, elements, (), (number,), {}, dtype)
