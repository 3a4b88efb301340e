"""Calls of Functions in forward mode and for a batch of examples.

Note [Functions under interpreters]
-----------------------------------
``call_function`` asks the interpreter on top, which lets those below it make the call and then does
its own part: a dual level gives the outputs their tangents by ``jvp``. A batch either has a rule,
``vmap``, or makes of the Function another one, of whole batches, whose forward and backward run the
user's code on examples. So the graph and the levels below see whole batches only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.autograd.forward_ad import ForwardInterpreter
from numgrad.autograd.function import function_call
from numgrad.autograd.node import conform_tensor
from numgrad.autograd.variable import Tensor, constant, root
from numgrad.core.abstract import zeros
from numgrad.core.interpreter import ThreadSettings, bind, interpreter, state
from numgrad.core.op import OPS
from numgrad.core.tree import leaves, map_leaves
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError


class VmapInfo(NamedTuple):
    """Facts about the batch for a Function's ``vmap``."""

    batch_size: int
    randomness: str = "different"


class Batchable(function_call.Definition, Protocol):
    """A Function that says how it is carried out for a batch."""

    def vmap_rule(self) -> Callable[..., Any] | None:
        """The user's rule, or None to run forward and backward on examples."""
        ...


def call_function(
    function: Batchable, args: tuple, keywords: dict[str, Any]
) -> tuple[Any, function_call.FunctionCtx | None]:
    """Outputs under the interpreters of this thread, and the ctx if a rule did not do without."""
    stack = state.interpreters
    active = stack[-1] if stack else state.ground
    if isinstance(active, ForwardInterpreter):
        return _with_tangents(active, function, args, keywords)
    if isinstance(active, BatchingInterpreter):
        return _for_batch(active, function, args, keywords)
    return active.apply_function(function, args, keywords)


def _below() -> ThreadSettings:
    """Leave what is called inside to the interpreters below the one on top."""
    return ThreadSettings(interpreters=state.interpreters[:-1])


def _as_tuple(values: Any) -> tuple:
    return values if isinstance(values, tuple) else (values,)


# --------------------------------------------------------------------------------- forward mode


def _with_tangents(
    level: ForwardInterpreter, function: Batchable, args: tuple, keywords: dict[str, Any]
) -> tuple[Any, function_call.FunctionCtx | None]:
    tangents = [level.tangent(a) if isinstance(a, Tensor) else None for a in args]
    if level.several and any(t is not None for t in tangents):
        raise NumgradNotImplementedError("columns: a rule of the user's")
    with _below():
        outputs, ctx = call_function(function, args, keywords)
        if any(t is not None for t in tangents):
            if ctx is None and state.ground.deferred:
                raise NumgradNotImplementedError(
                    f"{function.__name__}: needs numbers, so a compiled function calls it back, "
                    "which has gradients but no forward mode; use grad, vjp or jacrev, or do it "
                    "outside of ng.jit"
                )
            if ctx is None:
                raise NumgradNotImplementedError(
                    f"{function.__name__}: forward mode within a batch needs a forward that was "
                    "run, and the vmap rule took its place; set generate_vmap_rule = True instead"
                )
            if ctx._materializes:
                tangents = [_materialized(*pair) for pair in zip(tangents, args, strict=True)]
            with ctx._running_jvp():
                out_tangents = _as_tuple(function.run_jvp(ctx, tangents))
            results = _as_tuple(outputs)
            _check_count(function, out_tangents, results)
            for k, (y, t) in enumerate(zip(results, out_tangents, strict=True)):
                _set_tangent(level, f"{function.__name__}.jvp", k, y, t, tangents, args)
    return outputs, ctx


def _materialized(tangent: Tensor | None, x: Any) -> Tensor | None:
    if tangent is None and isinstance(x, Tensor) and x.dtype.kind in "fc":
        return _zeros(x)
    return tangent


def _zeros(x: Tensor) -> Tensor:
    return Tensor(zeros(x.shape, x.dtype))


def _check_count(function: function_call.Definition, tangents: tuple, results: tuple) -> None:
    if len(tangents) != len(results):
        raise NumgradRuntimeError(
            f"{function.__name__}.jvp: returned {len(tangents)} tangents for {len(results)} "
            "outputs; return a tuple with one for each, None for an output that does not move"
        )


