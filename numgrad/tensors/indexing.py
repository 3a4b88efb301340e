"""Reading parts of a Tensor: ``x[index]``, and ``x.flat``, its elements in C order.

The hot path of basic indices is recorded without the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.variable import NO_GRAD_VIEW, Tensor, refresh, root
from numgrad.autograd.versions import INFERENCE, version_of
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.errors import NumgradIndexError
from numgrad.operations.index import getitem, is_basic
from numgrad.tensors.inplace import inplace


class SliceCall(Call):
    """A basic index, as the hot path of ``__getitem__`` records it."""

    __slots__ = ("dtype", "index", "shape")
    op = OPS["getitem"]
    aux = ()

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, index: Any) -> None:
        self.shape, self.dtype, self.index = shape, dtype, index

    @property
    def metas(self) -> tuple[Meta]:
        return (Meta(self.shape, self.dtype),)

    @property
    def params(self) -> dict[str, Any]:
        return {"index": self.index}

    @property
    def results(self) -> tuple[Meta]:
        outline = np.broadcast_to(np.empty((), self.dtype), self.shape)
        return (Meta(np.shape(outline[self.index]), self.dtype),)

    def differentiable(self, k: int) -> bool:
        return self.dtype.kind in "fc"

    def backward(self, mask: int, g: np.ndarray, saved: Any) -> tuple[list[Any], int]:
        out = np.zeros(self.shape, self.dtype)
        out[self.index] = g
        return [out], 1


def subscript(self: Tensor, index: Any) -> Tensor:
    """``self[index]``: a view for a basic index, else ``getitem``."""
    mode = state.mode
    if (type(index) is not slice and not is_basic(index)) or not mode:
        return getitem(self, index)
    array = self._array
    try:
        out = array[index]
    except IndexError as error:
        raise NumgradIndexError(
            f"getitem: an array of shape {array.shape} has no {index!r}: {error}"
        ) from None
    if type(out) is not np.ndarray:
        out = array[(*index, Ellipsis)] if type(index) is tuple else array[index, ...]
    owner = self._memory
    if owner is None:
        owner = self
    else:
        refresh(self)
        owner = root(self)
    if not (self._requires_grad and mode == 2):
        traced = mode == 2 and self._slot != NO_GRAD_VIEW
        follows = mode == 3 and self._requires_grad and version_of(self) is not INFERENCE
        return Tensor(out, follows, None, 0 if traced else NO_GRAD_VIEW, owner)
    node = self._grad_fn
    if node is None:
        node = self
    elif self._slot:
        node = (node, self._slot - 1)
    call = SliceCall(array.shape, array.dtype, index)
    return Tensor(out, True, Node(call, 1, (node,), ()), 0, owner)


def repeated(values: Any, count: int) -> Any:
    """The first ``count`` elements of ``values``, begun again at the end, as NumPy does it."""
    flat = OPS["ravel"](values if isinstance(values, Tensor) else np.asarray(values))
    return OPS["take"](flat, OPS["iota"](length=count) % flat.size) if count else flat[:0]


class Flat:
    """Elements of a Tensor as ``np.flatiter`` has those of an ndarray, to read and to write.

    What is read is recorded; a write is one to the Tensor, of values that begin again at the end.

    Parameters
    ----------
    base
        The Tensor.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.flat[1:3]
    tensor([2., 3.])
    >>> x.flat[::2] = 0.0
    >>> x
    tensor([[0., 2.],
            [0., 4.]])
    """

    __slots__ = ("base",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, base: Tensor) -> None:
        self.base = base

    def copy(self) -> Tensor:
        """All elements, with memory of their own."""
        return OPS["copy"](self.base).reshape(-1)

    def __getitem__(self, key: Any) -> Tensor:
        return OPS["ravel"](self.base)[key].clone()

    def __setitem__(self, key: Any, value: Any) -> None:
        places = np.arange(self.base.size.__index__())[key]
        places = np.atleast_1d(places)
        inplace(OPS["put"], "flat", self.base, (places, repeated(value, places.size)), {})

    def __iter__(self) -> Iterator[Tensor]:
        return iter(OPS["ravel"](self.base))

    def __len__(self) -> int:
        return self.base.size

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.copy(), dtype)

    def __eq__(self, other: Any) -> Any:
        return self.copy() == (other.copy() if isinstance(other, Flat) else other)

    def __repr__(self) -> str:
        return f"<elements of a tensor of shape {tuple(self.base.shape)}>"
