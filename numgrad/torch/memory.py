"""Memory of Tensors: strides, orders of axes, and storages, which are ndarrays seen flat."""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.variable import Tensor as Base, root
from numgrad.autograd.versions import mark_written
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.torch import dtypes
from numgrad.torch.calls import axis_of, table
from numgrad.torch.wrapping import Tensor, known, wrapped

_LAST = {dtypes.channels_last: 4, dtypes.channels_last_3d: 5}
"""Memory formats with channels behind, and the dimensions that they are for."""


# ---------------------------------------------------------------------------------- order of axes


def standard_strides(shape: Any) -> tuple[int, ...]:
    """Strides of contiguous elements."""
    lengths = [max(n, 1) for n in reversed(shape[1:])]
    return tuple(accumulate(lengths, mul, initial=1))[::-1] if len(shape) else ()


def contiguous(x: Any) -> bool:
    """Whether elements lie one behind the other; what has no memory of its own counts as if."""
    return isinstance(x, Batched) or state.ground.deferred or x._array.flags.c_contiguous


def copied(x: Any, memory_format: Any = None) -> Any:
    """A copy of a Tensor of numgrad's whose axes lie as in the original, or in a format."""
    return arranged(x.clone(), x, memory_format)


def arranged(made: Any, like: Any, memory_format: Any) -> Any:
    """A new Tensor of numgrad's, its axes laid as those of another, or in a format."""
    last = memory_format in _LAST
    if last and made.ndim != _LAST[memory_format]:
        raise NumgradRuntimeError(
            f"required rank {_LAST[memory_format]} tensor to use {memory_format!r} format, got "
            f"{made.ndim} dimensions"
        )
    preserved = memory_format in (None, dtypes.preserve_format) and isinstance(like, Base)
    if not (last or (preserved and not contiguous(like))) or type(made._array) is not np.ndarray:
        return made
    if last:
        memory = np.moveaxis(np.empty_like(np.moveaxis(made._array, 1, -1), order="C"), -1, 1)
    else:
        memory = np.empty_like(like._array, made.dtype)  # axes of longer strides first
        pairs = zip(memory.strides, like._array.strides, memory.shape, strict=True)
        if any(n > 1 and s * like.itemsize != t * made.itemsize for s, t, n in pairs):
            return made  # the other one does not fill its memory
    memory[...] = made._array
    made._array = memory
    return made


# -------------------------------------------------------------------------------------- storages


class UntypedStorage:
    """The bytes of a Tensor's memory, which all its views share.

    Parameters
    ----------
    size
        Number of elements, or these in an array or a list.
    """

    __module__ = "numgrad.torch"
    device, filename, is_cuda = dtypes.device("cpu"), None, False
    _d: Any = np.dtype(np.uint8)

    def __init__(self, size: Any = 0) -> None:
        if not isinstance(size, np.ndarray):
            size = np.zeros(size, self._d) if isinstance(size, int) else np.array(size, self._d)
        self._array = size

    def nbytes(self) -> int:
        """Number of bytes."""
        return self._array.nbytes

    def size(self) -> int:
        """Number of elements."""
        return self._array.size

    __len__ = size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._array.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return _address(self._array) if self._array.size else 0

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._array.tolist()

    def __getitem__(self, index: Any) -> Any:
        part = self._array[index]
        return type(self)(part) if isinstance(index, slice) else part.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = value

    def fill_(self, value: Any) -> Any:
        """Write one number everywhere."""
        self._array[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:
        """Write the elements of another."""
        return self.fill_(source._array)

    def clone(self) -> Any:
        """A storage with a copy of the elements."""
        return type(self)(self._array.copy())

    __copy__ = clone

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return UntypedStorage(self._array.view(np.uint8))

    def __eq__(self, other: object) -> Any:
        same = isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr()
        return same and self.nbytes() == other.nbytes()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.data_ptr())


class TypedStorage(UntypedStorage):
    """A storage as elements of a dtype."""

    __module__ = "numgrad.torch"

    dtype = property(lambda self: dtypes.OF[self._array.dtype], doc="The type of elements.")


STORAGES: Any = {
    f"{name}Storage": type(f"{name}Storage", (TypedStorage,), {"_d": d.numpy})
    for name, d in dtypes.PREFIXES.items()
}
"""Storages of a number of elements, or of those in a list."""
STORAGES["Storage"] = STORAGES["FloatStorage"]


