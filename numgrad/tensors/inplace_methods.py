"""The in-place methods of ``Tensor``: ``add_``, ``exp_``, ``+=``, ``x[i] = v``, ``copy_``, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.batching.selected import Selected
from numgrad.autograd.row_sparse import RowSparseTensor
from numgrad.autograd.variable import Tensor, root
from numgrad.core.abstract import AbstractArray
from numgrad.core.documentation import DESCRIBERS
from numgrad.core.elementwise import Elementwise
from numgrad.core.foreign import labelled_kind
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import checked
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.index import is_basic, is_basic_part
from numgrad.tensors.inplace import as_values, assign, inplace
from numgrad.tensors.labels import IndexedTensor, check_mask, check_written, index_of

OTHERS = (
    "clip", "round", "nan_to_num", "deg2rad", "rad2deg", "cumsum", "cumprod", "tril", "triu",
    "index_add", "index_copy", "index_fill", "index_put", "scatter", "scatter_add", "masked_fill",
    "masked_scatter", "put",
)  # fmt: skip
"""Operations besides the elementwise ones whose result has the shape of their first operand."""


TORCH_NAMES = {
    "multiply": "mul", "divide": "div", "subtract": "sub", "negative": "neg", "power": "pow",
    "clip": "clamp", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "equal": "eq", "not_equal": "ne",
}  # fmt: skip
"""PyTorch's short names, which in-place methods have too."""


def inplace_names(op: Op) -> tuple[str, ...]:
    """Names of the methods that store an operation's result in its first operand."""
    names = (*op.names, *([TORCH_NAMES[op.name]] if op.name in TORCH_NAMES else []))
    return tuple(f"{name}_" for name in names)


def has_inplace_form(op: Op) -> bool:
    """Whether there is a method that stores the operation's result in its first operand."""
    return (isinstance(op, Elementwise) and op.method and not op.internal) or op.name in OTHERS


def inplace_method(op: Op, name: str) -> Callable[..., Tensor]:
    """The method ``name`` of the in-place form of an operation."""

    def method(self: Tensor, *args: Any, **params: Any) -> Tensor:
        return inplace(op, name, self, args, params)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of ``{op.name}``; returns the tensor."
    return method


def _describe(op: Op) -> str | None:
    if not has_inplace_form(op):
        return None
    names = dict.fromkeys(inplace_names(op))
    return f"In place: {', '.join(f'``Tensor.{name}``' for name in names)}."


DESCRIBERS.append(_describe)


def augmented(op: Op, acceptable: Callable[[Any], bool]) -> Callable[..., Any]:
    """The method behind ``a <op>= b``."""
    name = f"{op.dunder}_"

    def method(self: Tensor, other: Any) -> Any:
        if not acceptable(other):
            if (labelled_kind(type(other)) or "").startswith("xarray."):
                raise NumgradTypeError(
                    f"{name}: the result has the labels of xarray's operand, which the memory of a "
                    "Tensor cannot take; write t = t + x, or give x.data"
                )
            if not isinstance(other, RowSparseTensor):
                return NotImplemented
            other = other.to_dense()  # Python would make ``a = a + b`` of it
        if isinstance(self._array, AbstractArray) and self._array.immutable:
            return op(self, other)
        return inplace(op, name, self, (other,), {})

    return method


def matmul_augmented(self: Tensor, other: Any) -> Tensor:
    """``self @= other``."""
    return inplace(OPS["matmul"], "matmul_", self, (other,), {})


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """``self[index] = value`` for any index of NumPy's."""
    index = tuple(map(_as_int, index)) if type(index) is tuple else _as_int(index)
    parts = index if type(index) is tuple else (index,)
    if type(value) is Selected:
        self[...] = value.placed(self, index)
    elif is_basic(index) or all(map(is_basic_part, parts)):
        assign("setitem", self[index], value, part_of=self)
    else:
        if isinstance(self, IndexedTensor):
            check_mask(self, index)
            if index_of(value) is not None:
                check_written("setitem", self[index], value)
        value = as_values("setitem", value, self._array.dtype)
        if value.dtype != self._array.dtype:
            value = OPS["astype"](value, dtype=self._array.dtype)
        inplace(OPS["index_put"], "setitem", self, (value,), {"index": index})


def _as_int(part: Any) -> Any:
    """A part of an index, with NumPy's integers as Python's, so that it counts as basic."""
    return int(part) if isinstance(part, np.integer) else part


def copy_(self: Tensor, source: Any) -> Tensor:
    """Store ``source``, which broadcasts to the tensor's shape and is converted to its dtype.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros(2).copy_(ng.tensor([1, 2]))
    tensor([1., 2.])
    """
    return assign("copy_", self, source)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Store one number (or 0-d tensor) everywhere.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if np.ndim(value) > 0:
        raise NumgradValueError(
            f"fill_: takes a number or a 0-d tensor, got shape {np.shape(value)}; use copy_"
        )
    return assign("fill_", self, value)


def zero_(self: Tensor) -> Tensor:
    """Store zeros.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.ones(2).zero_()
    tensor([0., 0.])
    """
    return assign("zero_", self, 0)


def fill_diagonal_(self: Tensor, value: Any, wrap: bool = False) -> Tensor:
    """Store numbers where all indices are equal, as ``np.fill_diagonal``; returns the tensor.

    ``wrap`` goes on below the square part of a matrix with more rows than columns.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros((2, 3)).fill_diagonal_(5.0)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    chosen = np.zeros(self.shape, bool)
    checked("fill_diagonal_", chosen, np.fill_diagonal, chosen, True, wrap)
    return inplace(OPS["put"], "fill_diagonal_", self, (np.flatnonzero(chosen), value), {})


def detach_(self: Tensor) -> Tensor:
    """Cut the tensor off from the graph that made it: it becomes a leaf.

    Raises
    ------
    NumgradRuntimeError
        If the tensor is a view.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.ones(2, requires_grad=True) * 2
    >>> y.detach_().is_leaf
    True
    """
    if root(self) is not self:
        raise NumgradRuntimeError(
            "detach_: the tensor is a view, whose base would stay in the graph; use detach() for a "
            "new tensor"
        )
    if isinstance(self, Batched):
        self.value = self.value.detach()
        return self
    self._array = state.ground.detached(self)
    self._grad_fn, self._slot, self._requires_grad = None, 0, False
    if self._extra is not None and self._extra.tangents is not None:
        self._extra.tangents.clear()
    return self
