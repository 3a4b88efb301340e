"""Methods of ufuncs, of which each folds what meets in a group by an operation.

``ufunc.at`` folds what is written to one element, in C order of the index, as NumPy does. Elements
are sorted by how often they are written to; a step of the fold is a call for all that have still
something to take, so that there are as many calls as the largest group has members, and every
value is read once. ``ufunc.reduce`` and ``ufunc.reduceat`` fold the elements of axes and of
segments: in pairs of pairs where the ufunc is associative, which takes few calls and rounds little,
else, as ``ufunc.accumulate`` does, one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength, made
from numgrad.core.axis import normalize_axes
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import checked
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.operations.index import index_array, is_basic_part
from numgrad.operations.scatter import multiply_at
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import numbers_of
from numgrad.operations.write import converted, index_parts, positions_of
from numgrad.tensors.inplace import positions_by_example
from numgrad.tensors.tensor import Tensor

_ASSOCIATIVE = {
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2,
    np.hypot, np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or,
    np.bitwise_xor, np.gcd, np.lcm,
}  # fmt: skip


def _is_known(part: Any) -> bool:
    """Whether the numbers of a part of an index are known."""
    if isinstance(part, list | tuple):
        return all(map(_is_known, part))
    if isinstance(part, slice):
        return all(map(_is_known, (part.start, part.stop, part.step)))
    return not isinstance(part, Tensor | AbstractLength) or state.ground.numbers(part) is not None


def _known_part(part: Any, shape: tuple[int, ...]) -> Any:
    basic = is_basic_part(part) or isinstance(part, slice)
    return part if basic else index_array(part, shape)


def _positions(name: str, x: Any, index: Any) -> Any:
    """Positions in C order of what an index selects: an array where its numbers are known."""
    shape = tuple(x.shape)
    by_example = positions_by_example(x, index)
    if by_example is not None:
        return by_example
    if _is_known(index):
        shape = tuple(map(int, shape))
        parts = index_parts(name, shape, index, _known_part)
        whole = np.broadcast_to(0, shape)
        checked(name, whole, itemgetter(parts), whole)
        return positions_of(shape, itemgetter(parts))
    parts = index_parts(name, shape, index)
    if any(isinstance(part, Tensor) and part.dtype == bool for part in parts):
        raise NumgradTypeError(
            f"{name}: how many elements a mask takes is not known before its numbers are; use "
            "np.where"
        )
    return state.ground.positions(name, shape, parts)


def _rows(x: Any, indices: np.ndarray) -> Any:
    return OPS["take"](x, made(indices), axis=0)


def _one_by_one(
    name: str, op: Op, first: Any, items: tuple, starts: np.ndarray, counts: np.ndarray
) -> Any:
    """Each row of ``first`` folded with ``counts`` rows of the items, from ``starts`` on.

    ``counts`` must not increase. The dtype stays that of ``first``.
    """
    dtype, done, current = first.dtype, [], first
    for k in range(int(counts[0]) if counts.size else 0):
        left = int(np.count_nonzero(counts > k))
        if left < current.shape[0]:
            done.append(current[left:])
            current = current[:left]
        rows = [_rows(item, starts[:left] + k) for item in items]
        current = converted(name, op(current, *rows), dtype)
    return OPS["concat"](current, *reversed(done), axis=0) if done else current


def _in_pairs(op: Op, x: Any, counts: np.ndarray) -> Any:
    """Groups of ``counts`` neighbouring rows, none of them 0, folded to one row each."""
    while counts.max(initial=1) > 1:
        starts, halves = np.cumsum(counts) - counts, (counts + 1) // 2
        within = np.arange(halves.sum()) - np.repeat(np.cumsum(halves) - halves, halves)
        left = np.repeat(starts, halves) + 2 * within
        paired = 2 * within + 1 < np.repeat(counts, halves)
        both = left[paired]
        found = op(_rows(x, both), _rows(x, both + 1))
        if not paired.all():
            parts = [found, _rows(x, left[~paired])]
            order = np.argsort(np.argsort(~paired, kind="stable"), kind="stable")
            found = _rows(OPS["concat"](*parts), order)
        x, counts = found, halves
    return x


def updated(name: str, ufunc: np.ufunc, op: Op, target: Any, index: Any, *values: Any) -> Any:
    """``target`` as ``ufunc.at(target, index, *values)`` leaves it."""
    x = as_operand(target)
    positions = _positions(name, x, index)
    region = tuple(positions.shape)
    given = [OPS["broadcast_to"](as_operand(v), region) for v in values]
    places = made(positions) if isinstance(positions, np.ndarray) else positions
    if ufunc is np.multiply:
        return multiply_at(x, places, converted(name, given[0], x.dtype))
    if ufunc in (np.maximum, np.minimum) and x.dtype.kind != "c":
        from numgrad.operations.scatter_reduce import extreme_at  # few programs need it

        value = converted(name, given[0], x.dtype)
        return extreme_at(x, places, value, largest=ufunc is np.maximum, include_self=True)
    numbers = numbers_of(name, positions).ravel()
    unique, counts = np.unique(numbers, return_counts=True)
    starts = np.cumsum(counts) - counts
    members, most = np.argsort(numbers, kind="stable"), np.argsort(-counts, kind="stable")
    flat = OPS["reshape"](x, (-1,))
    items = tuple([_rows(OPS["reshape"](v, (-1,)), members) for v in given])
    first = _rows(flat, unique[most])
    found = _one_by_one(name, op, first, items, starts[most], counts[most])
    return OPS["put"](x, made(unique[most]), found)


def _operand(op: Op, given: dict[str, Any]) -> Any:
    """The array in the dtype that it is folded in."""
    x, dtype = as_operand(given["array"]), given["dtype"]
    if dtype is None and op.name in ("add", "multiply"):
        dtype = np.add.reduce(np.zeros(0, x.dtype)).dtype  # of short integers wider than they are
    if dtype is None:
        dtype = op.result_types([x.dtype] * 2)[1] if isinstance(op, Elementwise) else x.dtype
    return x if np.dtype(dtype) == x.dtype else OPS["astype"](x, dtype=dtype)


def reduce(name: str, ufunc: np.ufunc, op: Op, given: dict[str, Any]) -> Any:
    """``ufunc.reduce`` of what is recorded, traced or batched."""
    own = "initial" not in given
    if ufunc is np.logaddexp and own and given["dtype"] is None:
        return OPS["logsumexp"](given["array"], axis=given["axis"], keepdims=given["keepdims"])
    x = _operand(op, given)
    shape = tuple(x.shape)
    axes = normalize_axes(name, given["axis"], len(shape))
    if len(axes) > 1 and ufunc not in _ASSOCIATIVE:
        raise NumgradValueError(
            f"{name}: axis={given['axis']!r} of an operand of shape {shape}; the order of operands "
            "matters, so give one axis"
        )
    count = prod([int(shape[axis]) for axis in axes])
    initial = ufunc.identity if own else given["initial"]
    if initial is None and not count:
        raise NumgradValueError(
            f"{name}: the reduced axes of an operand of shape {shape} have no elements, and there "
            "is no value for that; give initial="
        )
    x = OPS["moveaxis"](x, axes, tuple(range(len(axes))))
    x = OPS["reshape"](x, (count, *x.shape[len(axes) :]))
    if initial is not None and (count < 2 or not own):  # where it changes something
        first = OPS["astype"](as_operand(initial), dtype=x.dtype)
        first = OPS["broadcast_to"](first, (1, *x.shape[1:]))
        x, count = OPS["concat"](first, x, axis=0), count + 1
    if ufunc in _ASSOCIATIVE:
        found = _in_pairs(op, x, np.array([count]))[0]
    else:
        *_, found = _folded(name, op, x)
    if given["keepdims"]:
        found = OPS["expand_dims"](found, axis=axes)
    return found


def accumulate(name: str, ufunc: np.ufunc, op: Op, given: dict[str, Any]) -> Any:
    """``ufunc.accumulate`` of what is recorded, traced or batched."""
    x = _operand(op, given)
    axes = normalize_axes(name, given["axis"], len(x.shape))
    if len(axes) != 1:
        raise NumgradValueError(
            f"{name}: axis={given['axis']!r} of an operand of shape {tuple(x.shape)}; give one axis"
        )
    if not x.shape[axes[0]]:
        return x
    return OPS["stack"](*_folded(name, op, OPS["moveaxis"](x, axes[0], 0)), axis=axes[0])


def _folded(name: str, op: Op, x: Any) -> Iterator[Any]:
    """The first row of ``x``, that with the second, ..."""
    rows = OPS["unstack"](x, axis=0)
    return itertools.accumulate(rows, lambda a, b: converted(name, op(a, b), x.dtype))


def reduceat(name: str, ufunc: np.ufunc, op: Op, given: dict[str, Any]) -> Any:
    """``ufunc.reduceat`` of what is recorded, traced or batched."""
    x, indices = _operand(op, given), numbers_of(name, given["indices"])
    axis = given["axis"]
    if axis is None or isinstance(axis, tuple) or not len(x.shape):
        raise NumgradValueError(
            f"{name}: axis={axis!r} of an operand of shape {tuple(x.shape)}; give one axis"
        )
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise NumgradTypeError(
            f"{name}: indices of dtype {indices.dtype} and shape {indices.shape}; they must be "
            "integers along one axis"
        )
    (axis,) = normalize_axes(name, axis, len(x.shape))
    length, indices = int(x.shape[axis]), indices.astype(np.int64)
    outside = (indices < 0) | (indices >= length)
    if outside.any():
        raise NumgradIndexError(
            f"{name}: index {indices[outside][0]} is outside of axis {axis} of length {length}"
        )
    x = OPS["moveaxis"](x, axis, 0)
    # a segment goes up to the next index, or is one element if that is not behind it
    counts = np.maximum(np.append(indices[1:], length) - indices, 1)[: indices.size]
    if ufunc in _ASSOCIATIVE:
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        members = np.repeat(indices, counts) + within
        found = _in_pairs(op, _rows(x, members), counts)
    else:
        most = np.argsort(-counts, kind="stable")
        first = _rows(x, indices[most])
        found = _one_by_one(name, op, first, (x,), indices[most] + 1, counts[most] - 1)
        found = _rows(found, np.argsort(most))
    return OPS["moveaxis"](found, 0, axis)
