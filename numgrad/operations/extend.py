"""Larger arrays made of repeated or added elements."""

from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, with_parameters
from numgrad.core.declare import Meta, composite, made, normalize_axes, one_axis, primitive
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand, broadcast_to, copy, expand_dims, reshape
from numgrad.operations.shared_rules import numbers_of
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
    repeats = reps if isinstance(reps, tuple | list | np.ndarray) else (reps,)
    counts = [as_index("tile", r, "a number of repeats") for r in repeats]
    rank = max(len(counts), len(x.shape))
    counts = [1] * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(x.shape)) + tuple(x.shape)
    if any(c < 0 for c in counts):
        raise NumgradValueError(f"tile: numbers of repeats must not be negative, got {reps}")
    pairs = list(zip(counts, shape, strict=True))
    if all(c == 1 or n == 1 for c, n in pairs):  # of which reshape would show the same memory
        return copy(broadcast_to(reshape(x, shape), [c * n for c, n in pairs]))
    before = [length for n in shape for length in (1, n)]
    after = [length for pair in pairs for length in pair]
    return reshape(broadcast_to(reshape(x, before), after), [c * n for c, n in pairs])


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
    axis = one_axis("repeat", axis, len(x.shape))
    n = x.shape[axis]
    counts = numbers_of("repeat", repeats)
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
    return take(x, made(np.repeat(np.arange(n), counts)), axis=axis)


# ------------------------------------------------------------------------------------ padding


def _widths(pad_width: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            axis = one_axis("pad", axis, ndim)
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
    internal=True, linear=True, method=False, samples=[(((2, 3),), {"widths": ((1, 2), (0, 3))})]
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


_COPIED = ("edge", "reflect", "symmetric", "wrap")
_MODES = ("constant", "empty", *_COPIED, "linear_ramp", "maximum", "mean", "median", "minimum")


def with_elements(operation: str, x: Any, axis: Any, value: Any) -> Any:
    """The operand with one ``value`` along each axis of ``axis`` that has no elements."""
    axes = normalize_axes(operation, axis, len(x.shape))
    lengths = [int(type(n) is int and n == 0 and a in axes) for a, n in enumerate(x.shape)]
    if not any(lengths):
        return x
    return pad_constant(x, widths=tuple((0, n) for n in lengths), values=value)


@composite(ref=np.pad)
def pad(
    x,
    pad_width,
    mode="constant",
    *,
    constant_values=None,
    end_values=None,
    reflect_type=None,
    stat_length=None,
    options=None,
):
    """The operand with elements added at both ends of its axes.

    Parameters
    ----------
    pad_width : int, pair of ints or sequence of pairs
        Numbers of elements before and after, for all axes or for each.
    mode : str or callable
        ``"constant"``, ``"edge"``, ``"empty"`` (zeros here), ``"linear_ramp"``, ``"maximum"``,
        ``"mean"``, ``"median"``, ``"minimum"``, ``"reflect"``, ``"symmetric"``, ``"wrap"``; or a
        function of a vector, its pair of widths, the axis and ``options``, which fills the ends of
        the vector in place.
    constant_values : array_like
        What is added in the mode ``"constant"``, a number or pairs; 0 by default.
    end_values : array_like
        Where the lines of ``"linear_ramp"`` end, a number or pairs; 0 by default.
    reflect_type : {'even', 'odd'}
        Whether ``"reflect"`` and ``"symmetric"`` mirror at a line or at the point of the edge.
    stat_length : int or pairs of ints
        How many elements at the edge the statistic is of; by default all.
    options : dict
        What a function is called with.

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
    >>> ng.pad(x, (0, 2), mode="linear_ramp", end_values=7.0)
    tensor([1., 2., 3., 5., 7.])
    """
    from numgrad.operations import pad_modes

    x = as_operand(x)
    widths = _widths(pad_width, len(x.shape))
    if callable(mode):
        return pad_modes.by_function(x, widths, mode, options or {})
    pad_modes.check_mode(mode, _MODES)
    arguments = {
        "constant_values": constant_values,
        "end_values": end_values,
        "reflect_type": reflect_type,
        "stat_length": stat_length,
        "options": options,
    }
    pad_modes.check_options(mode, arguments)
    if not widths:  # there is no axis to extend
        return copy(x)
    if mode in ("constant", "empty"):
        values = 0 if constant_values is None else constant_values
        values = as_operand(values) if isinstance(values, list | tuple) else values
        if hasattr(values, "grad_fn"):
            return pad_modes.fill(x, widths, values)
        return pad_constant(x, widths=widths, values=values)
    if all(width == (0, 0) for width in widths):
        return copy(x)
    for axis, width in enumerate(widths):
        if width != (0, 0) and x.shape[axis] == 0:
            raise NumgradValueError(
                f"pad: axis {axis} of shape {tuple(x.shape)} is empty, there is nothing to extend "
                f"it with in mode {mode!r}; use mode 'constant'"
            )
    if mode == "linear_ramp":
        return pad_modes.ramp(x, widths, 0 if end_values is None else end_values)
    if mode in pad_modes.STATISTICS:
        return pad_modes.statistics(x, widths, mode, stat_length)
    if reflect_type == "odd":
        return pad_modes.odd_reflection(x, widths, mode)
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = take(x, made(np.pad(np.arange(x.shape[axis]), width, mode=mode)), axis=axis)  # pyright: ignore
    return x


pad.kink(x=([1.0, 1.0], [2, 2]), params={"pad_width": 1, "mode": "maximum"})
