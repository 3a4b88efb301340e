"""Backward hooks of modules.

Note [Passages]
---------------
The arguments of a module with backward hooks that require grad pass through a node, and so do its
results. When the gradients of the results arrive at theirs, the backward pre-hooks run; when those
of the arguments have been computed and arrive at theirs, the backward hooks do. So in between run
the hooks of the module's parameters, and after it the hooks of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numgrad.autograd.function.function import Function
from numgrad.autograd.hooks import name_of
from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradRuntimeError, warn

Hooks = Sequence[Callable[..., Any]]


class _Passage(Function):
    """The identity, which shows the gradients that pass to ``watch``."""

    own_rule = False

    generate_vmap_rule = True

    @staticmethod
    def forward(watch: Callable[[tuple], tuple], *tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.watch = inputs[0]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return None, *ctx.watch(grads)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple:
        return tangents


class BackwardHooks:
    """The backward hooks of one call of a module."""

    def __init__(self, module: object, pre: Hooks, post: Hooks) -> None:
        self.module, self.pre, self.post = module, pre, post
        self.grad_outputs: tuple | None = None
        self.has_inputs = False
        self.arguments = 0

    def watch_arguments(self, args: tuple) -> tuple:
        """The arguments, those that require grad led through a node."""
        self.arguments = len(args)
        places = _differentiable(args)
        self.has_inputs = bool(places)
        if not places:
            return args

        def watch(grads: tuple) -> tuple:
            grad_inputs: list[Any] = [None] * len(args)
            for place, g in zip(places, grads, strict=True):
                grad_inputs[place] = g
            found = self._run_post(tuple(grad_inputs))
            return tuple(found[place] for place in places)

        return _led_through(watch, args, places)

    def watch_result(self, result: Any) -> Any:
        """The result of the call, its Tensors led through a node."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            warn(
                f"{type(self.module).__name__}: backward hooks need a Tensor or a tuple of them as "
                f"the result of forward, which returned {type(result).__name__}; they do not run",
            )
            return result
        results: tuple = (result,) if single else result
        places = _differentiable(results)
        if not places:
            return result

        def watch(grads: tuple) -> tuple:
            grad_outputs: list[Any] = [None] * len(results)
            for place, g in zip(places, grads, strict=True):
                grad_outputs[place] = g
            found = self._run_pre(tuple(grad_outputs))
            return tuple(found[place] for place in places)

        results = _led_through(watch, results, places)
        return results[0] if single else _of_kind(type(result), results)

    def _run_pre(self, grad_outputs: tuple) -> tuple:
        for hook in self.pre:
            found = hook(self.module, grad_outputs)
            if found is not None:
                grad_outputs = _replacement(hook, "pre-hook", found, grad_outputs)
        if self.has_inputs:
            self.grad_outputs = grad_outputs
            return grad_outputs
        # no gradient of an argument will come
        for hook in self.post:
            found = hook(self.module, (None,) * self.arguments, grad_outputs)
            nothing = isinstance(found, tuple) and all(g is None for g in found)
            if found is not None and not nothing:
                raise NumgradRuntimeError(
                    f"{name_of(hook)}: a backward hook returned gradients of arguments "
                    "that do not require any; return None"
                )
        return grad_outputs

    def _run_post(self, grad_inputs: tuple) -> tuple:
        if self.grad_outputs is None:  # the gradient came by another way than the results
            return grad_inputs
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        for hook in self.post:
            found = hook(self.module, grad_inputs, grad_outputs)
            if found is not None:
                grad_inputs = _replacement(hook, "hook", found, grad_inputs)
        return grad_inputs


def _differentiable(values: tuple) -> list[int]:
    return [
        k for k, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad
    ]


def _led_through(watch: Callable[[tuple], tuple], values: tuple, places: list[int]) -> tuple:
    passed: Iterator[Any] = iter(_Passage.apply(watch, *[values[k] for k in places]))
    return tuple(next(passed) if k in places else value for k, value in enumerate(values))


def _of_kind(kind: type[tuple], values: tuple) -> tuple:
    """A tuple as one of its subclass, such as a named tuple."""
    if kind is tuple:
        return values
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def _replacement(hook: Any, what: str, found: Any, before: tuple) -> tuple:
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(before):
        raise NumgradRuntimeError(
            f"{name_of(hook)}: a backward {what} returned {len(found)} gradients in place "
            f"of {len(before)}"
        )
    return found
