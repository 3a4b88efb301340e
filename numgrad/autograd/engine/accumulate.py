"""Adding gradients: in the engine's buffers, and into ``.grad``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.node import mark_written
from numgrad.autograd.row_sparse import as_tensor
from numgrad.autograd.variable import Tensor, gradient_of, set_gradient
from numgrad.codegen.locks import GRADIENTS
from numgrad.core.op import OPS

SMALL = 16384
"""Elements up to which NumPy's addition is faster than choosing among our kernels."""


def add(a: Any, b: Any) -> Any:
    """A new array with the sum of two gradients; row-sparse ones know how ``np.add`` adds them."""
    if a.size > SMALL and type(a) is np.ndarray and type(b) is np.ndarray:
        return OPS["add"].run((a, b), {})[0]
    total = np.add(a, b)
    return total if a.ndim else np.asarray(total)  # NumPy adds 0-d arrays to a scalar


def add_into(buffer: Any, g: Any) -> Any:
    """Add to a buffer the engine owns; the sum, which is the buffer unless that is row-sparse."""
    if (
        buffer.size > SMALL
        and type(buffer) is np.ndarray
        and type(g) is np.ndarray
        and buffer.flags.c_contiguous
        and g.flags.c_contiguous
    ):
        flat = buffer.ravel()
        add_op: Any = OPS["add"]
        add_op.plan((buffer, g)).entry(flat, g.ravel(), flat)
        return buffer
    return np.add(buffer, g, buffer)


def accumulate(found: Iterable[Sequence[Any]]) -> None:
    """Add gradients to the ``.grad`` of tensors: ``(tensor, gradient, owned)`` each.

    A gradient is an array, or with ``create_graph`` a Tensor; None is passed over. ``owned`` says
    that nothing else holds the array, so that it can become the ``.grad``. A leaf that was frozen
    after the forward gets none.
    """
    with GRADIENTS:
        for tensor, g, owned in found:
            if g is not None and tensor._requires_grad:
                _add_to(tensor, g, owned)


def _add_to(tensor: Tensor, g: Any, owned: bool) -> None:
    present = gradient_of(tensor)
    if isinstance(g, Tensor):
        set_gradient(tensor, OPS["positive"](g) if present is None else present + g)
        return
    if present is not None:
        total = add_into(present._array, g)
        if total is present._array:
            mark_written(present)  # some node may have saved it
        elif isinstance(total, np.ndarray):
            tensor._grad = Tensor(total)
        else:
            present._array = total
        return
    if not owned or g.base is not None:
        g = g.copy()
    dtype = tensor._array.dtype
    if g.dtype is not dtype and g.dtype != dtype:
        g = g.astype(dtype)
    tensor._grad = as_tensor(g)
