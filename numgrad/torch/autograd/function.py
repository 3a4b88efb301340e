"""``torch.autograd.Function``: operations with a backward of the user's."""

from __future__ import annotations

from typing import Any

from numgrad.autograd import function as base
from numgrad.autograd.function.function_call import FunctionCtx as BaseCtx
from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import warn
from numgrad.torch.autograd.graph import node_class
from numgrad.torch.wrapping import (
    Tensor,
    face_function,
    known,
    refuse_transformed,
    same,
    unwrap,
    wrap,
)

once_differentiable = base.once_differentiable


_OF_TENSORS = ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable")
"""Methods of a context that take Tensors."""


class FunctionCtx:
    """The context of a call as ``forward`` and ``backward`` see it; attributes are the call's."""

    __slots__ = ("_ctx",)
    _ctx: BaseCtx

    def __init__(self, ctx: BaseCtx) -> None:
        object.__setattr__(self, "_ctx", ctx)

    def __getattr__(self, name: str) -> Any:
        value = getattr(object.__getattribute__(self, "_ctx"), name)
        return face_function(value) if name in _OF_TENSORS else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._ctx, name)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The same, under the name of older programs."""
        warn("saved_variables is deprecated; use saved_tensors", DeprecationWarning)
        return self.saved_tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The Tensors that ``save_for_backward`` kept."""
        return tuple(map(same, self._ctx.saved_tensors))


class Function(base.Function):
    """Base of operations whose forward and backward a user writes."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._backward_cls = node_class(f"{cls.__name__}Backward")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the Function."""
        if not cls._defines("setup_context"):
            refuse_transformed(f"autograd.Function {cls.__name__} without setup_context")
        given = tuple(map(unwrap, args))
        for a in args:
            if isinstance(a, Tensor):
                known(a)
        result = super().apply(*given, **unwrap(kwargs))
        ours = {id(b): a for a, b in zip(args, given, strict=True) if a is not b}
        if not isinstance(result, tuple):
            return ours[id(result)] if id(result) in ours else wrap(result)
        for r in result:
            if id(r) not in ours:
                ours[id(r)] = wrap(r)
        return tuple([ours[id(r)] for r in result])

    @classmethod
    def run_forward(cls, ctx: BaseCtx, args: tuple, keywords: dict[str, Any]) -> Any:
        """Call ``forward``, and ``setup_context`` if there is one."""
        given, named = (
            tuple([same(a) if isinstance(a, Base) else wrap(a) for a in args]),
            wrap(keywords),
        )
        if not cls._defines("setup_context"):
            return unwrap(cls.forward(FunctionCtx(ctx), *given, **named))
        output = cls.forward(*given, **named)
        cls.setup_context(FunctionCtx(ctx), given, output)
        return unwrap(output)

    @classmethod
    def run_backward(cls, ctx: BaseCtx, grads: Any) -> Any:
        """Call ``backward``, by whichever of its two names."""
        return unwrap(super().run_backward(FunctionCtx(ctx), wrap(tuple(grads))))  # pyright: ignore

    @classmethod
    def run_jvp(cls, ctx: BaseCtx, tangents: Any) -> Any:
        """Call ``jvp``."""
        return unwrap(super().run_jvp(FunctionCtx(ctx), wrap(tuple(tangents))))  # pyright: ignore

    @classmethod
    def vmap_rule(cls) -> Any:
        """``vmap``; None if forward and backward are to be run on examples."""
        rule = super().vmap_rule()
        if rule is None:
            return None

        def batched(info: Any, in_dims: Any, *args: Any, **keywords: Any) -> Any:
            return unwrap(rule(info, in_dims, *wrap(args), **wrap(keywords)))

        return batched


class InplaceFunction(Function):
    """A Function of older programs, whose ``inplace`` says whether it writes to its input."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


NestedIOFunction = Function
BackwardCFunction = FunctionCtx
