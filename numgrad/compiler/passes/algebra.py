"""Elementwise operations that give back an operand, or that a cheaper one replaces exactly.

Note [Exact algebra]
--------------------
Every rule holds bit by bit for all numbers, infinities, NaNs and both zeros; of a NaN only that
it is one. So ``x - 0`` is ``x`` and ``x + (-0.0)`` is, but ``x + 0.0`` is not, for that turns -0.0
into 0.0: it goes only where ``x`` cannot be -0.0. ``x * 0`` stays, since it is NaN for infinities,
and so does all that sums in another order. Sums of a product with a factor that the sum does not
run over stay as well: ``sum(g * x)`` is NaN for ``g = inf, x = [1, 0]``, ``g * sum(x)`` infinite.
Sums over rows or columns of a matrix product become a product with fewer rows or columns only where
the user allows it (``contract``): see ``reductions``.

Broadcasting comes after computing: what broadcasts by itself is not repeated first, and a result
that repeats is computed once: ``exp(broadcast_to(x, n))`` becomes ``broadcast_to(exp(x), n)``. So
arrays of one number are that number wherever something is computed from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import CONSTANT, SIZE, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import same_shape
from numgrad.compiler.passes.rewriting import Rewriting, is_one, rewrite
from numgrad.core.elementwise import Elementwise


def move_broadcasts(graph: Graph) -> int:
    """Broadcast results instead of operands."""
    return rewrite(graph, _unbroadcast_rule)


def _unbroadcast_rule(to: Rewriting, node: TracedNode) -> Value | None:
    if not isinstance(node.op, Elementwise):
        return None
    if all(v.node.name not in REPEATING for v in node.inputs):
        return None
    results = [v if (s := source(v)) is v else to.strong(s) for v in node.inputs]
    if all(a is b for a, b in zip(results, node.inputs, strict=True)):
        return None
    (out,) = node.outputs
    return to.broadcast(to.elementwise(node.op, results, out), out.shape)


# ----------------------------------------------------------------------------------------- uniform


REPEATING = ("broadcast_to", "reshape")
"""Operations whose result may be a smaller value repeated."""


def source(value: Value) -> Value:
    """The smallest value that broadcasts to ``value``, axes matched from the right."""
    while True:
        node = value.node
        if node.name == "broadcast_to" or (node.name == "reshape" and _adds_leading_ones(value)):
            value = node.inputs[0]
        else:
            return value


def _adds_leading_ones(value: Value) -> bool:
    (before,) = value.node.inputs
    lead = value.ndim - before.ndim
    return (
        lead > 0
        and all(map(is_one, value.shape[:lead]))
        and same_shape(before.shape, value.shape[lead:])
    )


def constant_of(value: Value) -> Any:
    """The number that all elements are, if that is known, else None."""
    result = source(value)
    return result.node.params["value"] if result.node.op == CONSTANT else None


def simplify_algebra(graph: Graph) -> int:
    """Apply the exact rules."""
    return rewrite(graph, _rule)


def _rule(to: Rewriting, node: TracedNode) -> Value | tuple[Value, ...] | None:
    if node.name == "ruled":  # of use to derivatives only
        return node.inputs[node.params["count"] :]
    rule = _RULES.get(node.name)
    return None if rule is None else rule(to, node, node.outputs[0])


def _is(value: Value, number: Any, out: Value) -> bool:
    """Whether all elements are a number when they have the dtype of ``out``; zeros by sign."""
    result = constant_of(value)
    if result is None or result != number:
        return False
    return number != 0 or out.dtype.kind not in "fc" or _sign(result) == _sign(number)


def _sign(number: Any) -> tuple[bool, bool]:
    number = complex(number)
    return bool(np.signbit(number.real)), bool(np.signbit(number.imag))


def _argument(value: Value, name: str) -> Value | None:
    """The operand of ``value``, if it is the result of the operation of that name."""
    return value.node.inputs[0] if value.node.name == name else None


# ------------------------------------------------------------------------------- sums, products


def _multiply(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    a, b = node.inputs
    for x, other in ((a, b), (b, a)):
        if _is(other, 1, out) and out.dtype.kind != "c":
            return to.standing_for(x, out)
    x, y = _argument(a, "negative"), _argument(b, "negative")
    if x is not None and y is not None and a.dtype == b.dtype == out.dtype:
        return to.elementwise("multiply", (x, y), out)
    return None


def _divide(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    a, b = node.inputs
    if _is(b, 1, out) and out.dtype.kind == "f":
        return to.standing_for(a, out)
    return None


def _add(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    a, b = node.inputs
    if out.dtype.kind == "b":
        return None
    for x, other in ((a, b), (b, a)):
        gone = _is(other, -0.0, out) or (_is(other, 0.0, out) and _never_negative_zero(x))
        if gone and out.dtype.kind != "c":
            return to.standing_for(x, out)
        y = _argument(other, "negative")
        if y is not None and other.dtype == out.dtype == y.dtype:
            return to.elementwise("subtract", (x, y), out)
    return None


def _subtract(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    a, b = node.inputs
    if _is(b, 0.0, out) and out.dtype.kind != "c":
        return to.standing_for(a, out)
    y = _argument(b, "negative")
    if y is not None and b.dtype == out.dtype == y.dtype:
        return to.elementwise("add", (a, y), out)
    return None


_POSITIVE = ("exp", "exp2", "absolute", "square", "sigmoid")
"""Operations on real numbers whose result is not negative, nor -0.0."""


def _never_negative_zero(value: Value, depth: int = 6) -> bool:
    """Whether no element is -0.0, as far as a few operations back say."""
    if value.dtype.kind in "biu":
        return True
    result = source(value)
    node = result.node
    if constant_of(result) is not None:
        return result.constant != 0 or not any(_sign(result.constant))
    if node.op == SIZE or node.name in _POSITIVE:
        return True
    if depth == 0:
        return False
    if node.name == "add":  # rounded to nearest, only -0.0 + -0.0 is -0.0
        return any(_never_negative_zero(v, depth - 1) for v in node.inputs)
    if node.name == "subtract":  # only -0.0 - 0.0 is -0.0
        return _never_negative_zero(node.inputs[0], depth - 1)
    if node.name == "where":
        return all(_never_negative_zero(v, depth - 1) for v in node.inputs[1:])
    if node.name in ("reshape", "permute_dims", "getitem"):
        return _never_negative_zero(node.inputs[0], depth - 1)
    return False


# ------------------------------------------------------------------------- one operand, powers


def _negative(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    x = _argument(node.inputs[0], "negative")
    return None if x is None or x.dtype != out.dtype else to.standing_for(x, out)


def _identity(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    (x,) = node.inputs
    return to.standing_for(x, out) if x.dtype == out.dtype else None


def _second(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    return to.standing_for(node.inputs[1], out)


def _conjugate(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    if out.dtype.kind != "c":
        return _identity(to, node, out)
    x = _argument(node.inputs[0], "conjugate")
    return None if x is None else to.standing_for(x, out)


def _even(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    """A function for which the sign of its operand does not matter."""
    x = _argument(node.inputs[0], "negative")
    if x is not None and x.dtype == node.inputs[0].dtype and x.dtype.kind == "f":
        return to.elementwise(node.op, (x,), out)
    return None


def _absolute(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    (x,) = node.inputs
    if x.dtype == out.dtype and x.node.name in ("absolute", "square") and x.dtype.kind == "f":
        return to.standing_for(x, out)
    return _even(to, node, out)


def _logical_not(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    x = _argument(node.inputs[0], "logical_not")
    return to.standing_for(x, out) if x is not None and x.dtype.kind == "b" else None


# --------------------------------------------------------------------------------- choices


def _where(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    condition, a, b = node.inputs
    number = constant_of(condition)
    if number is None and a is b:
        number = True
    if number is not None:
        return to.standing_for(a if number else b, out)
    inner = _argument(condition, "logical_not")
    if inner is not None and inner.dtype.kind == "b":
        return to.elementwise("where", (inner, b, a), out)
    return None


def _of_equals(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    """An operation that gives ``x`` for ``x`` and ``x``."""
    a, b = node.inputs
    return to.standing_for(a, out) if a is b and a.dtype == out.dtype else None


def _of_bools(to: Rewriting, node: TracedNode, out: Value) -> Value | None:
    """A logical operation; ``neutral`` is the operand that does nothing."""
    a, b = node.inputs
    if a.dtype.kind != "b" or b.dtype.kind != "b":
        return None
    if a is b:
        return to.standing_for(a, out)
    neutral = node.name.endswith("and")
    for x, other in ((a, b), (b, a)):
        number = constant_of(other)
        if number is not None:
            return to.standing_for(x if bool(number) is neutral else other, out)
    return None


_RULES: dict[str, Callable[[Rewriting, TracedNode, Value], Value | None]] = {
    "multiply": _multiply,
    "divide": _divide,
    "add": _add,
    "subtract": _subtract,
    "negative": _negative,
    **dict.fromkeys(("positive", "detached", "unrecorded", "copy"), _identity),
    **dict.fromkeys(("written_detached", "written_unrecorded"), _second),
    "conjugate": _conjugate,
    "absolute": _absolute,
    "square": _even,
    "logical_not": _logical_not,
    "where": _where,
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), _of_equals),
    **dict.fromkeys(("logical_and", "logical_or", "bitwise_and", "bitwise_or"), _of_bools),
}
