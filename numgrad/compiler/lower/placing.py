"""Operations that put arrays together or take them apart, as terms."""

from __future__ import annotations

import numpy as np

from numgrad.codegen.nests.polynomial import Length, add, constant, divide, value_of
from numgrad.codegen.nests.terms import ONE, Term, Terms, count
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.lower.lowering import Lowering, lowering, shape_of

MANY, SMALL = 16, 2048
"""Arrays up to which they are joined here: every element asks which one it belongs to. A result of
few elements may have more of them."""


def parts_of(terms: Terms, index: tuple, shape: tuple[Length, ...]) -> tuple[tuple, ...]:
    """A canonical index into ``shape``, as terms place an array there."""
    parts: list[tuple] = []
    for part in index:
        if not isinstance(part, slice):
            parts.append((terms.length(part),))
            continue
        start, stop = terms.length(part.start), terms.length(part.stop)
        distance = add(stop, start, -1)
        parts.append((start, part.step, divide("//", distance, constant(part.step))))
    return tuple(parts)


def place(
    terms: Terms, x: Term, other: Term, parts: tuple[tuple, ...], shape: tuple[Length, ...]
) -> Term:
    """An array at an index of another one, to which it broadcasts."""
    inner = tuple([part[2] for part in parts if len(part) == 3])
    surplus = len(x.shape) - len(inner)
    if surplus > 0:  # axes of length 1 that the index had added
        x = terms.reshape(x, inner)
    x = terms.broadcast(x, inner)
    if all(len(part) == 3 and part == ((), 1, n) for part, n in zip(parts, shape, strict=True)):
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
    inner = tuple([part[2] for part in parts if len(part) == 3])
    there = terms.view("getitem", x, tuple([_position(part) for part in parts]), inner)
    surplus = len(values.shape) - len(inner)
    values = terms.reshape(values, inner) if surplus > 0 else values
    new = terms.map("add" if x.dtype.kind != "b" else "logical_or", (there, values), x.dtype)
    return place(terms, new, x, parts, shape)


def _position(part: tuple) -> tuple:
    return part if len(part) == 1 else (part[0], constant(part[1]))


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
