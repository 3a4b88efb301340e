"""``torch.autograd.Function``: operations with a backward of the user's."""

from __future__ import annotations

from typing import Any

from numgrad.autograd import function as base
from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.variable import Tensor as Base
from numgrad.core.interpreter import state
from numgrad.errors import warn
from numgrad.torch.autograd.graph import node_class
from numgrad.torch.wrapping import (
    Tensor,
    known,
    refuse_transformed,
    same,
    unwrap,
    wrap,
)

once_differentiable = base.once_differentiable


class FunctionCtx(base.FunctionCtx):
    """The context of a call, whose Tensors are of this room."""

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The same, under the name of older programs."""
        warn("saved_variables is deprecated; use saved_tensors", DeprecationWarning)
        return self.saved_tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The Tensors that ``save_for_backward`` kept."""
        return tuple([same(t) for t in super().saved_tensors])

    def _tensors(self, method: str, tensors: tuple) -> tuple:
        return super()._tensors(method, unwrap(tensors))


def _wrapped(result: Any, args: tuple) -> Any:
    """A result, of the class of a user's if it shows an argument of that class as it came."""
    for a in args if isinstance(result, Base) else ():
        kind = type(a)
        own = isinstance(a, Tensor) and hasattr(kind, "__torch_function__")
        if own and a._tensor._array is result._array:
            return kind.__torch_function__(lambda *_: wrap(result), (kind,), (a,))
    return wrap(result)


class Function(base.Function):
    """Base of operations whose forward and backward a user writes."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._backward_cls = node_class(f"{cls.__name__}Backward")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the Function."""
        if (
            cls.setup_context is base.Function.setup_context
            and (state.transforms or state.interpreters)
            and (state.transforms or any(isinstance(a, Batched) for a in unwrap(args)))
        ):
            refuse_transformed(f"autograd.Function {cls.__name__} without setup_context")
        given = [known(a)._tensor if isinstance(a, Tensor) else unwrap(a) for a in args]
        result = super().apply(*given, **(unwrap(kwargs) if kwargs else kwargs))
        ours = {id(b): a for a, b in zip(args, given, strict=True) if a is not b}
        if not isinstance(result, tuple):
            return ours[id(result)] if id(result) in ours else _wrapped(result, args)
        for r in result:
            if id(r) not in ours:
                ours[id(r)] = _wrapped(r, args)
        return tuple([ours[id(r)] for r in result])

    @classmethod
    def context(cls) -> type[FunctionCtx]:
        """The class of ``ctx``."""
        return FunctionCtx

    @classmethod
    def run_forward(cls, ctx: base.FunctionCtx, args: tuple, keywords: dict[str, Any]) -> Any:
        """Call ``forward``, and ``setup_context`` if there is one."""
        given = tuple([same(a) if isinstance(a, Base) else wrap(a) for a in args])
        return unwrap(super().run_forward(ctx, given, wrap(keywords)))

    @classmethod
    def run_backward(cls, ctx: base.FunctionCtx, grads: Any) -> Any:
        """Call ``backward``, by whichever of its two names."""
        return unwrap(super().run_backward(ctx, [wrap(g) for g in grads]))

    @classmethod
    def run_jvp(cls, ctx: base.FunctionCtx, tangents: Any) -> Any:
        """Call ``jvp``."""
        return unwrap(super().run_jvp(ctx, [wrap(t) for t in tangents]))

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
