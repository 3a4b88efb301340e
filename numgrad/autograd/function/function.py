"""``Function``: operations with a forward and a backward that a user writes in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.autograd.function.function_call import FunctionCtx, as_tensors
from numgrad.autograd.function.levels import call_function
from numgrad.autograd.variable import Tensor
from numgrad.core.interpreter import ThreadSettings
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError, warn

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class Function:
    """An operation that is computed and differentiated by code of yours.

    Derive a class with static methods and call its ``apply``:

    ``forward(ctx, *args)``
        Computes the output, or a tuple of them, with recording off. Tensors arrive as they are;
        ndarrays that are returned become Tensors, other values are returned to the caller.
        ``ctx`` keeps what the backward needs: see ``FunctionCtx``. Or ``forward(*args)`` without
        it, and ``setup_context(ctx, inputs, output)``, which is called afterwards.
    ``backward(ctx, *grads)``, also called ``vjp``
        Gets the gradient of each output and returns that of each input, None where there is none;
        it may have any shape that the input broadcasts to. It runs with recording on only for
        ``create_graph``: written with operations on Tensors, it can be differentiated again.
    ``jvp(ctx, *tangents)``
        For forward mode: gets the tangent of each input, returns that of each output.
    ``vmap(info, in_dims, *args)``
        For a batch of ``info.batch_size`` examples: gets whole batches and the batch axis of each
        (or None), nested as the arguments are, returns the output and its batch axis. With
        ``generate_vmap_rule = True`` ``forward`` and ``backward`` are used instead, if they are
        operations on Tensors.

    A view that ``forward`` returns, or an input as it came, cannot be written to in place.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> class Exp(ng.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = np.exp(x)
    ...         ctx.save_for_backward(y)
    ...         return y
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> x = ng.tensor(0.0, requires_grad=True)
    >>> y = Exp.apply(x)
    >>> y
    tensor(1., grad_fn=<ExpBackward>)
    >>> y.backward()
    >>> x.grad
    tensor(1.)
    """

    generate_vmap_rule = False
    """Whether ``forward`` and ``backward`` also serve a batch, example by example."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            f"{type(self).__name__}: a Function has no instances; call {type(self).__name__}.apply",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: a Function is called by ``apply``."""
        raise NumgradRuntimeError(
            f"{type(self).__name__}: an instance of a Function cannot be called; make forward and "
            f"backward static methods and call {type(self).__name__}.apply"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the output: to be overridden."""
        raise NumgradNotImplementedError("forward: this Function does not define it")

    @staticmethod
    def setup_context(*args: Any, **kwargs: Any) -> Any:
        """Keep what the backward needs, if ``forward`` takes no ctx."""
        raise NumgradNotImplementedError("setup_context: this Function does not define it")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Compute gradients of the inputs: to be overridden for reverse mode."""
        raise NumgradNotImplementedError("backward: this Function does not define it")

    @staticmethod
    def vjp(*args: Any, **kwargs: Any) -> Any:
        """Gradients of the inputs: another name for ``backward``."""
        raise NumgradNotImplementedError("vjp: this Function does not define it")

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """Compute tangents of the outputs: to be overridden for forward mode."""
        raise NumgradNotImplementedError("jvp: this Function does not define it")

    @staticmethod
    def vmap(*args: Any, **kwargs: Any) -> Any:
        """Compute outputs for a batch of examples: to be overridden for batching."""
        raise NumgradNotImplementedError("vmap: this Function does not define it")

    @classmethod
    def name(cls) -> str:
        """Name of the nodes that calls record."""
        return f"{cls.__name__}Backward"

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the Function.

        Parameters
        ----------
        *args
            Tensors, through which gradients flow, and any other values. Tensors inside lists or
            other objects are constants.
        **kwargs
            Arguments of ``forward`` by name. Those it takes by position too have a gradient in
            ``backward``, at that position.

        Returns
        -------
        Any
            What ``forward`` returned, its arrays as Tensors.

        Raises
        ------
        NumgradNotImplementedError
            If ``forward`` is not defined.
        NumgradRuntimeError
            If an input that was marked dirty is not returned, is a leaf that requires grad, or a
            view whose history cannot be rewritten.
        """
        if cls.forward is Function.forward:
            raise NumgradNotImplementedError(
                f"{cls.__name__}: has no forward; define it as a static method that takes ctx and "
                "the arguments of apply"
            )
        keywords: dict[str, Any] = {}
        if kwargs or cls.setup_context is not Function.setup_context:
            args, keywords = cls._bound(args, kwargs)
        outputs, ctx = call_function(cls, args, keywords)
        if ctx is not None and ctx._for_forward:
            ctx._for_forward = ()
        return outputs

    @classmethod
    def _bound(cls, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Arguments by position, as far as ``forward`` takes them so, and the others by name."""
        separate = cls._defines("setup_context")
        arguments = args if separate else (None, *args)  # in place of ctx
        try:
            bound = _signature(cls.forward).bind(*arguments, **kwargs)
        except TypeError as error:
            raise NumgradTypeError(f"{cls.__name__}.apply: {error}") from None
        if separate:
            bound.apply_defaults()
        for name, value in bound.kwargs.items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise NumgradTypeError(
                    f"{cls.__name__}.apply: {name!r} reaches forward by name, and through such an "
                    "argument no gradient flows; pass it by position, or detach() it"
                )
        return bound.args if separate else bound.args[1:], bound.kwargs

    @classmethod
    def _defines(cls, method: str) -> bool:
        return getattr(cls, method) is not getattr(Function, method)

    # ------------------------------------------------- what calls and nodes ask of a definition

    @classmethod
    def context(cls) -> type[FunctionCtx]:
        """The class of ``ctx``."""
        return FunctionCtx

    @classmethod
    def run_forward(cls, ctx: FunctionCtx, args: tuple, keywords: dict[str, Any]) -> Any:
        """Call ``forward``, and ``setup_context`` if there is one."""
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args, **keywords)
        output = as_tensors(cls.forward(*args, **keywords), args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def run_backward(cls, ctx: FunctionCtx, grads: Sequence[Tensor | None]) -> Any:
        """Call ``backward``, by whichever of its two names."""
        backward = cls.backward is not Function.backward
        vjp = cls.vjp is not Function.vjp
        if backward and vjp:
            raise NumgradRuntimeError(
                f"{cls.__name__}: has both backward and vjp, two names for the same; define one"
            )
        if not (backward or vjp):
            raise NumgradNotImplementedError(
                f"{cls.__name__}: has no backward, so gradients cannot flow through it; define "
                "backward(ctx, *grads) as a static method"
            )
        return (cls.backward if backward else cls.vjp)(ctx, *grads)

    @classmethod
    def run_jvp(cls, ctx: FunctionCtx, tangents: Sequence[Tensor | None]) -> Any:
        """Call ``jvp``."""
        if not cls._defines("jvp"):
            raise NumgradNotImplementedError(
                f"{cls.__name__}: has no jvp, which forward mode needs; define jvp(ctx, *tangents) "
                "as a static method"
            )
        return cls.jvp(ctx, *tangents)

    @classmethod
    def vmap_rule(cls) -> Callable[..., Any] | None:
        """``vmap``; None if forward and backward are to be run on examples."""
        if not cls._defines("setup_context"):
            raise NumgradRuntimeError(
                f"{cls.__name__}: a batch of examples needs a forward without ctx; move what "
                "concerns ctx to setup_context(ctx, inputs, output)"
            )
        if cls.generate_vmap_rule and cls._defines("vmap"):
            raise NumgradRuntimeError(
                f"{cls.__name__}: has vmap and sets generate_vmap_rule = True; choose one of them"
            )
        if not (cls.generate_vmap_rule or cls._defines("vmap")):
            raise NumgradRuntimeError(
                f"{cls.__name__}: does not say how it acts on a batch of examples; set "
                "generate_vmap_rule = True if forward and backward are operations on Tensors, or "
                "define vmap(info, in_dims, *args) as a static method"
            )
        return None if cls.generate_vmap_rule else cls.vmap


@functools.lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a ``backward`` that cannot be differentiated, since not all of it is operations.

    It runs with recording off, and a second derivative that leads through it is an error.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> class Sin(ng.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.x = x.numpy()
    ...         return np.sin(ctx.x)
    ...
    ...     @staticmethod
    ...     @ng.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         return g.numpy() * np.cos(ctx.x)
    >>> x = ng.tensor(0.0, requires_grad=True)
    >>> ng.autograd.grad(Sin.apply(x), x)
    (tensor(1.),)
    """

    @functools.wraps(backward)
    def once(ctx: FunctionCtx, *grads: Any) -> Any:
        ctx._once = True
        with ThreadSettings(grad_enabled=False):
            return backward(ctx, *grads)

    return once