def _set_tangent(
    level: ForwardInterpreter, name: str, k: int, y: Any, t: Any, tangents: Sequence[Any],
    args: tuple,
) -> None:  # fmt: skip
    """Give output ``y`` the tangent that a jvp returned for it."""
    dirty = any(y is a for a in args)
    if t is None:
        if dirty:
            level.write(y, None)
        elif isinstance(y, Tensor) and level.tangent(y) is not None:  # that of an input it shows
            level.set_tangent(y, _zeros(y))
        return
    if not isinstance(y, Tensor) or y.dtype.kind not in "fc":
        raise NumgradRuntimeError(
            f"{name}: returned a tangent for output {k}, which has no derivative; return None in "
            "its place"
        )
    if not isinstance(t, Tensor):
        if not isinstance(t, np.ndarray | np.generic | int | float | complex):
            raise NumgradTypeError(
                f"{name}: returned a {type(t).__name__} as the tangent of output {k}; return "
                "Tensors, or None, several of them in a tuple"
            )
        t = constant(t)
    if t.shape != y.shape or (t.dtype.kind == "c" and y.dtype.kind != "c"):
        raise NumgradRuntimeError(
            f"{name}: returned a tangent of shape {t.shape} and dtype {t.dtype} for output {k} of "
            f"shape {y.shape} and dtype {y.dtype}; both must agree"
        )
    if t.dtype != y.dtype:
        t = bind(OPS["astype"], (t, y.dtype), {})
    if dirty:
        return level.write(y, t)  # which views of the input see as well
    for a, tangent in zip(args, tangents, strict=True):
        if isinstance(a, Tensor) and root(a) is root(y) and root(t) is not root(tangent):
            raise NumgradRuntimeError(
                f"{name}: output {k} is a view of an input, and its tangent no view of that "
                "input's, so writes to one would not reach the other; return a view from jvp, or "
                "a clone() from forward"
            )
    if any(t is each for each in tangents) and not isinstance(y._memory, Tensor):
        t = bind(OPS["copy"], (t,), {})  # writes to y must not change that of the input
    level.set_tangent(y, t)


# ------------------------------------------------------------------------------------- batches


def _for_batch(
    level: BatchingInterpreter, function: Batchable, args: tuple, keywords: dict[str, Any]
) -> tuple[Any, function_call.FunctionCtx | None]:
    if not any(map(level.owns, leaves(args))):
        with _below():
            return call_function(function, args, keywords)
    rule = function.vmap_rule()
    if rule is not None:
        return _by_rule(level, function, rule, args, keywords), None
    mapped = _OfBatches(function, level, args)
    physical = tuple([a.value if level.owns(a) else a for a in args])
    with _below():
        outputs, _ = call_function(mapped, physical, keywords)
    if isinstance(outputs, tuple):
        return tuple([mapped.example(y) for y in outputs]), mapped.ctx
    return mapped.example(outputs), mapped.ctx


def _by_rule(
    level: BatchingInterpreter,
    function: function_call.Definition,
    rule: Callable[..., Any],
    args: tuple,
    keywords: dict[str, Any],
) -> Any:
    """Outputs for all examples by the user's rule."""
    if any(map(level.owns, leaves(keywords))):
        raise NumgradNotImplementedError(
            f"{function.__name__}.vmap: an argument by name differs by example, and in_dims are "
            "those of arguments by position; pass it so"
        )
    in_dims = tuple([_axes(level, a) for a in args])
    args = tuple([_values(level, a) for a in args])
    with _below():
        returned = rule(VmapInfo(level.size, level.randomness), in_dims, *args, **keywords)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise NumgradRuntimeError(
                f"{function.__name__}.vmap: returned {type(returned).__name__}; return a pair: the "
                "output (or a tuple of them), and the batch axis of each, or None"
            )
        outputs, axes = returned
        single = not isinstance(outputs, tuple)
        if not (single or isinstance(axes, tuple)):
            axes = (axes,) * len(outputs)
        if isinstance(axes, tuple | list) if single else len(axes) != len(outputs):
            raise NumgradRuntimeError(
                f"{function.__name__}.vmap: returned {1 if single else len(outputs)} outputs and "
                f"{axes} as their batch axes; return one for each, None for an output without"
            )
        if single:
            return _moved(level, outputs, axes)
        return tuple([_moved(level, y, axis) for y, axis in zip(outputs, axes, strict=True)])


def _axes(level: BatchingInterpreter, argument: Any) -> Any:
    """The batch axes of an argument, nested as it is; None for an object without a batch."""
    if isinstance(argument, tuple | list | dict) or _has_batch(level, argument):
        return map_leaves(lambda a: 0 if level.owns(a) else None, argument)
    return None


def _values(level: BatchingInterpreter, argument: Any) -> Any:
    """An argument with the values of its batches; what has none stays the object that it is."""
    if not _has_batch(level, argument):
        return argument
    return map_leaves(lambda a: a.value if level.owns(a) else a, argument)


def _has_batch(level: BatchingInterpreter, argument: Any) -> bool:
    return any(map(level.owns, leaves(argument)))


def _moved(level: BatchingInterpreter, output: Any, axis: Any) -> Any:
    """An output of a rule with its batch axis in front, as one example."""
    if axis is None:
        return output
    if axis != 0:
        output = bind(OPS["moveaxis"], (output, axis, 0), {})
    return level.wrap(output)


