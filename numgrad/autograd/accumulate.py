"""Adding gradients: in the engine's buffers, and into ``.grad``."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

import numpy as np

from numgrad.autograd.node import mark_written
from numgrad.autograd.variable import Tensor
from numgrad.op.base import OPS

SMALL = 16384
"""Elements up to which NumPy's addition is faster than choosing among our kernels."""

_LOCKS = [Lock() for _ in range(64)]
"""Locks of the leaves, each shared by a 64th of them: threads may accumulate into one leaf."""


def _after_fork_in_child() -> None:
    """Forget locks held by threads that the child does not have."""
    _LOCKS[:] = [Lock() for _ in _LOCKS]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A new array with the sum of two gradients."""
    if a.size > SMALL:
        return OPS["add"].run((a, b), {})[0]
    total = np.add(a, b)
    return total if a.ndim else np.asarray(total)  # NumPy adds 0-d arrays to a scalar


def add_into(buffer: np.ndarray, g: np.ndarray) -> None:
    """Add to a buffer the engine owns."""
    if buffer.size > SMALL and buffer.flags.c_contiguous and g.flags.c_contiguous:
        flat = buffer.ravel()
        add_op: Any = OPS["add"]
        add_op.plan((buffer, g)).entry(flat, g.ravel(), flat)
    else:
        np.add(buffer, g, out=buffer)


def accumulate(leaf: Tensor, g: Any, owned: bool) -> None:
    """Add a gradient to ``leaf.grad``: an array, or with ``create_graph`` a Tensor.

    ``owned`` says that nobody else holds the array, so that it can become the ``.grad``. A leaf
    that was frozen after the forward gets none.
    """
    if not leaf._requires_grad:
        return
    with _LOCKS[id(leaf) >> 6 & 63]:
        present = leaf._grad
        if isinstance(g, Tensor):
            leaf._grad = OPS["positive"](g) if present is None else present + g
            return
        array = leaf._array
        if present is None:
            if not owned or g.base is not None:
                g = g.copy()
            if g.dtype is not array.dtype and g.dtype != array.dtype:
                g = g.astype(array.dtype)
            leaf._grad = Tensor(g)
        else:
            add_into(present._array, g)
            mark_written(present)  # some node may have saved it
