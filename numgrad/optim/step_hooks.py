"""Hooks around the steps of optimizers, and steps in a function that is being compiled."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import Any

from numgrad.autograd.hooks import RemovableHandle, register
from numgrad.autograd.variable import gradient_of
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTraceError
from numgrad.tensors.tensor import Tensor

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer.

    As in PyTorch ``args`` begin with the optimizer: ``(optimizer,)`` or ``(optimizer, closure)``.
    The hook returns None, or new arguments as a pair ``(args, kwargs)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(1.0, requires_grad=True)
    >>> optimizer = ng.optim.SGD([x])
    >>> with ng.optim.register_optimizer_step_pre_hook(lambda *_: print("a step")):
    ...     optimizer.step()
    a step
    """
    return register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(1.0, requires_grad=True)
    >>> with ng.optim.register_optimizer_step_post_hook(lambda *_: print("done")):
    ...     ng.optim.SGD([x]).step()
    done
    """
    return register(_global_post_hooks, hook)


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """``step`` with its hooks around it: global pre, own pre, own post, global post."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if state.ground.deferred:
            return _deferred_step(self, *args, **kwargs)
        before = self._optimizer_step_pre_hooks
        after = self._optimizer_step_post_hooks
        if not (before or after or _global_pre_hooks or _global_post_hooks):
            return step(self, *args, **kwargs)
        arguments: tuple[Any, ...] = (self, *args)
        for hook in list(chain(_global_pre_hooks.values(), before.values())):
            changed = hook(self, arguments, kwargs)
            if changed is None:
                continue
            pair = isinstance(changed, tuple) and len(changed) == 2
            if not (pair and isinstance(changed[0], tuple) and changed[0][:1] == (self,)):
                raise NumgradRuntimeError(
                    f"{type(self).__name__}.step: a pre-hook returned {changed!r}; it must return "
                    "None or a pair (args, kwargs), of which args begin with the optimizer"
                )
            arguments, kwargs = changed
        out = step(*arguments, **kwargs)
        for hook in list(chain(after.values(), _global_post_hooks.values())):
            hook(self, arguments, kwargs)
        return out

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


def _deferred_step(optimizer: Any, closure: Callable[[], Any] | None = None) -> Any:
    """A step in a function that is being compiled: the real one, at each call.

    It gets the gradients that the function computed; every parameter has a new value from then on.
    """
    if optimizer._needs_closure:
        raise NumgradTraceError(
            f"{type(optimizer).__name__}.step: calls the closure as often as it likes, so it "
            "cannot be part of a compiled function; compile the closure, and take the step outside"
        )
    loss = optimizer._evaluate(closure)
    params = [p for group in optimizer.param_groups for p in group["params"]]
    stepped = [p for p in params if gradient_of(p) is not None]

    def step(*gradients: Any) -> tuple:
        before = [p._grad for p in params]
        try:
            for p in params:
                p._grad = None
            for p, g in zip(stepped, gradients, strict=True):
                p._grad = Tensor(g)
            optimizer.step()
        finally:
            for p, g in zip(params, before, strict=True):
                p._grad = g
        return tuple(p._array for p in stepped)

    state.ground.effect(step, [gradient_of(p) for p in stepped], stepped)
    return loss