class _BatchedCtx(function_call.FunctionCtx):
    """The ctx that code for one example sees; what it saves goes to that of the whole batch."""

    def __init__(self, level: BatchingInterpreter, whole: function_call.FunctionCtx) -> None:
        super().__init__(whole._name, whole.needs_input_grad)
        self._level, self._whole = level, whole
        self._saved_examples: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors, which ``saved_tensors`` of the backward gives back."""
        tensors = self._tensors("save_for_backward", tensors)
        self._saved_examples = tuple(map(self._level.owns, tensors))
        self._whole.save_for_backward(
            *[
                t.value if isinstance(t, Batched) and own else t
                for t, own in zip(tensors, self._saved_examples, strict=True)
            ]
        )

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of ``save_for_backward``; in ``jvp`` those of ``save_for_forward``."""
        if self._in_jvp:
            return self._for_forward
        return tuple(
            Batched(t, self._level) if own else t
            for t, own in zip(self._whole.saved_tensors, self._saved_examples, strict=False)
        )

    def hand_over(self, outputs: tuple, wholes: tuple) -> None:
        """Tell the ctx of the whole batch what was said about outputs of one example."""
        if self._dirty:
            raise NumgradRuntimeError(
                f"{self._name}: ctx.mark_dirty within a batch of examples; nothing can be written "
                "to one of them, so let forward return a new tensor"
            )
        marked = [
            whole
            for y, whole in zip(outputs, wholes, strict=True)
            if any(y is each for each in self._non_differentiable)
        ]
        self._whole.mark_non_differentiable(*marked)
        self._whole.set_materialize_grads(self._materializes)
        self._forget()


@cache
def _context_of_examples(kind: type[function_call.FunctionCtx]) -> type[_BatchedCtx]:
    """The class of the ctx of examples for a Function with a ctx of that class."""
    if issubclass(_BatchedCtx, kind):
        return _BatchedCtx
    return type(kind.__name__, (kind, _BatchedCtx), {})  # pyright: ignore


class _OfBatches:
    """A Function of whole batches, made of one of examples: Note [Functions under interpreters]."""

    ctx: _BatchedCtx

    def __init__(self, function: Batchable, level: BatchingInterpreter, args: tuple) -> None:
        self.__name__ = function.__name__
        self.function, self.level = function, level
        self.own_rule = getattr(function, "own_rule", True)
        self.batched = tuple(map(level.owns, args))
        self.metas = tuple(map(function_call.meta_of, args))

    def example(self, whole: Any) -> Any:
        """One example of a batch; what is no Tensor stays."""
        return Batched(whole, self.level) if isinstance(whole, Tensor) else whole

    def context(self) -> type[function_call.FunctionCtx]:
        """The class of the ctx of the whole batch."""
        return function_call.FunctionCtx

    def vmap_rule(self) -> None:
        """None: an outer batch runs this one's code on its examples."""

    def run_forward(
        self, ctx: function_call.FunctionCtx, args: tuple, keywords: dict[str, Any]
    ) -> Any:
        """Outputs of the forward for all examples."""
        self.ctx = _context_of_examples(self.function.context())(self.level, ctx)
        with interpreter(self.level):
            examples = self._examples(args)
            returned = function_call.as_tensors(
                self.function.run_forward(self.ctx, examples, keywords), examples
            )
        outputs = _as_tuple(returned)
        wholes = tuple([self._whole(y) for y in outputs])
        self.ctx.hand_over(outputs, wholes)
        return wholes if isinstance(returned, tuple) else wholes[0]

    def _among_examples(self) -> AbstractContextManager[Any]:
        """Inside the level, where a backward asked for by the code of an example is already."""
        return nullcontext() if self.level in state.interpreters else interpreter(self.level)

    def run_backward(self, ctx: function_call.FunctionCtx, grads: Sequence[Tensor | None]) -> Any:
        """Gradients of whole batches, summed over the examples for an input they share."""
        with self._among_examples():
            returned = self.function.run_backward(self.ctx, [self.example(g) for g in grads])
            gradients = tuple([self._fitted(*pair) for pair in enumerate(_as_tuple(returned))])
        ctx._once = self.ctx._once
        return tuple(
            self._whole(g) if k >= len(self.batched) or self.batched[k] else self._summed(g)
            for k, g in enumerate(gradients)
        )

    def run_jvp(self, ctx: function_call.FunctionCtx, tangents: Sequence[Tensor | None]) -> Any:
        """Tangents of the outputs for all examples."""
        with self._among_examples(), self.ctx._running_jvp():
            out_tangents = self.function.run_jvp(self.ctx, self._examples(tangents))
        if isinstance(out_tangents, tuple):
            return tuple([self._whole(t) for t in out_tangents])
        return self._whole(out_tangents)

    def _examples(self, wholes: Sequence[Any]) -> tuple:
        return tuple(
            [self.example(w) if own else w for w, own in zip(wholes, self.batched, strict=True)]
        )

    def _whole(self, value: Any) -> Any:
        return self.level.unwrap(value) if isinstance(value, Tensor) else value

    def _summed(self, g: Any) -> Any:
        return bind(OPS["sum"], (self._whole(g),), {"axis": 0}) if isinstance(g, Tensor) else g

    def _fitted(self, k: int, g: Any) -> Any:
        """A gradient in the shape of one example of its input; errors are left to the caller."""
        meta = self.metas[k] if k < len(self.metas) else function_call.NO_TENSOR
        if g is None or meta is function_call.NO_TENSOR:
            return g
        return conform_tensor(function_call.as_gradient(self.__name__, k, g, meta), meta)
