"""Functions and hooks in what is compiled, which keep the derivatives that users wrote.

Note [Rules in graphs]
----------------------
A body is differentiated from its graph, and a compiled function is so where a derivative of second
order is asked of it. The graph holds what a forward computed, but not the backward that a user
wrote. So the outputs go through an operation ``ruled``, which gives them back: its
other operands are the arguments, and its derivatives call the Function again, on these. What the
forward computes besides is constant, as it is in eager code, where nothing records a forward. The
operation is dropped when the graph is compiled; forwards that were traced twice become one.

Note [Rules that are not linear]
--------------------------------
The gradient of a loop computes each step again. So in a derivative of second order the gradient of
a value in a step arrives in two parts: one at the step, one where it was computed again. What is
linear may be applied to each part. A rule that is not, such as a hook that clips, needs their sum,
which exists nowhere, so its gradients are not differentiated again by the tape. Nor are those of a
compiled function whose cotangent depends on what is differentiated by: there the rest arrives.

Note [Hooks in graphs]
----------------------
The tape of a trace calls hooks, but a graph that is differentiated again, a step of a loop above
all, has no tape. So registering a hook puts an operation ``ruled`` behind the value, whose gradient
is what the hook makes of the gradient. As in eager code it stands before all uses of the value,
earlier ones too. A hook of a node has no such place: what it returns is not differentiated from the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.function.function_call import ONCE, Definition, FunctionCtx, as_tensors, run
from numgrad.autograd.function.levels import call_function
from numgrad.autograd.hooks import RemovableHandle, node_extras
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.evaluate import operands
from numgrad.compiler.graph.graph import (
    CONSTANT,
    INPUT,
    BodyOperation,
    BodyPrimitive,
    Graph,
    TracedNode,
    Value,
)
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.cut import ancestors
from numgrad.compiler.trace.tracer import Tracer
from numgrad.compiler.trace.views import CONSTANTS
from numgrad.core.batching import BatchOperand
from numgrad.core.formula import Meta
from numgrad.core.interpreter import ThreadSettings, bind, state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import View
from numgrad.errors import NumgradRuntimeError, NumgradTraceError

_DIRTY = (
    "marks a tensor dirty, and something compiled cannot be differentiated through that; let "
    "forward return a new tensor, or differentiate inside of ng.jit, as in ng.jit(ng.hessian(f)), "
    "and run a loop that calls it outside"
)

_NOT_LINEAR = (
    "what it makes of a gradient is not linear in that, or is computed by operations that do not "
    "show it, and second derivatives of a compiled loop or branch hand it gradients in parts; "
    "write the loop in Python, or differentiate it twice outside of ng.jit"
)


class Rule:
    """A Function with those of its arguments that are no arrays; Tensors are given each time."""

    batched: str | None = None
    """The reason why the gradients of a batch of examples cannot be computed."""

    def __init__(self, function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> None:
        self.function, self.keywords = function, keywords
        self.places = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        self.others = [None if isinstance(a, Tensor) else a for a in args]
        self.outputs: list[int] = []
        self.ctx: FunctionCtx | None = None

    @property
    def name(self) -> str:
        """How an error names it."""
        return self.function.__name__

    @property
    def once(self) -> bool:
        """Whether the backward that ran last can be differentiated no further."""
        return self.ctx is not None and self.ctx._once

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The outputs that are floating or complex arrays."""
        args = list(self.others)
        for k, x in zip(self.places, tensors, strict=True):
            args[k] = x
        try:
            result, self.ctx = call_function(self.function, tuple(args), self.keywords)
        except NumgradTraceError as error:
            raise NumgradTraceError(
                f"{self.function.__name__}: is called again where something compiled is "
                "differentiated, and then reads what that computes or draws; pass that as an "
                "argument, or differentiate inside of ng.jit, as in ng.jit(ng.hessian(f)), and run "
                f"a loop that calls it outside ({error})"
            ) from error
        result = result if isinstance(result, tuple) else (result,)
        return [result[k] for k in self.outputs]


class Ended:
    """The rule of gradients that are not to be differentiated, by the tape or at all."""

    once = False

    def __init__(self, message: str, *, forward: bool = False) -> None:
        self.message = self.batched = message
        self.forward = forward

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """Raise."""
        raise NumgradRuntimeError(self.message)


