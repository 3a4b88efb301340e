"""``custom_vjp`` and ``custom_jvp``: functions whose derivatives are given by rules of yours.

Note [Rules and higher derivatives]
-----------------------------------
A call is that of a ``Function``, so the tape, forward mode and traces see one operation. A backward
that is itself differentiated calls the rule on what leads to the arguments: for ``custom_vjp`` the
forward is then run again, recorded, since residuals that it had computed earlier are mere numbers.
``custom_jvp`` gets its pullback from the rule, which is linear in the tangents.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.batching.selected import beneath, levels, raised
from numgrad.autograd.function import Function
from numgrad.autograd.modes import enable_grad
from numgrad.core.abstract import zeros
from numgrad.core.arguments import signature_of
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.tree import Nesting, align, flatten, leaves, unflatten
from numgrad.core.wrappers import found_by_name
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import check_function
from numgrad.transforms.linearization import Linearization


class _Evaluated(threading.local):
    """The rules whose forward this thread runs, which may call the function itself."""

    def __init__(self) -> None:
        self.rules: list[CustomRule] = []


_evaluated = _Evaluated()


class CustomRule:
    """A function with rules, which ``kind`` applies."""

    kind: type[Function]

    def __init__(self, function: Callable[..., Any]) -> None:
        check_function(type(self).__name__, function)
        functools.update_wrapper(self, function)
        self.function = function
        self.name = getattr(function, "__name__", "function")
        self.rules: tuple[Callable[..., Any], ...] = ()
        self._apply: Callable[..., Any] = type(self.name, (self.kind,), {}).apply

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, by its rule where something is differentiated."""
        if kwargs:
            bound = signature_of(self.function).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise NumgradTypeError(
                    f"{self.name}: {', '.join(bound.kwargs)} can be passed by name only, and rules "
                    "are given arguments by position; let the function take them by position"
                )
            args = bound.args
        tensors: list[Any] = []
        nesting = flatten(args, tensors)
        requires_grad = state.grad_enabled and any(
            isinstance(x, Tensor) and x.requires_grad for x in tensors
        )
        plain = not (requires_grad or state.interpreters)  # nothing to differentiate
        if plain or self in _evaluated.rules:
            return self.function(*args)
        if not self.rules:
            raise NumgradRuntimeError(
                f"{self.name}: has no rule yet, so it cannot be differentiated; give one by "
                f"{self.name}.{'defjvp' if isinstance(self, custom_jvp) else 'defvjp'}"
            )
        call = RuleCall(self, nesting)
        outputs = self._apply(call, *tensors)
        return unflatten(call.structure, iter(outputs))

    def __reduce__(self) -> Any:
        again = _again, (type(self), self.function, self.rules)
        return found_by_name(self, self.function) or again


def _again(
    kind: type[CustomRule], function: Callable[..., Any], rules: tuple[Callable[..., Any], ...]
) -> CustomRule:
    made = kind(function)
    made.rules = rules
    return made


class RuleCall:
    """One call: the nestings of its arguments and results."""

    def __init__(self, rule: CustomRule, nesting: Nesting) -> None:
        self.rule, self.nesting = rule, nesting
        self.structure: Nesting = None
        self.others: list[Any] = []
        self.unmoved: list[Any] = []
        self.metas: list[Meta | None] = []
        self.count = 0

    def keep(self, ctx: Any, arguments: Sequence[Any], residuals: Any = None) -> None:
        """Save the arguments, and what a backward needs besides."""
        tensors = [leaf for leaf in arguments if isinstance(leaf, Tensor)]
        self.count = len(tensors)
        self.others = [None if isinstance(leaf, Tensor) else (leaf,) for leaf in arguments]
        results: list[Any] = []
        self.residuals = flatten(residuals, results)
        self.plain = [None if isinstance(leaf, Tensor) else (leaf,) for leaf in results]
        ctx.save_for_backward(*tensors, *(leaf for leaf in results if isinstance(leaf, Tensor)))
        ctx.save_for_forward(*tensors)
        ctx.call = self

    def arguments(self, ctx: Any) -> list[Any]:
        """The leaves of the arguments."""
        return _merged(self.others, iter(ctx.saved_tensors[: self.count]))

    def saved(self, ctx: Any) -> Any:
        """The residuals."""
        return unflatten(
            self.residuals, iter(_merged(self.plain, iter(ctx.saved_tensors[self.count :])))
        )

    def outputs(self, result: Any) -> tuple[Any, ...]:
        """Results of the Function."""
        results: list[Any] = []
        self.structure = flatten(result, results)
        self.unmoved = [None if isinstance(leaf, Tensor) else _zero(leaf) for leaf in results]
        self.metas = [Meta(y.shape, y.dtype) if isinstance(y, Tensor) else None for y in results]
        return tuple(results)

    def cotangent(self, grads: Sequence[Any]) -> Any:
        """Gradients in the nesting of the result; zero for a number that was no Tensor."""
        pairs = zip(grads, self.unmoved, strict=True)
        return unflatten(self.structure, iter([z if g is None else g for g, z in pairs]))

    def arranged(self, what: str, value: Any, nesting: Nesting) -> list[Any]:
        """The leaves of what a rule returned; None stands for any nesting of zeros."""
        if value is None or nesting is None:
            return [value] * len(leaves(unflatten(nesting, _nothing())))
        kind, _, parts = nesting
        if type(value) is tuple and kind is tuple and len(value) == len(parts):
            pairs = zip(value, parts, strict=True)
            return [leaf for pair in pairs for leaf in self.arranged(what, *pair)]
        results: list[Any] = []
        where = align(nesting, value, results, "")
        if where is not None:
            raise NumgradValueError(
                f"{self.rule.name}: {what} returned a {type(value).__name__} that is nested "
                "otherwise than what it belongs to; return the same nesting, or None for zero"
            )
        return results


