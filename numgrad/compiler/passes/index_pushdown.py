"""Indexing closer to where arrays come from: less is computed, and parts are found again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.compiler.graph.graph import Length, TracedNode, Value
from numgrad.compiler.graph.sizes import Size, Sizes, same, same_shape
from numgrad.compiler.passes.rewriting import Rewriting, is_full, is_one, length_of
from numgrad.core.elementwise import Elementwise
from numgrad.dataclass import dataclass


def simplify_getitem(to: Rewriting, node: TracedNode) -> Value | None:
    """The index that replaces one of ``node`` into the result of another node."""
    (x,), (out,) = node.inputs, node.outputs
    index = node.params["index"]
    if all(map(_takes_all, index, x.shape)):
        return to.reshape(x, out.shape)
    rule = _RULES.get(x.node.name)
    result = None if rule is None else rule(to, x, index, out)
    if result is None and isinstance(x.node.op, Elementwise):
        return _of_elementwise(to, x, index, out)
    return result


def _takes_all(entry: Any, length: Length) -> bool:
    """Whether no element of an axis is left out, nor moved."""
    one = is_one(length) and (not isinstance(entry, slice) or is_one(length_of(entry)))
    return one or is_full(entry, length)


def _of_getitem(to: Rewriting, x: Value, index: tuple, out: Value) -> Value:
    rest = iter(index)
    parts = [
        _composed(entry, next(rest)) if isinstance(entry, slice) else entry
        for entry in x.node.params["index"]
    ]
    return to.getitem(x.node.inputs[0], parts)


def _composed(inner: slice, outer: Any) -> Any:
    """The index that takes ``outer`` of what ``inner`` takes."""
    start, step = inner.start, inner.step
    if not isinstance(outer, slice):
        return start + outer * step
    return slice(start + outer.start * step, start + outer.stop * step, step * outer.step)


def _of_permute(to: Rewriting, x: Value, index: tuple, out: Value) -> Value:
    axes = x.node.params["axes"]
    parts: list[Any] = [None] * len(axes)
    for entry, axis in zip(index, axes, strict=True):
        parts[axis] = entry
    left = [axis for entry, axis in zip(index, axes, strict=True) if isinstance(entry, slice)]
    order = [sorted(left).index(axis) for axis in left]
    return to.permute(to.getitem(x.node.inputs[0], parts), order)


def _of_broadcast(to: Rewriting, x: Value, index: tuple, out: Value) -> Value:
    (origin,) = x.node.inputs
    parts = list(index[x.ndim - origin.ndim :])
    rest = []
    for k, n in enumerate(origin.shape):
        if is_one(n):
            parts[k] = slice(0, 1, 1) if isinstance(parts[k], slice) else 0
        rest += [n] if isinstance(parts[k], slice) else []
    return to.broadcast(to.getitem(origin, parts), out.shape)


def _of_reshape(to: Rewriting, x: Value, index: tuple, out: Value) -> Value | None:
    """Where the reshape does nothing but insert and drop axes of length 1."""
    (origin,) = x.node.inputs
    before = [a for a, n in enumerate(origin.shape) if not is_one(n)]
    after = [a for a, n in enumerate(x.shape) if not is_one(n)]
    if not same_shape(
        tuple(origin.shape[a] for a in before), tuple(x.shape[a] for a in after)
    ) or any(
        is_one(n) and isinstance(entry, slice) and not is_one(length_of(entry))
        for entry, n in zip(index, x.shape, strict=True)
    ):
        return None
    parts: list[Any] = [slice(0, 1, 1)] * origin.ndim
    for a, b in zip(before, after, strict=True):
        parts[a] = index[b]
    return to.reshape(to.getitem(origin, parts), out.shape)


def _of_stack(to: Rewriting, x: Value, index: tuple, out: Value) -> Value | None:
    axis = x.node.params["axis"] % x.ndim
    entry = index[axis]
    if type(entry) is not int or x.node.inputs[entry].dtype != x.dtype:
        return None
    return to.getitem(x.node.inputs[entry], (*index[:axis], *index[axis + 1 :]))


def _of_concat(to: Rewriting, x: Value, index: tuple, out: Value) -> Value | None:
    axis = x.node.params["axis"]
    if axis is None:
        return None
    axis %= x.ndim
    entry, offset = index[axis], 0
    if isinstance(entry, slice) and not same(entry.step, 1):
        return None
    first, stop = (entry.start, entry.stop) if isinstance(entry, slice) else (entry, entry + 1)
    always = to.graph.sizes.always
    for operand in x.node.inputs:
        end = offset + operand.shape[axis]
        if always("<=", offset, first) and always("<=", stop, end) and operand.dtype == x.dtype:
            moved = _shifted(entry, offset)
            return to.getitem(operand, (*index[:axis], moved, *index[axis + 1 :]))
        offset = end
    return None


def _shifted(entry: Any, offset: Length) -> Any:
    if isinstance(entry, slice):
        return slice(entry.start - offset, entry.stop - offset, entry.step)
    return entry - offset


@dataclass(frozen=True)
class _Hop:
    """One step down a chain of writes and of sums with arrays that are zero but in one place.

    ``value`` was written or added at the index ``place``; elsewhere there is ``rest``, or zeros.
    ``axis`` is one along which the place is a number, ``number``.
    """

    added: bool
    place: tuple
    value: Value
    rest: Value | None
    axis: int | None
    number: Length

    def misses(self, to: Rewriting, index: tuple) -> bool:
        """Whether nothing at ``index`` is in the place."""
        if self.axis is not None and type(index[self.axis]) is int:
            return index[self.axis] != self.number
        return are_disjoint(to.graph.sizes, self.place, index)


def _hop(to: Rewriting, x: Value) -> _Hop | None:
    if x not in to.memory:
        to.memory[x] = _find_hop(x)
    return to.memory[x]


def _find_hop(x: Value) -> _Hop | None:
    node, rest = x.node, None
    part = x
    if node.name == "add":
        results = [v for v in node.inputs if v.node.name == "getitem_backward"]
        if not results or not all(same_shape(v.shape, x.shape) for v in node.inputs):
            return None
        part = results[0]
        rest = node.inputs[1] if part is node.inputs[0] else node.inputs[0]
    elif node.name == "index_put" and not node.params["accumulate"]:
        rest = node.inputs[0]
    elif node.name != "getitem_backward":
        return None
    index, value = part.node.params["index"], part.node.inputs[-1]
    if not is_basic(index, x) or value.dtype != x.dtype or (rest and rest.dtype != x.dtype):
        return None
    axis = next((a for a, p in enumerate(index) if type(p) is int), None)
    number = 0 if axis is None else index[axis]
    return _Hop(node.name == "add", index, value, rest, axis, number)


def _of_parts(to: Rewriting, x: Value, index: tuple, out: Value) -> Value | None:
    """The value written last at the index, and what was added there since."""
    start, result = x, None
    added: list[Value | None] = []  # None stands for zeros, which make 0.0 of -0.0
    while result is None:
        hop = _hop(to, x)
        if hop is None:
            break
        away = hop.misses(to, index)
        here = not away and same_index(hop.place, index)
        if not away and not here:
            break
        if hop.added:
            if here or added[-1:] != [None]:
                added.append(hop.value if here else None)
        elif here:
            result = to.broadcast(hop.value, out.shape)
        elif hop.rest is None:
            result = to.broadcast(to.zero(x.dtype), out.shape)
        x = hop.rest or x
    if result is None:
        if x is start:
            return None
        result = to.getitem(x, index)
    for value in reversed(added):
        if value is not None or x.dtype.kind in "fc":
            addend = to.zero(x.dtype) if value is None else value
            result = to.elementwise("add", (result, addend), out)
    return result


_MADE_OF_PARTS = ("stack", "concat", "index_put", "getitem_backward", "broadcast_to")


def _of_elementwise(to: Rewriting, x: Value, index: tuple, out: Value) -> Value | None:
    """One element, computed from those of operands of which some are at hand."""
    if out.shape or not any(v.node.name in _MADE_OF_PARTS for v in x.node.inputs):
        return None
    operands = []
    for v in x.node.inputs:
        parts = index[x.ndim - v.ndim :]
        parts_read = [0 if is_one(n) else entry for entry, n in zip(parts, v.shape, strict=True)]
        operands.append(to.getitem(v, parts_read))
    return to.elementwise(x.node.op, operands, out)


def are_disjoint(sizes: Sizes, a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two canonical indices have no element in common in any call."""
    for p, q in zip(a, b, strict=True):
        first, second = bounds(p), bounds(q)
        if first is None or second is None:
            continue
        if sizes.always("<=", first[1], second[0]) or sizes.always("<=", second[1], first[0]):
            return True
    return False


