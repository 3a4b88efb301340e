"""Views of views as one view, those that change nothing as none; broadcasts outermost."""

from __future__ import annotations

from math import prod

import numpy as np

from numgrad.compiler.graph.graph import Graph, Length, Shape, TracedNode, Value
from numgrad.compiler.graph.sizes import same, same_shape
from numgrad.compiler.passes.index_pushdown import simplify_getitem
from numgrad.compiler.passes.rewriting import Rewriting, is_one, rewrite


def simplify_views(graph: Graph) -> int:
    """Combine views of views."""
    return rewrite(graph, _rule)


def _rule(to: Rewriting, node: TracedNode) -> Value | None:
    rule = _RULES.get(node.name)
    return None if rule is None else rule(to, node)


def _reshape(to: Rewriting, node: TracedNode) -> Value | None:
    (x,), (out,) = node.inputs, node.outputs
    if same_shape(x.shape, out.shape):
        return x
    if x.node.name == "reshape":
        return to.reshape(x.node.inputs[0], out.shape)
    if x.node.name == "broadcast_to":
        result = _repeated_groups(to, x, out)
        return None if result is None else to.broadcast(result, out.shape)
    return None


def _repeated_groups(to: Rewriting, x: Value, out: Value) -> Value | None:
    """The value that broadcasts to ``out``, a reshape of ``x`` broadcast, if no axis mixes."""
    runs = groups(x.shape, out.shape)
    if runs is None:
        return None
    (origin,) = x.node.inputs
    lead = x.ndim - origin.ndim
    varies = [a >= lead and not is_one(origin.shape[a - lead]) for a in range(x.ndim)]
    shape: list[Length] = [1] * out.ndim
    for before, after in runs:
        if all(varies[a] for a in before):
            for a in after:
                shape[a] = out.shape[a]
        elif any(varies[a] for a in before):
            return None
    lead = next((k for k, n in enumerate(shape) if not is_one(n)), out.ndim)
    return to.reshape(origin, tuple(shape[lead:]))


def _permute_dims(to: Rewriting, node: TracedNode) -> Value | None:
    (x,), (out,) = node.inputs, node.outputs
    axes = node.params["axes"]
    if _keeps_order(x, axes):
        return to.reshape(x, out.shape)
    if x.node.name == "permute_dims":
        return to.permute(x.node.inputs[0], [x.node.params["axes"][a] for a in axes])
    if x.node.name == "broadcast_to":
        (origin,) = x.node.inputs
        whole = to.reshape(origin, (1,) * (x.ndim - origin.ndim) + origin.shape)
        return to.broadcast(to.permute(whole, axes), out.shape)
    if x.node.name == "reshape" and any(map(is_one, x.shape)):  # these are inserted afterwards
        longer = [a for a, n in enumerate(x.shape) if not is_one(n)]
        bare = to.reshape(x, tuple(x.shape[a] for a in longer))
        order = [longer.index(a) for a in axes if a in longer]
        return to.reshape(to.permute(bare, order), out.shape)
    return None


def _keeps_order(x: Value, axes: tuple[int, ...]) -> bool:
    """Whether only axes of length 1 move."""
    longer = [a for a in axes if not is_one(x.shape[a])]
    return longer == sorted(longer)


def _broadcast_to(to: Rewriting, node: TracedNode) -> Value | None:
    (x,), (out,) = node.inputs, node.outputs
    if same_shape(x.shape, out.shape):
        return x
    if x.node.name == "broadcast_to":
        return to.broadcast(x.node.inputs[0], out.shape)
    if x.node.name == "reshape":
        (origin,) = x.node.inputs
        lead = x.ndim - origin.ndim
        if lead > 0 and same_shape(x.shape, (1,) * lead + origin.shape):
            return to.broadcast(origin, out.shape)
    lead = out.ndim - x.ndim
    if all(map(is_one, out.shape[:lead])) and same_shape(x.shape, out.shape[lead:]):
        return to.reshape(x, out.shape)
    return None


def _astype(to: Rewriting, node: TracedNode) -> Value | None:
    (x,), (out,) = node.inputs, node.outputs
    if x.dtype == out.dtype and not x.weak:
        return x
    if x.node.name == "astype" and _is_exact(x.node.inputs[0], x.dtype):
        return to.astype(x.node.inputs[0], out.dtype)
    if x.node.name == "broadcast_to":
        return to.broadcast(to.astype(x.node.inputs[0], out.dtype), out.shape)
    return None


def _is_exact(x: Value, dtype: np.dtype) -> bool:
    """Whether every element of ``x`` has the same value in another dtype."""
    wide_integer = x.dtype.kind in "iu" and x.dtype.itemsize == 8
    return np.can_cast(x.dtype, dtype, "safe") and not (wide_integer and dtype.kind in "fc")


def _real(to: Rewriting, node: TracedNode) -> Value | None:
    (x,), (out,) = node.inputs, node.outputs
    if x.dtype.kind != "c":
        return to.strong(x)
    if x.node.name == "conjugate":
        return to.add("real", x.node.inputs, {}, out.shape, out.dtype)
    if x.node.name == "from_parts":
        return to.standing_for(x.node.inputs[0], out)
    if x.node.name == "astype" and x.node.inputs[0].dtype == out.dtype:
        return to.strong(x.node.inputs[0])
    return None


def _imag(to: Rewriting, node: TracedNode) -> Value | None:
    (x,), (out,) = node.inputs, node.outputs
    return to.standing_for(x.node.inputs[1], out) if x.node.name == "from_parts" else None


def _diagonal(to: Rewriting, node: TracedNode) -> Value | None:
    (x,) = node.inputs
    same = x.node.name == "diagonal_backward" and all(
        x.node.params[name] == node.params[name] for name in ("offset", "axis1", "axis2")
    )
    return x.node.inputs[0] if same else None


_RULES = {
    "reshape": _reshape,
    "permute_dims": _permute_dims,
    "broadcast_to": _broadcast_to,
    "getitem": simplify_getitem,
    "astype": _astype,
    "real": _real,
    "imag": _imag,
    "diagonal": _diagonal,
}


# ------------------------------------------------------------------------------------------ groups


Group = tuple[tuple[int, ...], tuple[int, ...]]


def groups(before: Shape, after: Shape) -> list[Group] | None:
    """Pairs of the shortest runs of axes with equally many elements, in order.

    Axes of length 1 are in no run. None where lengths do not say how the axes correspond.
    """
    left, right = _longer(before), _longer(after)
    results: list[Group] = []
    i = j = 0
    while i < len(left) and j < len(right):
        k, m = i + 1, j + 1
        a, b = before[left[i]], after[right[j]]
        while not same(a, b):
            # the shorter run goes on; which one that is, symbols need not say
            if k == len(left) and m == len(right):
                return None
            if m == len(right) or (k < len(left) and not _is_part(a, right, after, j, m)):
                a, k = a * before[left[k]], k + 1
            else:
                b, m = b * after[right[m]], m + 1
        results.append((tuple(left[i:k]), tuple(right[j:m])))
        i, j = k, m
    return results if i == len(left) and j == len(right) else None


def _longer(shape: Shape) -> list[int]:
    return [a for a, n in enumerate(shape) if not is_one(n)]


def _is_part(a: Length, right: list[int], after: Shape, j: int, m: int) -> bool:
    """Whether some longer run on the right has ``a`` elements."""
    return any(same(a, prod(after[x] for x in right[j:e])) for e in range(m, len(right) + 1))