def _nothing() -> Iterator[None]:
    while True:
        yield None


def _merged(others: Sequence[Any], tensors: Iterator[Any]) -> list[Any]:
    return [next(tensors) if other is None else other[0] for other in others]


def _pair(name: str, what: str, result: Any) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise NumgradTypeError(
            f"{name}: {what} returned a {type(result).__name__}; it returns a pair"
        )
    return result


# ------------------------------------------------------------------------------------------- vjp


class VjpRule(Function):
    """A ``custom_vjp`` as the tape sees it."""

    @staticmethod
    def forward(ctx: Any, call: RuleCall, *tensors: Any) -> Any:
        """Call the user's forward, keep its residuals."""
        _evaluated.rules.append(call.rule)
        try:
            result, residuals = VjpRule.evaluate(call, tensors)
        finally:
            _evaluated.rules.pop()
        call.keep(ctx, tensors, residuals)
        return call.outputs(result)

    @staticmethod
    def evaluate(call: RuleCall, arguments: Sequence[Any]) -> tuple[Any, Any]:
        """The result of the user's forward and its residuals."""
        forward = call.rule.rules[0]
        args = unflatten(call.nesting, iter(arguments))
        return _pair(call.rule.name, "the forward of defvjp", forward(*args))

    @classmethod
    def vmap_rule(cls) -> None:
        """None: rules are operations on Tensors, and run on examples."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call the user's backward: Note [Rules and higher derivatives]."""
        call: RuleCall = ctx.call
        if state.grad_enabled or state.ground.deferred:  # a graph may be differentiated again
            residuals = VjpRule.evaluate(call, call.arguments(ctx))[1]
        else:
            residuals = call.saved(ctx)
        results = call.rule.rules[1](residuals, call.cotangent(grads))
        count = len(call.nesting[2]) if call.nesting else 0
        if not isinstance(results, tuple) or len(results) != count:
            listed = isinstance(results, tuple)
            returned = f"{len(results)} gradients" if listed else type(results).__name__
            raise NumgradTypeError(
                f"{call.rule.name}: the backward of defvjp returned {returned}"
                f" for {count} argument(s); return a tuple with one each, None for zero"
            )
        flat = call.arranged("the backward of defvjp", results, call.nesting)
        return None, *(g if o is None else None for g, o in zip(flat, call.others, strict=True))

    @classmethod
    def run_jvp(cls, ctx: Any, tangents: Any) -> Any:
        """Refuse: the rule is of reverse mode."""
        raise NumgradNotImplementedError(
            f"{cls.__name__}: custom_vjp gives a rule of reverse mode, and forward mode (jvp, "
            "jacfwd) needs one of its own; use ng.custom_jvp, whose rule serves both, or jacrev"
        )


