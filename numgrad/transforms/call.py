"""One call of a differentiated function: what the function gets, and what becomes of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import leads_elsewhere
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import constant
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.abstract import AbstractLength
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import flatten, leaves, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization, Product, filled, one


class TransformedCall:
    """One call of a differentiated function: its arguments, and what kind the results are.

    Note [Nested transforms]
    ------------------------
    The function gets Tensors of its own in place of the arguments that are differentiated, so that
    the caller's, if it closes over them, are constants to this transform. They keep what outer
    transforms follow: a graph and tangents. What the value was computed from then says whether
    anything outside can be differentiated: if its graph leads to a leaf that requires grad and was
    not made by this call, which may have come as an argument or from a closure, the backward is
    recorded and results are Tensors with that graph. Tensors made for the call are frozen when it
    ends, so that what is returned leads outside or nowhere. Without anything outside, or under
    ``no_grad``, nothing is recorded and results have no graph.

    Used as a context: gradients are asked for inside, results are converted after it.
    """

    def __init__(self, name: str, args: tuple, argnums: int | tuple[int, ...]) -> None:
        if state.inference:
            raise NumgradRuntimeError(
                f"{name}: in inference_mode nothing is recorded that could be differentiated; "
                "leave it first"
            )
        self.name = name
        self.single = isinstance(argnums, int)
        numbers = (argnums,) if isinstance(argnums, int) else argnums
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise NumgradValueError(
                    f"{name}: argnums names argument {number}, the call has {len(args)}"
                )
        self.numbers = tuple(number % len(args) for number in numbers)
        if len(set(self.numbers)) < len(numbers):
            raise NumgradValueError(f"{name}: argnums {argnums} names an argument twice")
        given: list[Any] = []
        self.nestings = [flatten(args[number], given) for number in self.numbers]
        self.records = state.grad_enabled
        self.tensors = [_own(name, leaf) for leaf in given]
        self.as_tensors = bool(
            state.transforms or state.interpreters or any(isinstance(x, Tensor) for x in given)
        )
        self.outside = False
        self.maps: list[Linearization] = []
        remaining = iter(self.tensors)
        replaced = {
            number: unflatten(nesting, remaining)
            for number, nesting in zip(self.numbers, self.nestings, strict=True)
        }
        self.args = tuple(replaced.get(k, a) for k, a in enumerate(args))

    def __enter__(self) -> TransformedCall:
        self._before = state.set(grad_enabled=True)
        return self

    def __exit__(self, *exception: object) -> None:
        state.set(**self._before)
        for tensor in self.tensors:
            if tensor._grad_fn is None:
                tensor._requires_grad = False
        for linear in self.maps:
            linear.freeze()

    def value(
        self, f: Callable[..., Any], kwargs: dict[str, Any], has_aux: bool
    ) -> tuple[Tensor, Any]:
        """What ``f`` returns, as a Tensor and the rest; it may not call ``backward`` meanwhile."""
        before = state.set(transforms=state.transforms + 1)
        try:
            result = f(*self.args, **kwargs)
        finally:
            state.set(**before)
        aux = None
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise NumgradTypeError(
                    f"{self.name}: with has_aux the function returns a pair (value, aux), got "
                    f"{type(result).__name__}"
                )
            result, aux = result
        value = _as_tensor(self.name, f, result)
        found = [value, *(leaf for leaf in leaves(aux) if isinstance(leaf, Tensor))]
        self.outside = state.ground.deferred or (
            self.records and leads_elsewhere(found, self.tensors)
        )
        return value, aux

    def linear(self, values: Sequence[Tensor], create_graph: bool | None = None) -> Linearization:
        """The derivative of values by the inputs, recorded where anything outside needs that."""
        recorded = self.outside if create_graph is None else create_graph
        self.maps.append(Linearization(values, self.tensors, recorded))
        return self.maps[-1]

    def gradients(self, value: Tensor, create_graph: bool | None = None) -> list[Tensor]:
        """The gradients of a real number by the inputs."""
        return self.filled(self.linear([value], create_graph).pull([one(value)], last=True))

    def filled(self, found: Product, shape: tuple = ()) -> list[Tensor]:
        """Derivatives of something of that shape by the inputs, with zeros for None."""
        return [
            filled(part, shape + t._array.shape, t._array.dtype)
            for part, t in zip(found, self.tensors, strict=True)
        ]

    def result(self, values: Sequence[Any]) -> Any:
        """Values, one for each differentiated array, in the nesting of the arguments."""
        remaining = iter(values)
        out = [unflatten(nesting, remaining) for nesting in self.nestings]
        return out[0] if self.single else tuple(out)

    def kind(self, value: Any) -> Any:
        """A Tensor as the caller's kind: Tensors where Tensors came in, else ndarrays."""
        if not isinstance(value, Tensor):
            return value
        if self.as_tensors or self.outside:
            if self.outside or not value.requires_grad:
                return value
            with no_grad():  # an operation keeps tangents, which detach() does not
                return OPS["positive"](value) if state.interpreters else value.detach()
        array = value._array
        return array if array.ndim else array[()]