class Ruled:
    """A Function, as a trace sees it: Note [Rules in graphs]."""

    def __init__(self, function: Any) -> None:
        self.function, self.context = function, function.context
        self.__name__ = function.__name__
        self.sources: list[TracedArray] = []

    def run_forward(self, ctx: FunctionCtx, args: tuple, keywords: dict[str, Any]) -> Any:
        """Outputs of the forward, constant but for the rule."""
        rule = Rule(self.function, args, keywords)
        operand = state.ground.operand  # pyright: ignore
        traced = [operand(ruled, args[k])[1] for k in rule.places]
        sources = [TracedArray(a.tracer, a.value) for a in traced]  # before anything is written
        self.sources = sources
        with ThreadSettings(constant=True):
            returned = as_tensors(self.function.run_forward(ctx, args, keywords), args)
        if ctx._dirty:
            dirty = {"rule": Ended(f"{self.__name__}: {_DIRTY}"), "count": len(sources)}
            for t in ctx._dirty:
                y = operand(ruled, t)[1]
                value = state.ground.run(ruled, [*sources, y], dirty)[0]  # pyright: ignore
                t._array.write(value[0].value)  # pyright: ignore
        single = not isinstance(returned, tuple)
        outputs = [returned] if single else list(returned)
        rule.outputs = [
            k
            for k, y in enumerate(outputs)
            if isinstance(y, Tensor)
            and y.dtype.kind in "fc"
            and not any(y is t for t in (*ctx._non_differentiable, *ctx._dirty))
        ]
        for k in rule.outputs:
            if any(outputs[k] is t for t in (*args, *outputs[:k])):
                outputs[k] = OPS["positive"](outputs[k])
        params = {"rule": rule, "count": len(sources)}
        arrays = [operand(ruled, outputs[k])[1] for k in rule.outputs]
        if arrays:
            value = state.ground.run(ruled, [*sources, *arrays], params)[0]  # pyright: ignore
            for k, array in zip(rule.outputs, value, strict=True):
                outputs[k]._array = array
        return outputs[0] if single else tuple(outputs)

    def run_backward(self, ctx: FunctionCtx, grads: Sequence[Tensor | None]) -> Any:
        """Gradients of the backward, in the graph as in eager code differentiable once."""
        results = self.function.run_backward(ctx, grads)
        if not ctx._once or state.grad_enabled:
            return results
        single = not isinstance(results, tuple)
        parts = [results] if single else list(results)
        ends = [k for k, x in enumerate(parts) if isinstance(x, Tensor) and x.dtype.kind in "fc"]
        known: list[Any] = [Tensor(a) for a in self.sources]  # pyright: ignore
        known += [g for g in grads if isinstance(g, Tensor)]
        for k, x in zip(ends, _ended(self, known, [parts[k] for k in ends]), strict=True):
            parts[k] = x
        return parts[0] if single else tuple(parts)

    def run_jvp(self, ctx: FunctionCtx, tangents: Sequence[Tensor | None]) -> Any:
        """Tangents that the jvp returns."""
        return self.function.run_jvp(ctx, tangents)


def run_ruled(
    function: Definition, args: tuple, keywords: dict[str, Any]
) -> tuple[Any, FunctionCtx]:
    """Outputs of a Function in a trace, and the ctx."""
    return run(Ruled(function) if getattr(function, "own_rule", True) else function, args, keywords)


