"""Operations that read or write at integers, or put arrays together or take them apart, as terms.

An index out of range reads the first element instead, and a check that comes out true tells that an
error is to be raised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numgrad.codegen.dtypes import BOOL, INT64
from numgrad.codegen.nests.polynomial import Length, add, constant, divide, multiply, value_of
from numgrad.codegen.nests.terms import GATHER, ONE, SCAN, SCATTER, Term, Terms, count
from numgrad.codegen.reduction_plan import identity
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.lower.index_range import is_place
from numgrad.compiler.lower.lowering import Lowering, lowering, operands, shape_of


def positions(terms: Terms, indices: Term, length: Length, *, wrap: bool = True) -> Term | None:
    """Indices counted from the front; None if there is nothing to index."""
    if indices.dtype.kind not in "iu" or value_of(length) == 0:
        return None
    n, zero = terms.size(length, INT64), terms.constant(0, INT64)
    index = terms.cast(indices, INT64)
    if is_place(terms, index, length):
        return index
    if wrap:
        back = terms.map("add", (index, n), INT64)
        index = where(terms, terms.map("less", (index, zero), BOOL), back, index)
    low = terms.map("greater_equal", (index, zero), BOOL)
    inside = terms.map("logical_and", (low, terms.map("less", (index, n), BOOL)), BOOL)
    require(terms, inside)
    return where(terms, inside, index, zero)


def require(terms: Terms, holds: Term) -> None:
    """Let an error be raised unless ``holds`` is true everywhere."""
    bad = terms.map("logical_not", (holds,), BOOL)
    if bad.shape:
        bad = terms.reduce("any", bad, tuple(range(len(bad.shape))))
    if bad not in terms.checks:
        terms.checks.append(bad)


def where(terms: Terms, condition: Term, a: Term, b: Term) -> Term:
    """``np.where`` for operands of one dtype."""
    return terms.map("where", (condition, a, b), a.dtype)


def spread(terms: Terms, x: Term, axis: int, shape: tuple[Length, ...]) -> Term:
    """``x`` broadcast to ``shape``, of which it has the axes from ``axis`` on."""
    rank = len(x.shape)
    return terms.broadcast(terms.insert(x, tuple(range(rank, len(shape) - axis))), shape)


def gather(terms: Terms, x: Term, index: Term, axis: int, span: int, shape: tuple) -> Term:
    """Elements at positions along an axis, in whose place ``span`` axes of ``shape`` come."""
    return terms.make(GATHER, (x, index), x.dtype, (axis, span), shape)


def scatter(
    terms: Terms,
    x: Term,
    index: Term,
    axis: int,
    span: int,
    shape: tuple[Length, ...],
    kind: str = "sum",
) -> Term:
    """The transpose of ``gather``: elements added at positions along an axis of ``shape``.

    Or the largest one of those at a position, for ``kind="max"``.
    """
    if shape[axis] == ONE:  # there is but one position
        return terms.insert(terms.reduce(kind, x, tuple(range(axis, axis + span))), (axis,))
    if all(n == ONE for n in x.shape[axis : axis + span]):
        gone = tuple(range(axis, axis + span))
        x, index = (
            terms.broadcast(terms.insert(terms.drop(a, gone), (axis,)), shape) for a in (x, index)
        )
        here = terms.map("equal", (index, terms.iota(shape, axis)), BOOL)
        none = x.dtype.type(identity(kind, x.dtype)).item()
        return where(terms, here, x, terms.constant(none, x.dtype))
    return terms.make(SCATTER, (x, index), x.dtype, (kind, (axis, span)), shape)


def last_writers(terms: Terms, index: Term, length: Length) -> tuple[Term, Term]:
    """For each of ``length`` places which of several writes in order is the last, and if any is."""
    order = terms.iota(index.shape)
    writer = scatter(terms, order, index, 0, 1, (length,), "max")
    zero = terms.constant(0, INT64)
    written = terms.map("greater_equal", (writer, zero), BOOL)
    return where(terms, written, writer, zero), written


# ------------------------------------------------------------------------------------- operations


def _axis(node: TracedNode, rank: int) -> int:
    return int(node.params["axis"]) % rank


@lowering("take")
def _take(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices = args
    if node.params["axis"] is None:
        x, axis = terms.reshape(x, (count(x.shape),)), 0
    else:
        axis = _axis(node, len(x.shape))
    index = positions(terms, indices, x.shape[axis])
    if index is None:
        return None
    shape = shape_of(terms, node)
    span = len(indices.shape)
    return gather(terms, x, spread(terms, index, axis, shape), axis, span, shape)


@lowering("take_backward")
def _take_backward(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices = args
    shape = shape_of(terms, node)
    whole = shape
    if node.params["axis"] is None:
        whole, axis = (count(shape),), 0
    else:
        axis = _axis(node, len(shape))
    index = positions(terms, indices, whole[axis])
    if index is None or x.dtype.kind == "b":
        return None
    index = spread(terms, index, axis, x.shape)
    added = scatter(terms, x, index, axis, len(indices.shape), whole)
    return terms.reshape(added, shape)


@lowering("gather_along")
def _gather_along(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices = args
    axis = _axis(node, len(x.shape))
    index = positions(terms, indices, x.shape[axis])
    return None if index is None else gather(terms, x, index, axis, 1, indices.shape)


@lowering("gather_along_backward")
def _gather_along_backward(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices = args
    shape = shape_of(terms, node)
    axis = _axis(node, len(shape))
    index = positions(terms, indices, shape[axis])
    if index is None or x.dtype.kind == "b":
        return None
    return scatter(terms, x, index, axis, 1, shape)


@lowering("add_along")
def _add_along(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices, source = args
    axis = _axis(node, len(x.shape))
    index = positions(terms, indices, x.shape[axis])
    if index is None or x.dtype.kind == "b":
        return None
    added = scatter(terms, terms.cast(source, x.dtype), index, axis, 1, x.shape)
    return terms.map("add", (x, added), x.dtype)


@lowering("index_add")
def _index_add(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices, source = args
    alpha = node.params.get("alpha", 1)
    axis = _axis(node, len(x.shape))
    index = positions(terms, indices, x.shape[axis])
    if index is None or alpha != 1 or x.dtype.kind == "b":
        return None
    index = spread(terms, terms.reshape(index, (count(index.shape),)), axis, source.shape)
    added = scatter(terms, terms.cast(source, x.dtype), index, axis, 1, x.shape)
    return terms.map("add", (x, added), x.dtype)


@lowering("bincount")
def _bincount(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    bins, weights = operands(node, args, 2)
    assert bins is not None
    dtype, shape = node.outputs[0].dtype, shape_of(terms, node)
    index = positions(terms, bins, shape[0], wrap=False)
    if index is None:
        return None
    added = terms.constant(1, dtype) if weights is None else terms.cast(weights, dtype)
    return scatter(terms, terms.broadcast(added, bins.shape), index, 0, 1, shape)


@lowering("flat_positions")
def _flat_positions(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (indices,) = args
    shape = terms.shape(node.params["shape"])
    axis = _axis(node, len(shape))
    index = positions(terms, indices, shape[axis])
    if index is None:
        return None
    total, stride = terms.constant(0, INT64), ONE
    for a in range(len(shape) - 1, -1, -1):
        along = index if a == axis else terms.iota(indices.shape, a)
        offset = terms.map("multiply", (along, terms.size(stride, INT64)), INT64)
        total = terms.map("add", (offset, total), INT64)
        stride = multiply(stride, shape[a])
    return terms.broadcast(total, indices.shape)


@lowering("last_writes")
def _last_writes(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (indices,) = args
    index = _flat_place(terms, indices, terms.length(node.params["size"]))
    if index is None:
        return None
    writer, _ = last_writers(terms, index, terms.length(node.params["size"]))
    last = gather(terms, writer, index, 0, 1, index.shape)
    kept = terms.map("equal", (last, terms.iota(index.shape)), BOOL)
    return terms.reshape(kept, indices.shape)


def _flat_place(terms: Terms, indices: Term, length: Length) -> Term | None:
    """Positions of indices on one axis, unless there are none."""
    if value_of(count(indices.shape)) == 0:
        return None
    index = positions(terms, indices, length)
    return None if index is None else terms.reshape(index, (count(indices.shape),))


@lowering("put")
def _put(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices, values = args
    whole, size = (count(x.shape),), (count(indices.shape),)
    index = _flat_place(terms, indices, whole[0])
    if index is None or count(values.shape) not in (size[0], ONE):
        return None
    values = terms.reshape(terms.cast(values, x.dtype), (count(values.shape),))
    values, flat = terms.broadcast(values, size), terms.reshape(x, whole)
    if not node.params["accumulate"]:
        writer, written = last_writers(terms, index, whole[0])
        written_values = gather(terms, values, writer, 0, 1, whole)
        return terms.reshape(where(terms, written, written_values, flat), x.shape)
    if x.dtype.kind == "b":
        return None
    added = scatter(terms, values, index, 0, 1, whole)
    return terms.reshape(terms.map("add", (flat, added), x.dtype), x.shape)


@lowering("index_copy")
def _index_copy(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices, source = args
    axis = _axis(node, len(x.shape))
    index = _flat_place(terms, indices, x.shape[axis])
    if index is None:
        return None
    writer, written = last_writers(terms, index, x.shape[axis])
    writer, written = (spread(terms, a, axis, x.shape) for a in (writer, written))
    copied = gather(terms, terms.cast(source, x.dtype), writer, axis, 1, x.shape)
    return where(terms, written, copied, x)


@lowering("index_fill")
def _index_fill(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices, value = args
    axis = _axis(node, len(x.shape))
    index = _flat_place(terms, indices, x.shape[axis])
    if index is None:
        return None
    _, written = last_writers(terms, index, x.shape[axis])
    return where(terms, spread(terms, written, axis, x.shape), terms.cast(value, x.dtype), x)


def _extreme(kind: str) -> Lowering:
    def read(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
        (x,) = args
        axis = node.params["axis"]
        rank = len(x.shape)
        axes = tuple(range(rank)) if axis is None else (int(axis) % rank,)
        if not rank or any(value_of(x.shape[a]) == 0 for a in axes):
            return None
        extreme = terms.broadcast(terms.insert(terms.reduce(kind, x, axes), axes), x.shape)
        is_extreme = terms.map("equal", (x, extreme), BOOL)
        if x.dtype.kind in "fc":
            is_extreme = terms.map("logical_or", (is_extreme, terms.map("isnan", (x,), BOOL)), BOOL)
        index = terms.iota(x.shape, None if axis is None else axes[0])
        never = terms.constant(np.iinfo(INT64).max, INT64)
        first = terms.reduce("min", where(terms, is_extreme, index, never), axes)
        return terms.insert(first, axes) if node.params["keepdims"] else first

    return read


def _scan(kind: str) -> Lowering:
    def read(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
        shape, dtype = shape_of(terms, node), node.outputs[0].dtype
        x = terms.cast(args[0], dtype)
        axis = node.params["axis"]
        if not x.shape or dtype.kind == "b":
            return None
        if axis is None:
            return scan(terms, kind, (terms.reshape(x, shape),), 0)
        return scan(terms, kind, (x,), int(axis) % len(shape))

    return read


@lowering("linear_recurrence")
def _linear_recurrence(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    dtype = node.outputs[0].dtype
    axis = _axis(node, len(args[0].shape))
    a, b = (terms.cast(x, dtype) for x in args)
    if not node.params["reverse"]:
        return scan(terms, "recurrence", (b, a), axis)
    a, b = (reverse(terms, x, axis) for x in (a, b))
    return reverse(terms, scan(terms, "recurrence", (b, a), axis), axis)


def scan(terms: Terms, kind: str, args: Sequence[Term], axis: int) -> Term:
    """Sum or product of everything up to each element, or a linear recurrence."""
    x = args[0]
    if x.shape[axis] == ONE:
        return x
    return terms.make(SCAN, tuple(args), x.dtype, (kind, axis), x.shape)


def reverse(terms: Terms, x: Term, axis: int) -> Term:
    """The elements along an axis from the end."""
    last = add(x.shape[axis], constant(-1))
    index = tuple((last, constant(-1)) if a == axis else ((), ONE) for a in range(len(x.shape)))
    return terms.view("getitem", x, index, x.shape)


lowering("argmax")(_extreme("max"))
lowering("argmin")(_extreme("min"))
lowering("cumsum")(_scan("sum"))
lowering("cumprod")(_scan("prod"))


MANY, SMALL = 16, 2048
"""Arrays up to which they are joined here: every element asks which one it belongs to. A result of
few elements may have more of them."""


def parts_of(terms: Terms, index: tuple, shape: tuple[Length, ...]) -> tuple[tuple, ...]:
    """A canonical index into ``shape``, as terms place an array there."""
    parts: list[tuple] = []
    for entry in index:
        if not isinstance(entry, slice):
            parts.append((terms.length(entry),))
            continue
        start, stop = terms.length(entry.start), terms.length(entry.stop)
        distance = add(stop, start, -1)
        parts.append((start, entry.step, divide("//", distance, constant(entry.step))))
    return tuple(parts)


def place(
    terms: Terms, x: Term, other: Term, parts: tuple[tuple, ...], shape: tuple[Length, ...]
) -> Term:
    """An array at an index of another one, to which it broadcasts."""
    inner = tuple([entry[2] for entry in parts if len(entry) == 3])
    surplus = len(x.shape) - len(inner)
    if surplus > 0:  # axes of length 1 that the index had added
        x = terms.reshape(x, inner)
    x = terms.broadcast(x, inner)
    if all(len(entry) == 3 and entry == ((), 1, n) for entry, n in zip(parts, shape, strict=True)):
        return x
    return terms.choose("place", (x, other), parts, shape)


def _zero(terms: Terms, x: Term) -> Term:
    return terms.constant(x.dtype.type(0).item(), x.dtype)


@lowering("getitem_backward")
def _getitem_backward(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    (x,) = args
    shape = shape_of(terms, node)
    return place(terms, x, _zero(terms, x), parts_of(terms, node.params["index"], shape), shape)


@lowering("index_put")
def _index_put(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    x, values = args
    shape = x.shape
    values = terms.cast(values, x.dtype)
    parts = parts_of(terms, node.params["index"], shape)
    if not node.params["accumulate"]:
        return place(terms, values, x, parts, shape)
    inner = tuple([entry[2] for entry in parts if len(entry) == 3])
    there = terms.view("getitem", x, tuple([_position(entry) for entry in parts]), inner)
    surplus = len(values.shape) - len(inner)
    values = terms.reshape(values, inner) if surplus > 0 else values
    new = terms.map("add" if x.dtype.kind != "b" else "logical_or", (there, values), x.dtype)
    return place(terms, new, x, parts, shape)


def _position(entry: tuple) -> tuple:
    return entry if len(entry) == 1 else (entry[0], constant(entry[1]))


@lowering("pad_constant")
def _pad_constant(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (x,) = args
    values = node.params.get("values", 0)
    if isinstance(values, np.ndarray) and values.ndim == 0:
        values = values[()]
    if not isinstance(values, int | float | complex | np.generic):
        return None
    other = terms.constant(np.asarray(values).astype(x.dtype).item(), x.dtype)
    parts = tuple(
        (terms.length(before), 1, n)
        for (before, _), n in zip(node.params["widths"], x.shape, strict=True)
    )
    return place(terms, x, other, parts, shape_of(terms, node))


def _join(terms: Terms, pieces: list[Term], axis: int, shape: tuple[Length, ...]) -> Term | None:
    kept = [p for p in pieces if p.shape[axis]] or pieces[:1]
    if len(kept) > (MANY if terms.sizes.hint_of(count(shape)) > SMALL else 4 * MANY):
        return None
    return kept[0] if len(kept) == 1 else terms.choose("join", kept, axis, shape)


@lowering("concat")
def _concat(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    out = node.outputs[0]
    axis = node.params.get("axis", 0)
    pieces = [terms.cast(x, out.dtype) for x in args]
    if axis is None:
        pieces = [terms.reshape(x, (count(x.shape),)) for x in pieces]
        return _join(terms, pieces, 0, shape_of(terms, node))
    return _join(terms, pieces, int(axis) % out.ndim, shape_of(terms, node))


@lowering("stack")
def _stack(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    out = node.outputs[0]
    axis = int(node.params.get("axis", 0)) % out.ndim
    pieces = [terms.insert(terms.cast(x, out.dtype), (axis,)) for x in args]
    return _join(terms, pieces, axis, shape_of(terms, node))


@lowering("roll")
def _roll(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (x,) = args
    shift, axis = node.params["shift"], node.params.get("axis")
    whole = x.shape
    if axis is None:
        x, axis = terms.reshape(x, (count(whole),)), 0
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes) or not all(isinstance(s, int | np.integer | Size) for s in shifts):
        return None
    for one, by in zip(axes, shifts, strict=True):
        a = int(one) % len(x.shape)
        n = x.shape[a]
        if value_of(n) in (0, 1):
            continue
        by = int(by) if isinstance(by, np.integer) else by
        moved = terms.length(by)
        steps = value_of(moved)
        if steps is not None and terms.sizes.exceeds(n, abs(steps)):
            moved = add(moved, n) if steps < 0 else moved
        else:
            moved = divide("%", moved, n)
        if not moved:
            continue
        head = _slice(terms, x, a, add(n, moved, -1), moved)
        tail = _slice(terms, x, a, (), add(n, moved, -1))
        x = terms.choose("join", (head, tail), a, x.shape)
    return terms.reshape(x, whole)


def _slice(terms: Terms, x: Term, axis: int, start: Length, length: Length) -> Term:
    index = tuple((start if a == axis else (), ONE) for a in range(len(x.shape)))
    shape = tuple(length if a == axis else n for a, n in enumerate(x.shape))
    return terms.view("getitem", x, index, shape)


def _triangle(lower: bool) -> Lowering:
    def read(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
        shape = shape_of(terms, node)
        k = node.params.get("k", 0)
        if len(shape) < 2 or not isinstance(k, int | np.integer | Size):
            return None
        x = terms.broadcast(args[0], shape)
        offset = terms.length(int(k) if isinstance(k, np.integer) else k)
        return terms.choose("triangle", (x, _zero(terms, x)), (offset, lower), shape)

    return read


@lowering("diagonal")
def _diagonal(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    return terms.view("diagonal", args[0], _axes(node, len(args[0].shape)), shape_of(terms, node))


@lowering("diagonal_backward")
def _diagonal_backward(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    (x,) = args
    shape = shape_of(terms, node)
    return terms.choose("diagonal", (x, _zero(terms, x)), _axes(node, len(shape)), shape)


def _axes(node: TracedNode, rank: int) -> tuple[int, int, int]:
    params = node.params
    return (
        int(params.get("offset", 0)),
        int(params.get("axis1", 0)) % rank,
        int(params.get("axis2", 1)) % rank,
    )


@lowering("iota")
def _iota(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    return terms.iota(shape_of(terms, node))


lowering("tril")(_triangle(True))
lowering("triu")(_triangle(False))
