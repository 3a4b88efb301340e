"""Memory of large results that nobody holds any more, kept for the next call.

The C library gives blocks above 32 MiB back to the system as soon as they are free, and the next
array of that size is fetched page by page, which takes as long as a pass over it. So a compiled
function keeps the array that it returned last, and returns it again once the caller has let it go.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

SMALLEST, LARGEST = 32 * 1024 * 1024, 512 * 1024 * 1024
"""Bytes of results that are kept; the C library keeps smaller ones itself."""
_OURS = 3
"""References to an array that nobody else holds: the attribute, the variable, the question."""


class Reused:
    """Makes the array of one large result."""

    __slots__ = ("_dtype", "_kept")

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self._kept: np.ndarray | None = None

    def __call__(self, shape: Any) -> np.ndarray:
        """An array of this shape, with whatever is in its memory."""
        kept = self._kept
        if kept is not None and sys.getrefcount(kept) == _OURS and kept.shape == shape:
            return kept
        out = np.empty(shape, self._dtype)
        self._kept = out if SMALLEST <= out.nbytes <= LARGEST else None
        return out
