"""The memory of Tensors and arrays that is sent and received."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.versions import INFERENCE, mark_written, version_of
from numgrad.core.interpreter import state
from numgrad.errors import (
    NumgradRuntimeError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.tensors.inplace import before_writing
from numgrad.tensors.tensor import Tensor

_CODES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
_DTYPES = {np.dtype(code): np.dtype(code).name for code in _CODES}


class Memory:
    """A Tensor or array that MPI reads, or writes to.

    ``buffer`` is what MPI gets: the memory itself if it is contiguous, else a copy.
    """

    def __init__(self, name: str, tensor: Any, *, writes: bool) -> None:
        if state.ground.deferred or state.interpreters:
            raise NumgradTraceError(
                f"{name}: a function that is traced or mapped (ng.jit, ng.vmap, forward mode) has "
                "no numbers to send yet; communicate outside of it"
            )
        if isinstance(tensor, Tensor):
            array = tensor._array
            if tensor.requires_grad and state.grad_enabled and (writes or tensor.grad_fn):
                raise NumgradRuntimeError(
                    f"{name}: communication is not recorded, and the tensor of shape "
                    f"{tensor.shape} requires grad; give tensor.detach(), which shares its memory, "
                    "or communicate under ng.no_grad()"
                )
        elif isinstance(tensor, np.ndarray) and not isinstance(tensor, np.ma.MaskedArray):
            array = tensor
        else:
            raise NumgradTypeError(
                f"{name}: takes a Tensor or an ndarray, got {type(tensor).__name__}"
            )
        if array.dtype not in _DTYPES or not array.dtype.isnative:
            raise NumgradTypeError(
                f"{name}: cannot send dtype {array.dtype}; there are bool, integers, float32, "
                "float64, complex64 and complex128"
            )
        if writes and not array.flags.writeable:
            raise NumgradValueError(f"{name}: the array of shape {array.shape} is read-only")
        self.tensor, self.array = tensor, array
        self._writes = writes
        self.buffer = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        if writes and isinstance(tensor, Tensor):
            before_writing((tensor,))

    @property
    def said(self) -> str:
        """Dtype and shape."""
        return f"{_DTYPES[self.array.dtype]} {self.array.shape}"

    @property
    def flat(self) -> np.ndarray:
        """Array for MPI; booleans as bytes."""
        flat = self.buffer.reshape(-1)
        return flat.view(np.uint8) if flat.dtype.kind == "b" else flat

    def written(self) -> None:
        """Take note that MPI wrote."""
        if self.buffer is not self.array:
            self.array[...] = self.buffer
        if isinstance(self.tensor, Tensor) and version_of(self.tensor) is not INFERENCE:
            mark_written(self.tensor)


def joined(tensors: Sequence[Tensor]) -> np.ndarray:
    """The elements of Tensors of one dtype one after another, a copy."""
    return np.concatenate([t._array.reshape(-1) for t in tensors])


@no_grad()
def spread(flat: np.ndarray, tensors: Sequence[Tensor]) -> None:
    """Put what ``joined`` made elsewhere in place of Tensors."""
    start = 0
    for tensor in tensors:
        part = flat[start : start + tensor.size].reshape(tensor.shape)
        tensor.detach().copy_(Tensor(part))
        start += tensor.size


def listed(
    name: str, what: str, tensors: Any, count: int, like: Memory | None = None, *, writes: bool
) -> list[Memory]:
    """The memory of a list of Tensors, one a rank, that all are like one.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If it is no list, has another length, or something in it is different.
    """
    if not isinstance(tensors, list | tuple):
        raise NumgradTypeError(
            f"{name}: {what} is a list with a tensor for each rank, got {type(tensors).__name__}"
        )
    if len(tensors) != count:
        raise NumgradValueError(
            f"{name}: {what} has {len(tensors)} tensors, and the group {count} ranks"
        )
    memories = [Memory(name, tensor, writes=writes) for tensor in tensors]
    for position, memory in enumerate(memories):
        if like is not None and memory.said != like.said:
            raise NumgradValueError(
                f"{name}: {what}[{position}] is {memory.said}, and the tensor {like.said}; they "
                "must be equal"
            )
    return memories


def scatter_back(rows: np.ndarray, targets: Sequence[Memory]) -> Callable[[], None]:
    """Make a function that copies rows which MPI wrote to their Tensors."""

    def finish() -> None:
        for row, target in zip(rows, targets, strict=True):
            target.flat[...] = row
            target.written()

    return finish
