"""Functions whose parameters in the Array API standard are not those of ``ng``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise NumgradValueError(f"broadcast_shapes: {error}") from None


def concat(arrays: Any, /, *, axis: int | None = 0) -> ng.Tensor:
    """Arrays one after another along an axis."""
    return OPS["concat"](list(arrays), axis=axis)


def stack(arrays: Any, /, *, axis: int = 0) -> ng.Tensor:
    """Arrays of one shape along a new axis."""
    return OPS["stack"](list(arrays), axis=axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[ng.Tensor, ...]:
    """The parts along an axis, without it."""
    return OPS["unstack"](x, axis=axis)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[ng.Tensor, ...]:
    """Coordinate arrays of the grid that vectors span."""
    return OPS["meshgrid"](*arrays, indexing=indexing)


def expm1(x: Any, /) -> ng.Tensor:
    """``exp(x) - 1``, where a complex -0 has the real part +0, as the standard writes it."""
    result = OPS["expm1"](x)
    return result + complex(0.0, -0.0) if result.dtype.kind == "c" else result


def expand_dims(x: Any, /, axis: Any = 0) -> ng.Tensor:
    """New axes of length 1 at positions of the result."""
    return OPS["expand_dims"](x, axis=axis)


def squeeze(x: Any, /, axis: Any) -> ng.Tensor:
    """Without the given axes, which must have length 1."""
    return OPS["squeeze"](x, axis=axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> ng.Tensor:
    """The same elements in another shape; a view where that is possible unless ``copy``."""
    return np.reshape(ng.asarray(x), shape, copy=copy)  # pyright: ignore


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> ng.Tensor:
    """Each element repeated along an axis."""
    return OPS["repeat"](x, repeats, axis=axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> ng.Tensor:
    """The operand repeated along each axis."""
    return OPS["tile"](x, repetitions)


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> ng.Tensor:
    """Differences of neighbours along an axis."""
    return OPS["diff"](x, n, axis, prepend, append)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> ng.Tensor:
    """The elements in order along an axis."""
    return ng.sort(x, axis=axis, descending=descending, stable=stable)  # pyright: ignore


def argsort(
    x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> ng.Tensor:
    """The indices that sort along an axis."""
    return ng.argsort(x, axis=axis, descending=descending, stable=stable)  # pyright: ignore


def nonzero(x: Any, /) -> tuple[ng.Tensor, ...]:
    """The indices of elements that are not zero, an array for each axis."""
    if not as_operand(x).shape:
        raise NumgradIndexError("nonzero: a 0-d array has no indices")
    return ng.nonzero(x)  # pyright: ignore


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> ng.Tensor:
    """Where elements belong into a sorted vector."""
    return ng.searchsorted(x1, x2, side, sorter)  # pyright: ignore


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> ng.Tensor:
    """Whether each element is one of others."""
    return ng.isin(x1, x2, invert=invert)  # pyright: ignore


def std(
    x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> ng.Tensor:
    """Standard deviation, of a sum divided by the number of elements less ``correction``."""
    return OPS["std"](_floating("std", x), axis=axis, ddof=correction, keepdims=keepdims)


def var(
    x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> ng.Tensor:
    """Variance, a sum divided by the number of elements less ``correction``."""
    return OPS["var"](_floating("var", x), axis=axis, ddof=correction, keepdims=keepdims)


def _floating(name: str, x: Any) -> Any:
    x = as_operand(x)
    if x.dtype.kind == "b":
        raise NumgradTypeError(f"{name}: booleans have no spread; convert them with astype")
    return x
