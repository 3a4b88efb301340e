"""The binary operators of ``Tensor``, made of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.abstract import COUNT, AbstractArray, AbstractLength
from numgrad.core.foreign import is_sparse_kind, labelled_kind, multiplies_by_star
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradTypeError
from numgrad.tensors.hints import in_solver

_made: list[tuple[Op, Any]] = []
"""Operations, and methods made of them, which hold the function behind calls."""
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


_OPERANDS = (
    Tensor, np.ndarray, int, float, complex, np.generic, list, tuple, range, AbstractLength,
)  # fmt: skip
_FOREIGN = {
    **dict.fromkeys(
        ("torch", "jax", "jaxlib", "tensorflow"),
        "gradients do not pass to a Tensor nor back; convert it with ng.tensor",
    ),
    "dask": "elements are computed later, without gradients; give its .compute()",
}
"""Libraries whose arrays are no operands beside Tensors, and why."""


def operator(op: Op) -> Callable[..., Any]:
    """``a <op> b``, which leaves the right operand its say if it is no number or array."""
    enter, is_product, compares = op.entry, op.dunder == "matmul", op.dunder in COMPARISONS
    is_star = op.dunder == "mul"

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if compares and (self._requires_grad or self._extra is not None) and in_solver():
            self._refuse_conversion()  # pyright: ignore[reportAttributeAccessIssue]
        if kind is Tensor or kind is float or kind is int:
            return enter(self, other)
        if acceptable(other):
            if is_star and (kind is list or kind is tuple):
                _refuse_repetition(self)
            return enter(self, other)
        if is_product and is_sparse_kind(kind):
            return enter(self, other)
        refuse_foreign(op, other)
        return NotImplemented

    _made.append((op, method))
    return method


def reflected(op: Op) -> Callable[..., Any]:
    """``b <op> a`` for a Tensor ``a`` on the right."""
    enter, is_product, is_star = op.entry, op.dunder == "matmul", op.dunder == "mul"

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is float or kind is int:
            return enter(other, self)
        if acceptable(other):
            if is_star and (kind is list or kind is tuple):
                _refuse_repetition(self)
            return enter(other, self)
        if (is_product and is_sparse_kind(type(other))) or (is_star and multiplies_by_star(other)):
            return OPS["matmul"](other, self)
        refuse_foreign(op, other)
        return NotImplemented

    _made.append((op, method))
    return method


def _refuse_repetition(x: Tensor) -> None:
    """Raise if a Tensor stands for a Python integer, by which a list is repeated."""
    array = x._array
    if isinstance(array, AbstractArray) and array.immutable and array.dtype.kind in "iu":
        array.refuse("a list times a number", COUNT)


def enter_again() -> None:
    """Let the operators call the functions that are behind operations now."""
    for op, method in _made:
        cells = dict(zip(method.__code__.co_freevars, method.__closure__, strict=True))
        cells["enter"].cell_contents = op.entry


def acceptable(value: Any) -> bool:
    """Whether a Tensor's operator computes with ``value`` as its other operand."""
    if isinstance(value, _OPERANDS):
        return True
    kind = labelled_kind(type(value))
    # Note [Labels] in ``labels``
    return kind is not None and not kind.startswith("xarray.") and hasattr(value, "__array__")


def refuse_foreign(op: Op, value: Any) -> None:
    """Name the library of an array whose gradients would be lost, rather than two kinds.

    And text and bytes, which Python would repeat.
    """
    if op.dunder == "mul" and isinstance(value, str | bytes | bytearray):
        raise NumgradTypeError(
            f"{op.name}: operands are arrays and numbers, got {type(value).__name__} {value!r:.40}"
        )
    if op.dunder == "matmul" and (labelled_kind(type(value)) or "").startswith("xarray."):
        raise NumgradTypeError(
            "matmul: xarray multiplies by the names of dimensions, which a Tensor has not; label "
            "the Tensor with xarray.DataArray(t, dims=...) and use xarray.dot, or give the .data "
            "of the other operand"
        )
    if is_sparse_kind(type(value)) and op.dunder not in ("matmul", "mul", "truediv"):
        raise NumgradTypeError(
            f"{op.name}: a {type(value).__name__} of scipy.sparse is an operand of @ only, as in "
            "A @ t; give its .toarray()"
        )
    library = type(value).__module__.partition(".")[0]
    if library in _FOREIGN and hasattr(value, "__array__"):
        raise NumgradTypeError(
            f"{op.name}: an operand is an array of {library}, whose {_FOREIGN[library]}"
        )
