"""What is compared of arrays around a function that plain NumPy may have read."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.variable import Tensor

SMALL = 4096
"""Bytes of an array that are copied before a function is traced."""
LARGE = 1 << 26
"""Bytes of an array up to which all of its numbers are compared."""
_BLOCK = 1 << 18
"""Bytes that are compared at once, in the processor's cache."""


class Content:
    """What plain NumPy may have read of an array.

    Another is as good as one by its numbers; as a very large one if it is the same and a sample of
    its numbers is; of a Tensor only the shape can be read while a function is traced. Without
    ``whole``, only a small one is compared by its numbers.
    """

    def __init__(self, array: np.ndarray | Tensor, *, whole: bool = False) -> None:
        self.kind: Any = type(array)
        self.shape, self.dtype = array.shape, array.dtype
        self.numbers = self.array = None
        if isinstance(array, np.ndarray):
            if array.nbytes > (LARGE if whole else SMALL):
                self.array = ref(array)
            if whole or array.nbytes <= SMALL:
                self.numbers = list(_blocks(array))

    def __call__(self, found: Any) -> bool:
        """Whether what is there now is as good as what was."""
        return (
            type(found) is self.kind
            and found.shape == self.shape
            and found.dtype == self.dtype
            and (self.array is None or found is self.array())
            and (self.numbers is None or all(map(bytes.__eq__, self.numbers, _blocks(found))))
        )


def _blocks(array: np.ndarray) -> Any:
    """The numbers, or a sample of those of a very large array, block by block."""
    if type(array) is not np.ndarray:  # whose methods may do otherwise: a masked array fills them
        parts = [array.view(np.ndarray), np.asarray(getattr(array, "_mask", ()))]
        return (block for part in parts for block in _blocks(part))
    if array.nbytes <= _BLOCK:
        return (array.tobytes(),)
    if array.nbytes > LARGE:
        return (array.flat[:: array.nbytes // _BLOCK].tobytes(),)
    flat, count = array.reshape(-1), _BLOCK // array.itemsize
    return (flat[start : start + count].tobytes() for start in range(0, flat.size, count))
