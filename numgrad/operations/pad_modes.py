"""Padding by the modes of ``pad`` that compute it: ramps, statistics, odd reflections."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, Meta, made, primitive
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arithmetic import multiply
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.shape import as_operand, astype, broadcast_to, copy, reshape
from numgrad.operations.take import take, take_along_axis

STATISTICS = ("maximum", "mean", "median", "minimum")
Widths = tuple[tuple[int, int], ...]


def _part(x: Any, axis: int, chunk: slice) -> Any:
    return getitem(x, (*(slice(None),) * axis, chunk))


def _along(values: np.ndarray, axis: int, rank: int) -> Any:
    """A vector shaped to run along an axis."""
    return made(values.reshape((-1, *(1,) * (rank - axis - 1))))


def _pairs(name: str, values: Any, rank: int) -> Any:
    """A number, a pair or a pair for each axis as an array of pairs."""
    values = as_operand(values)
    try:
        return broadcast_to(values, (rank, 2))
    except NumgradValueError:
        raise NumgradValueError(
            f"pad: {name} of shape {tuple(values.shape)} does not give a pair for each of {rank} "
            "axes; use a number, one pair, or a pair for each axis"
        ) from None


def fill(x: Any, widths: Widths, values: Any) -> Any:
    """Constants with a gradient."""
    rank = len(x.shape)
    values = astype(_pairs("constant_values", values, rank), dtype=x.dtype)
    for axis, pair in enumerate(widths):
        ends = [
            broadcast_to(values[axis, k], (*x.shape[:axis], width, *x.shape[axis + 1 :]))
            for k, width in enumerate(pair)
        ]
        x = concat(ends[0], x, ends[1], axis=axis)
    return x


def ramp(x: Any, widths: Widths, ends: Any) -> Any:
    """Straight lines from the edge of the operand to ``ends``."""
    rank, dtype = len(x.shape), x.dtype
    whole = dtype.kind not in "fc"
    ends = _pairs("end_values", ends, rank)
    for axis, pair in enumerate(widths):
        pieces = [x]
        for k, width in enumerate(pair):
            if not width:
                continue
            edge = _part(x, axis, slice(1) if k == 0 else slice(-1, None))
            steps = np.arange(width) if k == 0 else np.arange(width)[::-1]
            end = ends[axis, k]
            if not whole:
                steps, end = steps.astype(dtype), astype(end, dtype=dtype)
            line = end + multiply((edge - end) / width, _along(steps, axis, rank))
            line = astype(np.floor(line) if whole else line, dtype=dtype)
            pieces.insert(0, line) if k == 0 else pieces.append(line)
        x = concat(pieces, axis=axis)
    return x


@primitive(internal=True, differentiable=False, method=False)
def sorting_places(x, *, axis):
    """Indices that sort along an axis."""
    return np.argsort(x, axis=axis)


sorting_places.shape(lambda x, *, axis: Meta(x.shape, np.dtype(np.int64)))


def _median(x: Any, axis: int) -> Any:
    n = x.shape[axis]
    middle = np.array([(n - 1) // 2, n // 2])
    indices = take(sorting_places(x, axis=axis), made(middle), axis=axis)
    return OPS["mean"](take_along_axis(x, indices, axis=axis), axis=axis, keepdims=True)


def statistics(x: Any, widths: Widths, mode: str, lengths: Any) -> Any:
    """One number for each end of an axis, of as many elements next to it as ``lengths`` says."""
    rank, dtype = len(x.shape), x.dtype
    counts = None if lengths is None else np.broadcast_to(np.asarray(lengths), (rank, 2))
    if counts is not None and (counts.dtype.kind not in "iu" or counts.min(initial=0) < 0):
        raise NumgradValueError(f"pad: stat_length must be integers, not negative, got {lengths!r}")
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        near = (n, n) if counts is None else [min(int(k), n) for k in counts[axis]]
        if mode != "mean" and 0 in near:
            raise NumgradValueError(f"pad: stat_length of 0 has no {mode}; give a positive one")
        pieces = [x]
        for k, width in enumerate((before, after)):
            chunk = _part(x, axis, slice(near[0]) if k == 0 else slice(n - near[1], None))
            if mode == "median":
                number = _median(chunk, axis)
            else:
                op = OPS[{"maximum": "max", "minimum": "min"}.get(mode, mode)]
                number = op(chunk, axis=axis, keepdims=True)
            if dtype.kind in "iu" and number.dtype != dtype:
                number = np.rint(number)
            number = astype(number, dtype=dtype, copy=False)
            wide = broadcast_to(number, (*x.shape[:axis], width, *x.shape[axis + 1 :]))
            pieces.insert(0, wide) if k == 0 else pieces.append(wide)
        x = concat(pieces, axis=axis)
    return x


def odd_reflection(x: Any, widths: Widths, mode: str) -> Any:
    """The operand continued so that its ends are centres of symmetry.

    Two reflections make a translation: with ``period = 2 * m`` the element ``period`` further on is
    larger by ``2 * (last - first)``, and in the second half of a period it is ``2 * last`` minus
    its mirror image.
    """
    rank, dtype = len(x.shape), x.dtype
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        m = n - 1 if mode == "reflect" else n
        positions = np.arange(-before, n + after)
        rounds, rest = np.divmod(positions, 2 * m) if m else (0 * positions, 0 * positions)
        mirrored = rest > n - 1
        mirror = 2 * m - rest - (mode == "symmetric")
        inner = take(x, made(np.where(mirrored, mirror, rest)), axis=axis)
        kind = x.dtype if x.dtype.kind in "fciu" else np.dtype(int)
        sign, of_last, of_first = (
            _along(v.astype(kind), axis, rank)
            for v in (np.where(mirrored, -1, 1), 2 * (rounds + mirrored), -2 * rounds)
        )
        first, last = _part(x, axis, slice(1)), _part(x, axis, slice(-1, None))
        x = multiply(of_last, last) + multiply(of_first, first) + multiply(sign, inner)
        x = x if x.dtype == dtype else x.astype(dtype)
    return x


def by_function(x: Any, widths: Widths, function: Callable[..., Any], options: Any) -> Any:
    """``function(vector, width, axis, options)`` fills the ends of each vector in place."""
    padded = OPS["pad_constant"](x, widths=widths)
    for axis, pair in enumerate(widths):
        moved = moveaxis(padded, axis, -1)
        shape = tuple(moved.shape)
        rows = reshape(moved, (-1, shape[-1]))
        filled = []
        for k in range(rows.shape[0]):
            row = copy(rows[k])
            function(row, pair, axis, options)
            filled.append(row)
        padded = moveaxis(reshape(stack(filled), shape), -1, axis) if filled else padded
    return padded


def check_options(mode: Any, options: dict[str, Any]) -> None:
    """Raise if an option has no meaning in a mode."""
    known = {
        "constant": {"constant_values"},
        "linear_ramp": {"end_values"},
        "reflect": {"reflect_type"},
        "symmetric": {"reflect_type"},
        **{name: {"stat_length"} for name in STATISTICS},
    }.get(mode, set())
    for name, value in options.items():
        if value is not None and name not in known:
            raise NumgradValueError(f"pad: {name} has no meaning in mode {mode!r}; leave it out")
    kind = options.get("reflect_type")
    if kind not in (None, "even", "odd"):
        raise NumgradValueError(f"pad: reflect_type is 'even' or 'odd', got {kind!r}")


def check_mode(mode: Any, modes: tuple[str, ...]) -> None:
    """Raise unless there is such a mode."""
    if not isinstance(mode, str):
        raise NumgradTypeError(f"pad: mode is a name or a function, got {mode!r}")
    if mode not in modes:
        raise NumgradValueError(f"pad: mode {mode!r} is not available; use one of {modes}")