def _own(name: str, leaf: Any) -> Tensor:
    """A Tensor that requires grad in place of an argument: Note [Nested transforms]."""
    floating = isinstance(leaf, Tensor) and leaf.dtype.kind in "fc"
    if not isinstance(leaf, Tensor):
        _numbers(name, "an argument", leaf)
    if floating and ((leaf.requires_grad and state.grad_enabled) or has_tangent(leaf)):
        own = OPS["positive"](leaf)
    else:
        own = state.ground.differentiable(leaf)
    if own.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: an argument of dtype {own.dtype} cannot be differentiated; pass floating or "
            "complex arrays, or leave it out of argnums"
        )
    if not floating:
        check_dtype(name, own.dtype)
    if own._grad_fn is None:
        own.requires_grad_()
    return own


def _numbers(name: str, what: str, value: Any) -> Any:
    """Something that is no Tensor as an array of numbers, a copy."""
    check_array_kind(name, value)
    if isinstance(value, AbstractLength):
        return value
    array = None if value is None or isinstance(value, list | tuple | dict) else np.array(value)
    if array is None or array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: {what} is a {type(value).__name__}, which has no derivatives; give Tensors, "
            "arrays or numbers"
        )
    return array


def _as_tensor(name: str, function: Callable, value: Any) -> Tensor:
    """What a function returned; numbers and arrays depend on nothing."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, AbstractLength):
        return constant(value)
    if isinstance(value, list | tuple):
        raise NumgradTypeError(
            f"{name}: {_called(function)} returned a {type(value).__name__}; return one array (of "
            "several make one with np.stack), or a value with has_aux=True and the rest beside it"
        )
    if value is None:
        raise NumgradTypeError(
            f"{name}: {_called(function)} returned None; return what is to be differentiated"
        )
    array = _numbers(name, f"what {_called(function)} returned", value)
    return Tensor(array if array.dtype.kind in "fc" else array.astype(np.float64))


def _called(function: Callable) -> str:
    return getattr(function, "__name__", "the function")


def real_number(name: str, function: Callable, value: Tensor) -> Tensor:
    """What a function returned, if it has a gradient."""
    if value._array.size != 1 or value._array.dtype.kind == "c":
        raise NumgradRuntimeError(
            f"{name}: {_called(function)} returned shape {value._array.shape} and dtype "
            f"{value._array.dtype}; a gradient is that of one real number: sum it, or use "
            "ng.jacobian"
        )
    return value


def checked_argnums(
    name: str, f: Callable[..., Any], argnums: int | Sequence[int]
) -> int | tuple[int, ...]:
    """``argnums`` as an int or ints, when a function is transformed."""
    if not callable(f):
        raise NumgradTypeError(
            f"{name}: differentiates a function, got a {type(f).__name__}; give the function and "
            f"call what is returned, as in ng.{name}(f)(x)"
        )
    given: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, list | tuple) else (argnums,)
    try:
        numbers = tuple([index(number) for number in given])
    except TypeError:
        raise NumgradTypeError(
            f"{name}: argnums is the position of an argument, or several in a tuple, as integers; "
            f"got {argnums!r}"
        ) from None
    return numbers if isinstance(argnums, list | tuple) else numbers[0]
