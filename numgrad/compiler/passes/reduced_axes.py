"""Reductions over the axes as they lie in memory, once each, and over no more than needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.compiler.graph.graph import Graph, Length, TracedNode, Value
from numgrad.compiler.passes.rewriting import Rewriting, is_one, rewrite
from numgrad.compiler.passes.views import groups
from numgrad.core.axis import AxisOp

_ANY_ORDER = ("sum", "mean", "prod", "max", "min", "any", "all", "count_nonzero", "var", "std")
_ANY_ORDER += ("logsumexp", "norm2")
"""Reductions that need not know which of the reduced axes an element is on."""

_IN_STEPS = ("sum", "prod", "max", "min", "any", "all")
"""Reductions over some axes of a reduction over others, together one."""

_OF_ONE = ("sum", "prod", "max", "min")
"""Reductions that give a single element back."""

_OF_EQUALS = ("mean", "max", "min", "any", "all")
"""Reductions of equal elements to such an element; a sum multiplies it."""


def simplify_reductions(graph: Graph) -> int:
    """Reduce earlier, fewer elements and in fewer steps."""
    return rewrite(graph, _rule)


def simplify_sums_of_products(graph: Graph) -> int:
    """Sum factors instead of products, as ``contract`` allows.

    It is less work, but an infinite factor can give an infinity where the sum of the products is
    NaN, a product that overflows may be missing, and a zero can have the other sign.
    """
    return rewrite(graph, _contracted)


def _contracted(to: Rewriting, node: TracedNode) -> Value | None:
    if not isinstance(node.op, AxisOp) or node.params.get("keepdims"):
        return None
    (x,), (out,) = node.inputs, node.outputs
    result = _negated(to, node, x, out)
    return _of_product(to, node, x, out) if result is None else result


def _rule(to: Rewriting, node: TracedNode) -> Value | None:
    if not isinstance(node.op, AxisOp) or node.op.keeps_shape:
        return None
    (x,), (out,) = node.inputs, node.outputs
    if node.params.get("keepdims"):
        return to.reshape(_reduced(to, node, x, node.params["axis"]), out.shape)
    for rule in (_short_axes, _steps, _permuted, _reshaped, _repeated):
        result = rule(to, node, x, out)
        if result is not None:
            return result
    return None


def _reduced(to: Rewriting, node: TracedNode, x: Value, axes: Sequence[int]) -> Value:
    """The reduction of another operand over other axes, which are dropped."""
    axes = tuple(sorted(axes))
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    params: dict[str, Any] = {**node.params, "axis": axes}
    if "keepdims" in params:
        params["keepdims"] = False
    return to.add(node.op, (x,), params, shape, node.outputs[0].dtype)


def _short_axes(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    axes = node.params["axis"]
    if node.name not in _OF_ONE:
        return None
    if not axes:
        return to.standing_for(x, out)
    short = [a for a in axes if is_one(x.shape[a])]
    if not short:
        return None
    left = [a for a in range(x.ndim) if a not in short]
    x = to.reshape(x, tuple(x.shape[a] for a in left))
    return _reduced(to, node, x, [k for k, a in enumerate(left) if a in axes])


def _steps(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    inner = x.node
    if inner.name != node.name or node.name not in _IN_STEPS or to.is_shared(x):
        return None
    if x.dtype != out.dtype or inner.params.get("keepdims"):
        return None
    (origin,) = inner.inputs
    first = inner.params["axis"]
    axes_left = [a for a in range(origin.ndim) if a not in first]
    return _reduced(to, inner, origin, (*first, *(axes_left[a] for a in node.params["axis"])))


def _permuted(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    if x.node.name != "permute_dims" or node.name not in _ANY_ORDER:
        return None
    order, axes = x.node.params["axes"], node.params["axis"]
    result = _reduced(to, node, x.node.inputs[0], [order[a] for a in axes])
    left = [order[a] for a in range(x.ndim) if a not in axes]
    return to.permute(result, [sorted(left).index(a) for a in left])


def _reshaped(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    if x.node.name != "reshape" or node.name not in _ANY_ORDER:
        return None
    axes, (origin,) = node.params["axis"], x.node.inputs
    if len(axes) == x.ndim:
        return _reduced(to, node, origin, range(origin.ndim)) if origin.ndim else None
    runs = groups(origin.shape, x.shape)
    if runs is None or any(is_one(x.shape[a]) for a in axes):
        return None
    reduced: list[int] = []
    for before, after in runs:
        inside = [a in axes for a in after]
        if all(inside):
            reduced += before
        elif any(inside):
            return None
    return to.reshape(_reduced(to, node, origin, reduced), out.shape)


def _repeated(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    if x.node.name != "broadcast_to" or (node.name != "sum" and node.name not in _OF_EQUALS):
        return None
    axes, (origin,) = node.params["axis"], x.node.inputs
    lead = x.ndim - origin.ndim
    always = to.graph.sizes.always
    repeated = [
        a for a in axes if not is_one(x.shape[a]) and (a < lead or is_one(origin.shape[a - lead]))
    ]
    # of an empty axis nothing is repeated
    if not repeated or not all(always("<", 0, x.shape[a]) for a in repeated):
        return None
    whole = to.reshape(origin, (1,) * lead + origin.shape)
    shape = tuple(n for a, n in enumerate(whole.shape) if a not in repeated)
    rest = [a for a in range(x.ndim) if a not in repeated]
    result = to.reshape(whole, shape)
    result = _reduced(to, node, result, [k for k, a in enumerate(rest) if a in axes])
    if node.name == "sum":
        count: Length = 1
        for a in repeated:
            count = count * x.shape[a]
        result = to.elementwise("multiply", (result, to.size(count)), result)
    return to.broadcast(result, out.shape)


def _negated(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    """The sum of what is negated: negated in the end."""
    if node.name != "sum" or x.node.name != "negative" or x.dtype.kind != "f":
        return None
    (origin,) = x.node.inputs
    if not x.dtype == out.dtype == origin.dtype or origin.shape != x.shape or to.is_shared(x):
        return None
    return to.elementwise("negative", (_reduced(to, node, origin, node.params["axis"]),), out)


def _of_product(to: Rewriting, node: TracedNode, x: Value, out: Value) -> Value | None:
    """The sum over rows or columns of a matrix product: a product with a single row or column.

    Both are sums over the same products, in another order.
    """
    if node.name != "sum" or x.node.name != "matmul" or x.dtype.kind != "f" or to.is_shared(x):
        return None
    a, b = x.node.inputs
    axes = node.params["axis"]
    if min(a.ndim, b.ndim) < 2 or not a.dtype == b.dtype == x.dtype == out.dtype:
        return None
    if axes == (x.ndim - 1,):
        b = to.reshape(_reduced(to, node, b, (b.ndim - 1,)), (*b.shape[:-1], 1))
    elif axes == (x.ndim - 2,):
        a = to.reshape(_reduced(to, node, a, (a.ndim - 2,)), (*a.shape[:-2], 1, a.shape[-1]))
    else:
        return None
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    return to.reshape(to.add("matmul", (a, b), {}, shape, out.dtype), out.shape)
