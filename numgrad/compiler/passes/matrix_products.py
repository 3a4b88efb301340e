"""Matrix products as BLAS computes them: transposed operands, vectors, batches that broadcast."""

from __future__ import annotations

from numgrad.compiler.graph.graph import Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import same_shape
from numgrad.compiler.passes.rewriting import Rewriting, is_one, joint_shape, rewrite


def simplify_products(graph: Graph) -> int:
    """Bring matrix products into a form that reads operands where they are."""
    return rewrite(graph, _rule)


def transposed(value: Value) -> tuple[Value, bool]:
    """The matrices that are in memory, and whether the last two axes of ``value`` swap theirs."""
    if value.node.name == "permute_dims" and _swaps(value):
        return value.node.inputs[0], True
    return value, False


def _swaps(value: Value) -> bool:
    axes, rank = value.node.params["axes"], value.ndim
    return rank > 1 and axes == (*range(rank - 2), rank - 1, rank - 2)


def _rule(to: Rewriting, node: TracedNode) -> Value | None:
    if node.name == "permute_dims":
        return _result_transposed(to, node)
    if node.name != "matmul":
        return None
    (out,) = node.outputs
    a, b = node.inputs
    if a.ndim < 2 or b.ndim < 2:
        return None
    if is_one(a.shape[-1]) and out.dtype.kind != "b":  # nothing is summed
        return to.elementwise("multiply", (a, b), out)
    column, row = _vector(b, -1), _vector(a, -2)
    if column is not None:
        return to.reshape(_product(to, a, column, out), out.shape)
    if row is not None and b.ndim == 2:
        return to.reshape(_product(to, row, b, out), out.shape)
    left, right = _without_batch(a), _without_batch(b)
    if left is a and right is b:
        return None
    batch = joint_shape([left, right], out.shape)[:-2]
    shape = (*batch, *out.shape[-2:])
    return to.broadcast(to.add("matmul", (left, right), {}, shape, out.dtype), out.shape)


def _product(to: Rewriting, a: Value, b: Value, like: Value) -> Value:
    rows = a.shape[:-1]
    columns = b.shape[1:]
    return to.add("matmul", (a, b), {}, rows + columns, like.dtype)


def _vector(x: Value, axis: int) -> Value | None:
    """The vector that a matrix of one row (``axis=-2``) or one column (-1) shows."""
    if x.ndim != 2 or not is_one(x.shape[axis]) or x.node.name != "reshape":
        return None
    (origin,) = x.node.inputs
    return origin if origin.ndim == 1 else None


def _result_transposed(to: Rewriting, node: TracedNode) -> Value | None:
    """The transpose of a product as the product of transposes, which costs nothing."""
    (x,), (out,) = node.inputs, node.outputs
    if x.node.name != "matmul" or to.is_shared(x) or not _swaps(out):
        return None
    a, b = x.node.inputs
    if a.ndim < 2 or b.ndim < 2:
        return None
    return to.add("matmul", (_swap(to, b), _swap(to, a)), {}, out.shape, out.dtype)


def _swap(to: Rewriting, x: Value) -> Value:
    origin, flag = transposed(x)
    if flag:
        return origin
    return to.permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _without_batch(x: Value) -> Value:
    """The operand before it was repeated along the axes of a batch."""
    if x.node.name != "broadcast_to":
        return x
    (origin,) = x.node.inputs
    return origin if origin.ndim > 1 and same_shape(origin.shape[-2:], x.shape[-2:]) else x
