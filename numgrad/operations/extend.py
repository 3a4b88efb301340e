"""Larger arrays made of repeated or added elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.axis import normalize_axes
from numgrad.core.batching import BatchOperand, with_parameters
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand, broadcast_to, copy, expand_dims, reshape
from numgrad.operations.take import take


@composite(ref=np.tile, smooth=True)
def tile(x, reps):
    """The operand repeated along each axis as often as ``reps`` says.

    Parameters
    ----------
    reps : int or sequence of ints
        How often the operand comes along each axis.

    Returns
    -------
    Tensor
        With lengths multiplied by ``reps``, and new leading axes if these are more.

    Examples
    --------
    >>> ng.tile(ng.tensor([1.0, 2.0]), 2)
    tensor([1., 2., 1., 2.])
    >>> ng.tile(ng.tensor([1.0, 2.0]), (2, 1))
    tensor([[1., 2.],
            [1., 2.]])
    """
    x = as_operand(x)
    given = reps if isinstance(reps, tuple | list | np.ndarray) else (reps,)
    counts = [as_index("tile", r, "a number of repeats") for r in given]
    rank = max(len(counts), len(x.shape))
    counts = [1] * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(x.shape)) + tuple(x.shape)
    if any(c < 0 for c in counts):
        raise NumgradValueError(f"tile: numbers of repeats must not be negative, got {reps}")
    if all(c == 1 for c in counts):
        return reshape(copy(x), shape)
    before = [length for n in shape for length in (1, n)]
    after = [length for c, n in zip(counts, shape, strict=True) for length in (c, n)]
    repeated = broadcast_to(reshape(x, before), after)
    return reshape(repeated, [c * n for c, n in zip(counts, shape, strict=True)])


tile.calls = [
    (((2, 3),), lambda x: tile(x, (2, 1, 2))),
    (((2,),), lambda x: tile(x, 0)),
]


@composite(ref=np.repeat, smooth=True)
def repeat(x, repeats, axis=None):
    """Each element repeated along an axis, by one number of times or one for each element.

    Parameters
    ----------
    repeats : int or sequence of ints
        How often each element comes, one number for all or one for each.

    Returns
    -------
    Tensor
        Longer along the axis, or with one axis if none is given.

    Examples
    --------
    >>> ng.repeat(ng.tensor([1.0, 2.0]), 2), ng.repeat(ng.tensor([1.0, 2.0]), [1, 3])
    (tensor([1., 1., 2., 2.]), tensor([1., 2., 2., 2.]))
    """
    x = as_operand(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    (axis,) = normalize_axes("repeat", axis, len(x.shape))
    n = x.shape[axis]
    counts = np.asarray(getattr(repeats, "_array", repeats))
    if counts.dtype.kind not in "iu":
        raise NumgradTypeError(f"repeat: repeats must be integers, got {counts.dtype}")
    if counts.size and counts.min() < 0:
        raise NumgradValueError("repeat: numbers of repeats must not be negative")
    if counts.size == 1:
        count = int(counts.reshape(()))
        shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
        merged = (*x.shape[:axis], n * count, *x.shape[axis + 1 :])
        out = reshape(broadcast_to(expand_dims(x, axis + 1), shape), merged)
        return copy(out) if count == 1 else out
    if counts.shape != (n,):
        raise NumgradValueError(
            f"repeat: repeats of shape {counts.shape} for axis {axis} of shape {tuple(x.shape)}; "
            f"give one number or {n} of them"
        )
    return take(x, np.repeat(np.arange(n), counts), axis=axis)


repeat.calls = [
    (((2, 3),), lambda x: repeat(x, 2)),
    (((2, 3),), lambda x: repeat(x, [0, 2, 1], axis=1)),
    (((2,),), lambda x: repeat(x, 0)),
]


# ------------------------------------------------------------------------------------ padding


def _widths(pad_width: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            (axis,) = normalize_axes("pad", axis, ndim)
            pairs[axis] = tuple(width) if isinstance(width, tuple | list) else (width, width)
        pad_width = pairs
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError:
        raise NumgradValueError(
            f"pad: pad_width {pad_width!r} does not give a pair for each of {ndim} axes; use a "
            "number, one pair, or a pair for each axis"
        ) from None
    if widths.dtype.kind not in "iu":
        raise NumgradTypeError(f"pad: pad_width must be integers, got {widths.dtype}")
    if widths.size and widths.min() < 0:
        raise NumgradValueError(f"pad: pad_width must not be negative, got {pad_width!r}")
    return tuple((before, after) for before, after in widths.tolist())


@primitive(
    internal=True,
    linear=True,
    method=False,
    samples=[(((2, 3),), {"widths": ((1, 2), (0, 3))})],
)
def pad_constant(x, *, widths, values=0):
    """The operand with ``values`` added at both ends of each axis."""
    return np.pad(x, widths, constant_values=values)


@pad_constant.shape
def _pad_result(x, *, widths, values):
    shape = [n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    return Meta(tuple(shape), x.dtype)


pad_constant.vjp(
    x=lambda g, meta_x, widths: getitem(
        g,
        tuple(
            [slice(before, before + n) for (before, _), n in zip(widths, meta_x.shape, strict=True)]
        ),
    )
)

# linear but for ``values``, which do not move
pad_constant.jvp(lambda t_x, widths: pad_constant(t_x, widths=widths))


@pad_constant.batch
@with_parameters
def _padding(x: BatchOperand, size: int, widths: Any, values: Any) -> Any:
    return NotImplemented if np.ndim(values) else {"widths": ((0, 0), *widths)}


_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@composite(ref=np.pad, smooth=True)
def pad(x, pad_width, mode="constant", *, constant_values=None, reflect_type=None):
    """The operand with elements added at both ends of its axes.

    ``mode`` is ``"constant"`` (``constant_values``, numbers without gradient), ``"edge"``,
    ``"reflect"``, ``"symmetric"`` or ``"wrap"``; ``pad_width`` as in NumPy.

    Parameters
    ----------
    pad_width : int, pair of ints or sequence of pairs
        Numbers of elements before and after, for all axes or for each.
    mode : str
        ``"constant"``, ``"edge"``, ``"reflect"``, ``"symmetric"`` or ``"wrap"``.
    constant_values : array_like
        What is added in the mode ``"constant"``, without a gradient; 0 by default.
    reflect_type : str
        ``"even"``, in the modes ``"reflect"`` and ``"symmetric"``.

    Returns
    -------
    Tensor
        Longer by the numbers in ``pad_width``, of the dtype of ``x``.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0])
    >>> ng.pad(x, (1, 2))
    tensor([0., 1., 2., 3., 0., 0.])
    >>> ng.pad(x, 1, mode="reflect")
    tensor([2., 1., 2., 3., 2.])
    """
    x = as_operand(x)
    if mode not in _MODES:
        raise NumgradValueError(f"pad: mode {mode!r} is not available; use one of {_MODES}")
    for parameter, value, modes in (
        ("constant_values", constant_values, ("constant",)),
        ("reflect_type", reflect_type, ("reflect", "symmetric")),
    ):
        if value is not None and mode not in modes:
            raise NumgradValueError(
                f"pad: {parameter} has no meaning in mode {mode!r}; leave it out"
            )
    if reflect_type not in (None, "even"):
        raise NumgradValueError(f"pad: reflect_type {reflect_type!r} is not available; use 'even'")
    widths = _widths(pad_width, len(x.shape))
    if not widths:  # there is no axis to extend
        return copy(x)
    if mode == "constant":
        values = 0 if constant_values is None else constant_values
        if hasattr(values, "grad_fn"):
            if getattr(values, "_requires_grad", False):
                raise NumgradTypeError(
                    "pad: constant_values has no gradient; pass a number, or use concat"
                )
            values = values._array  # pyright: ignore
        return pad_constant(x, widths=widths, values=values)
    if all(width == (0, 0) for width in widths):
        return copy(x)
    for axis, width in enumerate(widths):
        n = x.shape[axis]
        if width == (0, 0):
            continue
        if n == 0:
            raise NumgradValueError(
                f"pad: axis {axis} of shape {tuple(x.shape)} is empty, there is nothing to extend "
                f"it with in mode {mode!r}; use mode 'constant'"
            )
        x = take(x, np.pad(np.arange(n), width, mode=mode), axis=axis)
    return x


pad.calls = [
    *[(((2, 3),), lambda x, mode=mode: pad(x, ((1, 2), (0, 1)), mode)) for mode in _MODES],
    (((0, 2),), lambda x: pad(x, 1)),
]
