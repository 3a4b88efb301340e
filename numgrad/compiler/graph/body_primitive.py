"""Operations that are given a body, as loops and branches are: rules for all operands together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.compiler.graph.graph import TracedNode
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import Primitive
from numgrad.core.formula import Meta
from numgrad.core.op import Op


def has_derivatives(meta: Any) -> bool:
    """Whether something of that dtype has derivatives."""
    return meta.dtype.kind in "fc"


class BodyOperation(Primitive):
    """An operation whose parameter is a body, and the rules that it was declared with."""

    rules: BodyPrimitive


class BodyPrimitive:
    """The rules of an operation of any number of operands, one parameter of which is a body.

    A subclass has a method for each rule, and ``declare`` makes the operation of a function that
    runs the body on ndarrays. Lengths of ``shape`` may be symbols.

    Attributes
    ----------
    differentiable
        Whether it has derivatives: ``vjp`` and ``jvp``.
    linear
        Whether it may be taken for linear in what its body is linear in.
    trims
        Whether results that nothing reads may be left out of its body, and the carries and
        operands that only these need: ``compiler.passes.loop_trimming``.
    """

    differentiable = True
    linear = False
    trims = False

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> Any:
        """Shapes and dtypes of the results: ``(a[n]) -> y[m]``, or one ``Meta``."""
        raise NotImplementedError

    def vjp(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """Gradients of all operands, None for zero: ``(g[m], a[n], y[m]) -> gradient[n]``."""
        raise NotImplementedError

    def jvp(
        self, tangents: Sequence[Any], inputs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Tangents of all results, None for zero: ``(t[n], a[n]) -> t[m]``."""
        raise NotImplementedError

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """Results for a batch of ``size`` examples: ``(B.a or a)[n] -> (B.y)[m]``."""
        raise NotImplementedError

    def dependence(
        self, patterns: Any, node: TracedNode, args: Sequence[Any], parts: Sequence[Any]
    ) -> list[Any] | None:
        """Which elements of results depend on which columns: ``compiler.inspect.sparsity``.

        None if all may depend on all.
        """
        return None

    @classmethod
    def declare(cls, **options: Any) -> Callable[[Callable[..., Any]], BodyOperation]:
        """Declare the operation that a function runs, with these rules."""

        def primitive(function: Callable[..., Any]) -> BodyOperation:
            op = BodyOperation(function, internal=True, method=False, **options)
            op.rules = rules = cls()
            op.shape(lambda *inputs, **params: rules.shape(inputs, params))
            op.batch(rules.batch)
            if not cls.differentiable:
                op.no_derivative()
                return op
            names = list(op.params)
            op.implied = ("index",)
            gradient = _named(_JointGradients(rules.vjp), ["g", "inputs", "y", "index"], names)
            op.vjp(inputs=gradient)
            op.jvp(_named(rules.jvp, ["t_inputs", "inputs"], names))
            return op

        return primitive


class _JointGradients(threading.local):
    """The gradients of all operands of a call, computed together and asked for one by one."""

    last: tuple[Any, list[Any]] | None = None

    def __init__(self, vjp: Callable[..., list[Any]]) -> None:
        self.vjp = vjp

    def __call__(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Any, index: int, params: dict[str, Any]
    ) -> Any:
        """The gradient of one operand, None if it has none."""
        floating = [k for k, x in enumerate(inputs) if has_derivatives(x)]
        if index not in floating:
            return None
        key, known = (*g, *inputs), self.last
        same = (
            known is not None
            and len(known[0]) == len(key)
            and all(a is b for a, b in zip(known[0], key, strict=True))
        )
        if known is None or not same:
            known = key, self.vjp(g, inputs, y, params)
        self.last = None if index == floating[-1] else known  # nothing is held longer than needed
        return known[1][index]


def _named(rule: Callable[..., Any], first: list[str], names: list[str]) -> Any:
    """A function with parameters of these names, as formulas have, which gives a rule a dict."""
    pairs = ", ".join(f"{name!r}: {name}" for name in names)
    source = f"lambda {', '.join([*first, *names])}: _rule({', '.join(first)}, {{{pairs}}})"
    return eval(source, {"_rule": rule})