def _bytes_of(x: Any) -> np.ndarray:
    """The bytes of a Tensor's memory, from its owner's first element on."""
    owner = root(x)._array
    reach = sum(s * (n - 1) for s, n in zip(owner.strides, owner.shape, strict=True))
    count = reach + owner.itemsize if owner.size else 0
    flat = np.lib.stride_tricks.as_strided(owner, (count // owner.itemsize,), (owner.itemsize,))
    return flat.view(np.uint8)


# ---------------------------------------------------------------------------------------- members


class MemoryMembers:
    """Methods of Tensors about their memory; each is set on ``Tensor``."""

    _tensor: Any

    def stride(self, dim: int | None = None) -> Any:
        """Distances in memory along axes, in elements."""
        return _stride(self._tensor, dim)

    def data_ptr(self) -> int:
        """The address of its first element."""
        return _address(self._tensor._array) if self._tensor.size else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether elements lie one behind the other in order."""
        return _is_contiguous(self._tensor, memory_format)

    def contiguous(self, memory_format: Any = dtypes.contiguous_format) -> Any:
        """The Tensor itself if it is contiguous, else a copy that is."""
        if _is_contiguous(self._tensor, memory_format):
            return self
        return wrapped(copied(self._tensor, memory_format))

    def set_(
        self, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
    ) -> Any:
        """Let it show the memory of another Tensor, or of a storage."""
        d = self._tensor.dtype
        if source is None or isinstance(source, UntypedStorage):
            flat = np.empty(0, d) if source is None else source._array.view(d)
            value: Any = wrapped(Base(flat))
        else:
            value = source.detach()
        if value._tensor.dtype != d:
            raise NumgradTypeError(
                f"set_: a Tensor of dtype {d} cannot show the memory of one of dtype "
                f"{value._tensor.dtype}"
            )
        if size is not None:
            shape = tuple(size)
            steps = standard_strides(shape) if stride is None else tuple(stride)
            value = value.as_strided(shape, steps, storage_offset)
        self._tensor.data = value._tensor
        return self

    def resize_(self, *size: Any, memory_format: Any = None) -> Any:
        """Give it another shape, of the elements there are and of zeros."""
        if self._tensor.requires_grad and not state.inference:
            raise NumgradRuntimeError("cannot resize variables that require grad")
        shape = dtypes.sizes(size)
        if shape != tuple(self._tensor.shape):
            self._tensor.data = Base(np.resize(self._tensor._array, shape))
            mark_written(self._tensor)
        arranged(self._tensor, None, memory_format)
        return self

    def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> Any:
        """Give it the shape of another."""
        return self.resize_(the_template.shape)

    @property
    def _base(self) -> Any:
        """Whose memory a view shows."""
        import gc

        base = self._tensor._base
        if base is None:
            return None
        holders = (x for x in gc.get_referrers(base) if isinstance(x, Tensor))
        x = next((x for x in holders if x._tensor is base), None)
        return known(wrapped(base) if x is None else x)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _stride(x: Any, dim: int | None) -> Any:
    regular = x.size < 2 or isinstance(x, Batched)
    steps = standard_strides(x.shape) if regular else tuple(s // x.itemsize for s in x.strides)
    for k in reversed(range(x.ndim)):
        if x.shape[k] == 1 and steps[k] == 0:  # a new axis, of which NumPy says nothing
            step = steps[k + 1] * x.shape[k + 1] if k + 1 < x.ndim else 1
            steps = (*steps[:k], step, *steps[k + 1 :])
    return steps if dim is None else steps[axis_of("stride", x, dim)]


def _is_contiguous(x: Any, memory_format: Any) -> bool:
    if memory_format in _LAST:
        return x.ndim == _LAST[memory_format] and contiguous(ng.moveaxis(x, 1, -1))
    return contiguous(x)


TABLE = """
[same 1 method values]
storage_offset(input): (_address(input._array) - _address(root(input)._array)) // input.itemsize
untyped_storage(input): UntypedStorage(_bytes_of(input))
{storage _typed_storage}(input): TypedStorage(_bytes_of(input).view(input.dtype))
dim_order(input): tuple(np.argsort([-step for step in _stride(input, None)], stable=True).tolist())
"""
table("", globals(), TABLE)
