"""What is compared of arrays around a function that are no inputs of what was compiled."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.variable import Tensor

SMALL = 4096
"""Bytes of an array that are compared at each call."""


class Content:
    """What plain NumPy may have read of an array.

    Another is as good as a small one by its numbers, as a large one if it is the same; of a Tensor
    only the shape can be read while a function is traced. ``whole`` compares the numbers of any.
    """

    def __init__(self, array: np.ndarray | Tensor, *, whole: bool = False) -> None:
        self.kind: Any = type(array)
        self.shape, self.dtype = array.shape, array.dtype
        self.numbers = self.array = None
        if isinstance(array, np.ndarray):
            if whole or array.nbytes <= SMALL:
                self.numbers = array.tobytes()
            else:
                self.array = ref(array)

    def __call__(self, found: Any) -> bool:
        """Whether what is there now is as good as what was."""
        return (
            type(found) is self.kind
            and found.shape == self.shape
            and found.dtype == self.dtype
            and (self.numbers is None or found.tobytes() == self.numbers)
            and (self.array is None or found is self.array())
        )
