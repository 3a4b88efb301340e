"""What a node keeps for its backward, and the check that nobody changed it meanwhile.

Note [Guards]
-------------
A saved Tensor is checked by its version. A user's ndarray has none: up to 32 KiB it is copied;
above that a fingerprint of sampled elements is kept and compared when a backward reads it. So it
is for any Tensor over a user's memory (``ng.asarray``), which must stay the same object.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradRuntimeError

COPY_BYTES = 32 * 1024
_SAMPLES = 509  # prime, so that a stride seldom meets a period of the data


class Guard:
    """A user's array with the fingerprint of its content at the time it was saved."""

    __slots__ = ("array", "fingerprint", "tensor")

    def __init__(self, array: np.ndarray, tensor: Tensor | None = None) -> None:
        self.array, self.tensor = array, tensor
        self.fingerprint = _fingerprint(array)

    def check(self, operation: str) -> None:
        if _fingerprint(self.array) != self.fingerprint:
            raise NumgradRuntimeError(
                f"{operation}: the backward needs the array of shape {self.array.shape} and dtype "
                f"{self.array.dtype} as it was when the operation ran, but its owner changed it "
                "since; pass a copy, or change it after backward()"
            )


def _fingerprint(array: np.ndarray) -> bytes:
    if array.size <= _SAMPLES:
        return array.tobytes()
    step = array.size // _SAMPLES
    if array.flags.c_contiguous:
        return array.ravel()[::step].tobytes() + array.ravel()[-1:].tobytes()
    return array.flat[::step].tobytes()


def guarded_array(array: np.ndarray) -> Any:
    """A user's ndarray as a node keeps it."""
    if not array.flags.writeable and array.base is None:
        return array
    if array.nbytes <= COPY_BYTES:
        return array.copy()
    return Guard(array)


def guarded_tensor(tensor: Tensor) -> Any:
    """A Tensor over a user's memory as a node keeps it."""
    array = tensor._array
    if not array.flags.writeable and array.base is None:
        return tensor
    return Guard(array, tensor)


def stale(operation: str, tensor_shape: tuple[int, ...], what: str, version: int) -> None:
    """Raise for a saved tensor that was changed in place."""
    raise NumgradRuntimeError(
        f"{operation}: the backward needs {what} of shape {tensor_shape}, but an in-place "
        f"operation changed it after it was saved (it is at version {version} now); clone it "
        "before the change, or use the operation that returns a new tensor"
    )
