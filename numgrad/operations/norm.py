"""Norms of vectors and matrices, as ``numpy.linalg`` has them."""

import math
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np

from numgrad.core.declare import AbstractLength, composite, normalize_axes, one_axis
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.reduce import max, min, norm2, sum
from numgrad.operations.shape import as_operand, expand_dims


@composite(ref=np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Norm of a vector, of a matrix, or of each of those along one or two axes.

    Parameters
    ----------
    x
        Array; without ``axis`` and with an ``ord`` it has one axis or two.
    ord
        None is the square root of the sum of squares, of an array of any shape. For vectors any
        number: 0 counts what is not zero, with a gradient of 0. For matrices 1 and -1 (largest and
        smallest sum of a column), infinities (of a row), 2 and -2 (largest and smallest singular
        value), ``"nuc"`` (their sum) and ``"fro"``.
    axis
        An integer for vectors, a pair for matrices; None is all.
    keepdims
        Whether the axes stay, with length 1.

    Returns
    -------
    Tensor
        Real; without the axes, or with length 1 there if ``keepdims``.

    Raises
    ------
    NumgradValueError
        If there is no such norm.

    See Also
    --------
    vector_norm : takes all axes as one vector.

    Examples
    --------
    >>> x = ng.tensor([[3.0, -4.0], [1.0, 0.0]])
    >>> ng.norm(x, 1), ng.norm(x, 1, axis=1)
    (tensor(4.), tensor([7., 1.]))
    """
    x = as_operand(x)
    rank = len(x.shape)
    if axis is None:
        if ord is None or (rank == 2 and ord in ("f", "fro")):
            return norm2(x, keepdims=keepdims)
        axes = tuple(range(rank))
    else:
        if isinstance(axis, list):
            raise NumgradTypeError(f"norm: axis must be an integer, a pair or None, got {axis!r}")
        axes = axis if isinstance(axis, tuple) else (axis,)
        normalize_axes("norm", axes, rank)
        axes = tuple(a % rank for a in axes)  # of a pair, the first counts rows
    if len(axes) == 1:
        return _vector_norm("norm", x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm("norm", x, ord, axes, keepdims)
    raise NumgradValueError(
        f"norm: ord={ord!r} over axis={axis!r} of an array of shape {tuple(x.shape)}; norms are of "
        "one axis or two: give axis, or take vector_norm"
    )


for _order in (2, 1, 3, 2.5, 1.5, 0.5, np.inf, -np.inf, -1, -2):
    norm.kink(x=([0.0, 0.0], [0, 0]), params={"ord": _order})
norm.kink(x=([0j, 0j], [0, 0]), params={"ord": 3})
norm.kink(x=([0.0, -2.0], [0, -1]), params={"ord": 1})
norm.kink(x=([0.0, 4.0], [0, 1]), params={"ord": 0.5})
norm.kink(x=([0.0, 4.0], [0, 0]), params={"ord": -1})
norm.kink(x=([2.0, -2.0, 1.0], [0.5, -0.5, 0]), params={"ord": np.inf})
norm.kink(x=([[0.0, 2.0], [3.0, -1.0]], [[0, 0.5], [0.5, -0.5]]), params={"ord": 1})
norm.kink(x=([[0.0, 2.0], [3.0, -1.0]], [[0, 1], [0, 0]]), params={"ord": -np.inf})


@composite(ref="numpy.linalg.vector_norm", method=False)
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    """Norm of all elements along the axes, taken as one vector; without axes, of all elements.

    Parameters
    ----------
    ord : float
        Order of the norm, as in ``norm``.

    Returns
    -------
    Tensor
        Real; without the axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.vector_norm(ng.tensor([[3.0, -4.0], [1.0, 0.0]]), ord=1)
    tensor(8.)
    """
    x = as_operand(x)
    axes = normalize_axes("vector_norm", axis, len(x.shape))
    return _vector_norm("vector_norm", x, ord, axes, keepdims)


vector_norm.kink(x=([[0.0, 3.0], [0.0, 4.0]], [[0, 0.6], [0, 0.8]]))


@composite(ref="numpy.linalg.matrix_norm", method=False)
def matrix_norm(x, *, keepdims=False, ord="fro"):
    """Norm of the matrices in the last two axes; ``ord`` as in ``norm``.

    Parameters
    ----------
    ord : float or str
        As in ``norm``.

    Returns
    -------
    Tensor
        Real; without the last two axes, or with length 1 there if ``keepdims``.

    Examples
    --------
    >>> ng.matrix_norm(ng.tensor([[3.0, -4.0], [1.0, 0.0]]), ord=ng.inf)
    tensor(7.)
    """
    x = as_operand(x)
    axes = normalize_axes("matrix_norm", (-2, -1), len(x.shape))
    return _matrix_norm("matrix_norm", x, ord, axes, keepdims)


matrix_norm.kink(x=([[0.0, 0.0], [0.0, 0.0]], [[0, 0], [0, 0]]))


@composite()
def renorm(x, p, axis, maxnorm):
    """Slices along an axis, those of larger norms scaled down to a largest norm.

    Parameters
    ----------
    x
        Array of two axes or more.
    p : float
        Order of the norms, positive.
    axis : int
        The axis along which slices are taken: each has a norm of its own.
    maxnorm : float
        The largest norm.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Raises
    ------
    NumgradValueError
        If ``p`` is not positive, ``maxnorm`` is negative, or ``x`` has one axis only.

    Examples
    --------
    >>> ng.renorm(ng.tensor([[3.0, 4.0], [0.3, 0.4]]), p=2, axis=0, maxnorm=1.0).round(3)
    tensor([[0.6, 0.8],
            [0.3, 0.4]])
    """
    x = as_operand(x)
    rank = len(x.shape)
    if rank < 2 or not p > 0 or not maxnorm >= 0:
        raise NumgradValueError(
            f"renorm: p={p!r} must be positive, maxnorm={maxnorm!r} not negative, and the operand "
            f"of shape {tuple(x.shape)} have two axes or more"
        )
    kept_axis = one_axis("renorm", axis, rank)
    others = tuple([k for k in range(rank) if k != kept_axis])
    norms = vector_norm(x, axis=others, keepdims=True, ord=p)
    large = norms > maxnorm
    # as PyTorch does, by a little more than the norm
    scale = maxnorm / (np.where(large, norms, 1) + 1e-7)
    return np.where(large, x * scale, x)


# of the greatest norm allowed: it stays
renorm.kink(x=([[3.0, 4.0]], [[1, 1]]), params={"p": 2, "axis": 0, "maxnorm": 5.0})


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else x * 1.0


def _matrix_norm(name: str, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    rows, columns = axes
    if ord is None or ord in ("f", "fro"):
        return norm2(x, axis=axes, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        home = import_module("numgrad.operations.linear_algebra.singular_values")
        values = home.svdvals(moveaxis(x, axes, (-2, -1)))
        reduce = {2: max, -2: min, "nuc": sum}[ord]
        result = reduce(values, axis=-1, **_of_nothing(ord, values.shape[-1:]))
        return expand_dims(result, axes) if keepdims else result
    if ord not in (1, -1, math.inf, -math.inf):
        raise NumgradValueError(
            f"{name}: a matrix has no norm of order {ord!r}; it is one of None, 'fro', 'nuc', 1, "
            "-1, 2, -2, inf, -inf"
        )
    summed = rows if abs(ord) == 1 else columns
    extremum = max if ord > 0 else min
    sums = sum(np.abs(_floating(x)), axis=summed, keepdims=True)
    lengths = [x.shape[k] for k in axes]
    return extremum(sums, axis=axes, keepdims=keepdims, **_of_nothing(ord, lengths))


def _of_nothing(ord: Any, lengths: Any) -> dict[str, float]:
    """Norms that are largest values are 0 where there are none, as NumPy has it."""
    empty = any(not isinstance(n, AbstractLength) and n == 0 for n in lengths)
    return {"initial": 0.0} if empty and ord in (1, 2, math.inf) else {}


def _vector_norm(name: str, x: Any, ord: Any, axes: Any, keepdims: bool) -> Any:
    if ord is None or (isinstance(ord, Real) and ord == 2):
        return norm2(x, axis=axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise NumgradValueError(
            f"{name}: a vector has no norm of order {ord!r}, which is one of matrices; use a "
            "number or None"
        )
    if not isinstance(ord, Real):
        raise NumgradTypeError(f"{name}: ord must be a number, a name or None, got {ord!r}")
    order = float(ord)
    if order == 0:  # a count, of which nothing depends on x: the floor keeps the graph
        elements = np.where(x == 0, np.floor(_floating(np.real(x))), 1)
        return sum(elements, axis=axes, keepdims=keepdims)
    magnitude = np.abs(_floating(x))
    if order == math.inf:
        return max(magnitude, axis=axes, keepdims=keepdims)
    if order == -math.inf:
        return min(magnitude, axis=axes, keepdims=keepdims)
    if order == 1:
        return sum(magnitude, axis=axes, keepdims=keepdims)
    return _power_norm(magnitude, order, axes, keepdims)


def _power_norm(magnitude: Any, order: float, axes: Any, keepdims: bool) -> Any:
    """``sum(magnitude**ord) ** (1 / ord)``, whose gradient at magnitudes of 0 is 0, never NaN."""
    zero = magnitude == 0
    powers = np.where(zero, 0 if order > 0 else math.inf, np.where(zero, 1, magnitude) ** order)
    total = sum(powers, axis=axes, keepdims=keepdims)
    if order < 0:
        return total ** (1.0 / order)
    zero = total == 0
    return np.where(zero, 0, np.where(zero, 1, total) ** (1.0 / order))