class custom_vjp(CustomRule):
    """A function with a reverse-mode derivative of yours; used as a decorator.

    ``defvjp(forward, backward)`` gives the rule. ``forward(*args)`` returns a pair, the result and
    residuals, any nesting of what the backward needs. ``backward(residuals, g)`` gets the gradient
    of the result, nested like it, and returns a tuple with that of each argument, nested like this,
    with None for zero. Written with operations on Tensors, it can be differentiated again. Forward
    mode needs ``custom_jvp``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.custom_vjp
    ... def clipped(x):
    ...     return x * 1.0
    >>> def forward(x):
    ...     return clipped(x), None
    >>> def backward(_, g):
    ...     return (np.clip(g, -1.0, 1.0),)
    >>> clipped.defvjp(forward, backward)
    >>> ng.grad(lambda x: 5 * clipped(x))(2.0)
    np.float64(1.0)
    """

    kind = VjpRule

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the rule: see the class."""
        for rule in (forward, backward):
            check_function("defvjp", rule)
        self.rules = forward, backward


# ------------------------------------------------------------------------------------------- jvp


class JvpRule(Function):
    """A ``custom_jvp`` as the tape and dual levels see it."""

    @staticmethod
    def forward(ctx: Any, call: RuleCall, *tensors: Any) -> Any:
        """Call the function."""
        call.keep(ctx, tensors)
        return call.outputs(call.rule.function(*unflatten(call.nesting, iter(tensors))))

    @classmethod
    def vmap_rule(cls) -> None:
        """None: rules are operations on Tensors, and run on examples."""

    @staticmethod
    def along(call: RuleCall, arguments: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Tangents by the rule."""
        dense = [
            _zero(leaf) if t is None else t for leaf, t in zip(arguments, tangents, strict=True)
        ]
        primals = unflatten(call.nesting, iter(arguments))
        result = call.rule.rules[0](primals, unflatten(call.nesting, iter(dense)))
        _, moved = _pair(call.rule.name, "the rule of defjvp", result)
        results = call.arranged("the rule of defjvp", moved, call.structure)
        for k, (t, meta) in enumerate(zip(results, call.metas, strict=True)):
            if t is not None and meta is not None:
                _check_tangent(call.rule.name, k, t, meta)
        return results

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """Forward mode: the rule itself."""
        call: RuleCall = ctx.call
        return tuple(JvpRule.along(call, call.arguments(ctx), tangents))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Pull gradients back through the rule, which is linear in tangents."""
        call: RuleCall = ctx.call
        again = state.grad_enabled
        arguments = call.arguments(
            ctx
        )  # with the graph and tangents that an outer transform follows
        over = levels()  # gradients by example, which the batch sums where examples share a leaf
        sizes = tuple([level.size for level in over])
        tangents = [
            raised(Tensor(zeros((*sizes, *leaf.shape), leaf.dtype), True), over)
            if isinstance(leaf, Tensor) and leaf.dtype.kind in "fc"
            else None
            for leaf in arguments
        ]
        moving = [t for t in tangents if t is not None]
        with enable_grad():
            moved = JvpRule.along(call, arguments, tangents)
        pairs = [
            (y, g)
            for y, g in zip(moved, grads, strict=True)
            if isinstance(y, Tensor) and g is not None
        ]
        linear = Linearization([y for y, _ in pairs], moving, create_graph=again)
        result = iter(linear.pull([g for _, g in pairs], last=True))
        for leaf in moving:
            beneath(leaf)._requires_grad = False
        return None, *(None if t is None else next(result) for t in tangents)


def _check_tangent(name: str, k: int, t: Any, meta: Meta) -> None:
    """Refuse a tangent that is none of the result with this shape and dtype."""
    if not isinstance(t, Tensor | np.ndarray | np.generic | int | float | complex):
        raise NumgradTypeError(
            f"{name}: the rule of defjvp returned a {type(t).__name__} as the tangent of result "
            f"{k}; return a Tensor, or None for zero"
        )
    array = t if isinstance(t, Tensor) else np.asarray(t)
    if array.shape != meta.shape or (array.dtype.kind == "c" and meta.dtype.kind != "c"):
        raise NumgradRuntimeError(
            f"{name}: the rule of defjvp returned a tangent of shape {array.shape} and dtype "
            f"{array.dtype} for result {k}, which has shape {meta.shape} and dtype {meta.dtype}; "
            "return one like the result"
        )


def _zero(leaf: Any) -> Any:
    """Zero for something that has no tangent; None for what is no number."""
    if isinstance(leaf, Tensor):
        return Tensor(zeros(leaf.shape, leaf.dtype))
    array = np.asarray(leaf)
    return np.zeros(array.shape) if array.dtype.kind in "biufc" else None


class custom_jvp(CustomRule):
    """A function with derivatives of yours, for forward and reverse mode; used as a decorator.

    ``defjvp(rule)``, which is a decorator as well, gives the rule: ``rule(primals, tangents)`` gets
    the arguments and a tangent of each, two tuples, and returns a pair, the result and its tangent,
    nested like it. The tangent is linear in the tangents, by operations on Tensors.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t / (1.0 + np.exp(-x))
    >>> ng.grad(log1pexp)(0.0), ng.jvp(log1pexp, (0.0,), (3.0,))[1]
    (np.float64(0.5), np.float64(1.5))
    """

    kind = JvpRule

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule, which is returned: see the class."""
        check_function("defjvp", rule)
        self.rules = (rule,)
        return rule
