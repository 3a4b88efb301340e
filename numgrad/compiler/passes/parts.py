"""Arrays made part by part as one: what is written piece by piece, and gradients of pieces.

An array to which slices are written one after the other is their concatenation, and so is the sum
of arrays that are zero but for one slice each, as gradients of slices are. What was an array for
each slice becomes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.compiler.graph.graph import Graph, Length, TracedNode, Value
from numgrad.compiler.graph.sizes import same, same_shape
from numgrad.compiler.passes.index_pushdown import bounds, is_basic
from numgrad.compiler.passes.rewriting import Rewriting, is_full, rewrite
from numgrad.dataclass import dataclass


@dataclass(frozen=True)
class Part:
    """``value`` lies between ``start`` and ``stop`` of an axis; with ``one`` it lacks that axis."""

    axis: int
    start: Length
    stop: Length
    one: bool
    value: Value


def join_parts(graph: Graph) -> int:
    """Concatenate parts."""
    users = graph.users()
    roots = set(graph.roots())

    def is_inside(value: Value, name: str) -> bool:
        """Whether only the next node of a sum or of a chain of writes reads a value."""
        readers = users.get(value, [])
        if value in roots or len(readers) != 1 or readers[0].name != name:
            return False
        return name == "add" or readers[0].inputs[0] is value

    def rule(to: Rewriting, node: TracedNode) -> Value | None:
        if node.name == "add" and not is_inside(node.outputs[0], "add"):
            return _sum(to, node, is_inside)
        if node.name == "index_put" and not is_inside(node.outputs[0], "index_put"):
            return _writes(to, node, is_inside)
        return None

    return rewrite(graph, rule)


def _sum(to: Rewriting, node: TracedNode, is_inside: Callable[[Value, str], bool]) -> Value | None:
    """The sum of gradients of slices; zeros of the others are added to each, which is exact."""
    (out,) = node.outputs
    stack, parts = list(node.inputs), []
    while stack:
        value = stack.pop()
        inner = value.node
        if not same_shape(value.shape, out.shape) or value.dtype != out.dtype:
            return None
        if inner.name == "add" and is_inside(value, "add"):
            stack += inner.inputs
        elif inner.name == "getitem_backward":
            span = _part(out, inner.params["index"], to.now(inner.inputs[0]))
            if span is None:
                return None
            parts.append(span)
        else:
            return None
    parts = _ordered(to, out, parts)
    if parts is None:
        return None
    zero = to.zero(out.dtype)

    def piece(span: Part, shape: tuple[Length, ...]) -> Value:
        if out.dtype.kind not in "fc":
            return span.value
        return to.elementwise("add", (span.value, zero), span.value)

    return _joined(to, out, parts, piece, lambda start, stop, shape: to.broadcast(zero, shape))


def _writes(
    to: Rewriting, node: TracedNode, is_inside: Callable[[Value, str], bool]
) -> Value | None:
    """One after the other into an array of which nothing else was seen in between."""
    (out,) = node.outputs
    parts: list[Part] = []
    while True:
        base, written = (to.now(v) for v in node.inputs)
        span = _part(out, node.params["index"], written)
        if span is None or node.params["accumulate"] or written.dtype != out.dtype:
            return None
        parts.append(span)
        if not (base.node.name == "index_put" and is_inside(base, "index_put")):
            break
        node = base.node

    ordered = _ordered(to, out, parts)
    if ordered is None:
        return None

    def rest(start: Length, stop: Length, shape: tuple[Length, ...]) -> Value:
        index: list[Any] = [slice(0, n, 1) for n in base.shape]
        index[parts[0].axis] = slice(start, stop, 1)
        return to.getitem(base, index)

    return _joined(to, out, ordered, lambda span, shape: to.broadcast(span.value, shape), rest)


def _part(whole: Value, index: tuple, value: Value) -> Part | None:
    """The part that an index names, if it runs along one axis."""
    if not is_basic(index, whole):
        return None
    axes = [a for a, p in enumerate(index) if not is_full(p, whole.shape[a])]
    if len(axes) != 1:
        return None
    (axis,) = axes
    results = bounds(index[axis])
    one = not isinstance(index[axis], slice)
    return None if results is None else Part(axis, *results, one, value)


def _ordered(to: Rewriting, out: Value, parts: list[Part]) -> list[Part] | None:
    """Several parts in order, unless they may overlap."""
    sizes, axis = to.graph.sizes, parts[0].axis
    if len(parts) < 2 or any(span.axis != axis for span in parts):
        return None
    parts = sorted(parts, key=lambda span: sizes.hint(span.start))
    disjoint = all(sizes.always("<=", a, b) for a, b in _gaps(out, parts))
    return parts if disjoint else None


def _gaps(out: Value, parts: list[Part]) -> list[tuple[Length, Length]]:
    """The gaps before, between and after parts."""
    ends = [0, *(span.stop for span in parts)]
    starts = [*(span.start for span in parts), out.shape[parts[0].axis]]
    return list(zip(ends, starts, strict=True))


def _joined(
    to: Rewriting,
    out: Value,
    parts: list[Part],
    piece: Callable[[Part, tuple[Length, ...]], Value],
    rest: Callable[[Length, Length, tuple[Length, ...]], Value],
) -> Value:
    """All parts, and what is between them."""
    axis = parts[0].axis
    before, after = out.shape[:axis], out.shape[axis + 1 :]
    gaps = _gaps(out, parts)
    if all(span.one for span in parts) and all(same(a, b) for a, b in gaps):
        values = [piece(span, before + after) for span in parts]
        return to.add("stack", values, {"axis": axis}, out.shape, out.dtype)
    values = []
    for (end, start), span in zip(gaps, [*parts, None], strict=True):
        if not same(end, start):
            values.append(rest(end, start, (*before, start - end, *after)))
        if span is not None:
            shape = (*before, span.stop - span.start, *after)
            values.append(to.reshape(piece(span, before + after if span.one else shape), shape))
    return to.add("concat", values, {"axis": axis}, out.shape, out.dtype)