def is_basic(index: Any, whole: Value) -> bool:
    """Whether an index has one integer or slice for each axis."""
    return (
        isinstance(index, tuple)
        and len(index) == whole.ndim
        and all(isinstance(entry, slice | int | Size) for entry in index)
    )


def bounds(entry: Any) -> tuple[Length, Length] | None:
    """Start and stop of a part of an index that leaves nothing out in between."""
    if not isinstance(entry, slice):
        return entry, entry + 1
    return (entry.start, entry.stop) if same(entry.step, 1) else None


def same_index(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two canonical indices name the same elements in every call."""
    return len(a) == len(b) and all(map(_same_part, a, b))


def _same_part(a: Any, b: Any) -> bool:
    if isinstance(a, slice) and isinstance(b, slice):
        pairs = ((a.start, b.start), (a.stop, b.stop), (a.step, b.step))
        return all(same(x, y) for x, y in pairs)
    return not isinstance(a, slice) and not isinstance(b, slice) and same(a, b)


_RULES: dict[str, Callable[[Rewriting, Value, tuple, Value], Value | None]] = {
    "getitem": _of_getitem,
    "permute_dims": _of_permute,
    "broadcast_to": _of_broadcast,
    "reshape": _of_reshape,
    "stack": _of_stack,
    "concat": _of_concat,
    "getitem_backward": _of_parts,
    "index_put": _of_parts,
    "add": _of_parts,
}