def _ended(function: Any, sources: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
    """Gradients of a backward that is differentiable once."""
    return ended(Ended(f"{function.__name__}.backward: {ONCE}"), sources, results)


def ended(rule: Ended, sources: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
    """Gradients that depend on ``sources``, with that rule."""
    if not results:
        return results
    return bind(ruled, (*sources, *results), {"rule": rule, "count": len(sources)})


def _of_sums(rule: Any, sources: Sequence[Any], g: Sequence[Any], results: list[Any]) -> list[Any]:
    """Gradients in a step of a loop: Note [Rules that are not linear] above."""
    places = [k for k, x in enumerate(results) if x is not None]
    tracer: Any = state.ground.tracer  # pyright: ignore
    cotangents, made = [tracer.value(x) for x in g], [tracer.value(results[k]) for k in places]
    if is_linear(tracer.graph, cotangents, made):
        return results
    end = Ended(f"{rule.name}: {_NOT_LINEAR}", forward=True)
    parts = ended(end, [*sources, *g], [results[k] for k in places])
    for k, x in zip(places, parts, strict=True):
        results[k] = x
    return results


class RuledPrimitive(BodyPrimitive):
    """The rules of ``ruled``: those that the Function has."""

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> tuple[Meta, ...]:
        """``([a], [y]) -> [y]``."""
        return tuple(inputs[params["count"] :])

    def vjp(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """The gradients of the arguments."""
        rule, count = params["rule"], params["count"]
        again = state.grad_enabled
        sources = list(inputs[:count])
        moving = [k for k, x in enumerate(sources) if x.dtype.kind in "fc"]
        for k in moving:
            needs_grad = again and sources[k].requires_grad
            x = sources[k]
            sources[k] = OPS["positive"](x) if needs_grad else Tensor(x._array, True)
        with enable_grad():
            out = rule(sources)
        pairs = [(a, b) for a, b in zip(out, g, strict=True) if b is not None and a.requires_grad]
        results: Sequence[Any] = [None] * len(moving)
        if pairs:
            roots, weights = zip(*pairs, strict=True)
            leaves = [sources[k] for k in moving]
            results = dense_grad(roots, leaves, weights, allow_unused=True, create_graph=again)
        ends = [k for k, x in enumerate(results) if x is not None] if rule.once else []
        if ends and not again:  # of a graph, which may be differentiated
            results = list(results)
            known = [*sources, *(b for _, b in pairs)]
            for k, x in zip(
                ends, _ended(rule.function, known, [results[k] for k in ends]), strict=True
            ):
                results[k] = x
        if pairs and state.ground.inner and not again:
            results = _of_sums(rule, sources, [b for _, b in pairs], list(results))
        by_operand = dict(zip(moving, results, strict=True))
        return [by_operand.get(k) for k in range(len(inputs))]

    def jvp(
        self, tangents: Sequence[Any], inputs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The tangents of the outputs."""
        rule, count = params["rule"], params["count"]
        if isinstance(rule, Ended) and rule.forward:
            return tuple(tangents[count:])
        with dual_level():
            duals = list(inputs[:count])
            for k, t in enumerate(tangents[:count]):
                if t is not None:
                    duals[k] = make_dual(duals[k], t)
            return tuple([unpack_dual(y)[1] for y in rule(duals)])

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """Outputs for a batch, with gradients only where the Function has them."""
        count = params["count"]
        sources = operands[:count]
        if params["rule"].batched is not None:
            if not isinstance(params["rule"], Ended):
                params = {**params, "rule": Ended(params["rule"].batched)}
            with BatchingInterpreter(size, examples=True) as level:
                whole = [
                    level.unwrap(level.wrap(o.value) if o.batched else o.value) for o in operands
                ]
            return bind(op, tuple(whole), params)
        with BatchingInterpreter(size, examples=True) as level:
            examples = [level.wrap(o.value) if o.batched else o.value for o in sources]
            return tuple([level.unwrap(y) for y in params["rule"](examples)])


@RuledPrimitive.declare(outputs=True, materializes=False)
def ruled(*inputs, rule, count):
    """The outputs of a Function, the operands after ``count`` arguments of it."""
    return tuple([y.copy() for y in inputs[count:]])


# ------------------------------------------------------------------------------------------ linear


_PIECEWISE_LINEAR = frozenset({"fmod", "heaviside", "pad_constant", "remainder"})
"""Operations whose gradient is that of a linear one."""


def is_linear(
    graph: Graph,
    variables: Collection[Value],
    results: Collection[Value],
    *,
    in_doubt: bool = False,
) -> bool:
    """Whether ``results`` are linear in ``variables``, as far as operations show.

    ``in_doubt`` takes loops and branches for linear if they may be (``BodyPrimitive.linear``).
    """
    moving, needed = set(variables), set(ancestors(list(results)))
    for node in graph.nodes:
        if needed.isdisjoint(node.outputs) or moving.isdisjoint(node.inputs):
            continue
        if node.name == "ruled":
            passed = node.inputs[node.params["count"] :]
            moving.update(y for x, y in zip(passed, node.outputs, strict=True) if x in moving)
        elif _is_linear(node, moving) or (in_doubt and _may_be_linear(node.op)):
            moving.update(node.outputs)
        else:
            return False
    return all(v in moving or _is_zero(v) for v in results)


def _may_be_linear(op: Any) -> bool:
    return isinstance(op, BodyOperation) and op.rules.linear


def _is_linear(node: TracedNode, moving: Collection[Value]) -> bool:
    """Whether the results are linear in the ``moving`` operands together.

    That is so if no formula of theirs reads one of them, and nothing else is added.
    """
    op = node.op
    if not isinstance(op, Op) or op.name in _PIECEWISE_LINEAR:
        return False
    if op.name in CONSTANTS:
        return True
    if op.name.startswith("written") or any(v.dtype.kind not in "fc" for v in node.outputs):
        return False
    several = op.inputs == ("inputs",)
    values = operands(node, node.inputs)
    names = ["inputs" if several else op.inputs[k] for k in range(len(values))]
    never = {"y", *op.auxiliaries}
    never.update(name for name, v in zip(names, values, strict=True) if v in moving)
    for name, v in zip(names, values, strict=True):
        formula = op.formulas.get(name)
        reads = formula is None or not formula.uses_g or not never.isdisjoint(formula.needs)
        if v is None:
            continue
        if v in moving:
            if reads:
                return False
        elif formula is not None and not reads and not _is_zero(v):
            return False
    return True


def _is_zero(value: Value) -> bool:
    """Whether a value is known to be nothing but zeros."""
    node = value.node
    if node.name == "multiply" or isinstance(node.op, View):
        return any(map(_is_zero, node.inputs if node.name == "multiply" else node.inputs[:1]))
    return node.op == CONSTANT and value.constant == 0


class HookRule:
    """The rule of a value with a hook."""

    name = "register_hook"
    once = False
    batched = (
        "register_hook: a hook sees one gradient, and a batch of examples has many; differentiate "
        "each example (ng.vmap of ng.grad), or give the rule with ng.custom_vjp"
    )

    def __init__(self, handle: RemovableHandle) -> None:
        self.handle = handle

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The value, with the hook if there is a tape."""
        y = OPS["positive"](tensors[0])
        if y._requires_grad and self.handle.id in self.handle._hooks:
            node_extras(y.grad_fn).on_tensor(y.output_nr, self._called)
            if state.ground.deferred:
                put_hook(state.ground.tracer, y, self.handle, earlier=False)
        return [y]

    def _called(self, g: Tensor) -> Tensor | None:
        try:
            return self.handle._hooks[self.handle.id](g)
        except NumgradTraceError as error:
            raise NumgradTraceError(
                "register_hook: the hook is called again where something compiled is "
                "differentiated, and then reads what that computes; differentiate inside of "
                "ng.jit, as in ng.jit(ng.hessian(f)), or give the rule of a loop's step with "
                f"ng.custom_vjp ({error})"
            ) from error


def put_hook(
    tracer: Tracer, tensor: Tensor, handle: RemovableHandle, *, earlier: bool = True
) -> None:
    """Note [Hooks in graphs]; ``earlier`` says whether there may be uses of the value already."""
    array = tensor._array
    if type(array) is not TracedArray or array.tracer is not tracer:
        if tracer.inner:
            raise NumgradTraceError(
                "register_hook: the tensor lies outside of the step of a compiled loop or branch; "
                "register the hook there"
            )
        return
    value, graph = array.value, tracer.graph
    params = {"rule": HookRule(handle), "count": 1}
    meta = [(value.shape, value.dtype)]
    (new,) = tracer.add(ruled, (value, value), params, meta, weak=value.weak)
    if earlier and (array.base is None or array.base.value is not value):
        node = graph.nodes.pop()
        index = graph.nodes.index(value.node) + 1
        for later in graph.nodes[index:]:
            if value in later.inputs:
                later.inputs = tuple([new if v is value else v for v in later.inputs])
        graph.nodes.insert(index, node)
    if tracer.stored.get(id(array), value if value.node.op == INPUT else None) is value:
        tracer.stored[id(array)] = new
    array.stand_for(new)


def ending(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of a node whose gradients only the tape differentiates: Note [Hooks in graphs]."""
    if not callable(hook):
        return hook

    def called(*grads: Any) -> Any:
        results = hook(*grads)
        if results is None or state.grad_enabled or not state.ground.deferred:
            return results
        several = isinstance(results, tuple)
        parts = list(results) if several else [results]
        places = [k for k, g in enumerate(parts) if isinstance(g, Tensor)]
        known = [g for group in grads for g in group if isinstance(g, Tensor)]
        known += [parts[k] for k in places]
        for k, g in zip(places, ended(_OF_NODE, known, [parts[k] for k in places]), strict=True):
            parts[k] = g
        return tuple(parts) if several else parts[0]

    return called


_OF_NODE = Ended(
    "a hook of a node (grad_fn.register_hook, register_prehook) changed the gradient in a compiled "
    "function, whose gradients cannot be differentiated again from outside; differentiate inside "
    "of ng.jit, as in ng.jit(ng.hessian(f)), or use Tensor.register_hook"
)
