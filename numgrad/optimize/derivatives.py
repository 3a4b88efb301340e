"""A user's function of a nesting as one of a list of arrays, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import has_tangent
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import leaves
from numgrad.core.wrappers import FunctionWrapper
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import SOLVING
from numgrad.tensors.labels import unlabelled
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import jitted_in
from numgrad.transforms.derivatives import hessian, jacobian, value_and_grad
from numgrad.transforms.products import hvp

KEPT = "__numgrad_solved__"
"""Attribute of a function with what was compiled of it, for the next solver that is given it."""


class Derivatives:
    """A function of a list of arrays and what solvers ask of it, ``compiled`` by ``ng.jit``."""

    def __init__(self, function: Callable[..., Any], compiled: bool) -> None:
        self.plain, self.compiled = function, compiled

    def _build(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not self.compiled:
            return function
        from numgrad.compiler.api import jit

        return jit(function)

    @cached_property
    def value(self) -> Callable[..., Any]:
        """``f(arrays, *args)``."""
        return self._build(self.plain)

    @cached_property
    def value_and_grad(self) -> Callable[..., Any]:
        """The value and a list of gradients."""
        return self._build(value_and_grad(self.plain))

    @cached_property
    def product(self) -> Callable[..., Any]:
        """``H v`` as a list; takes ``arrays, v, *args``."""
        return self._build(hvp(self.plain))

    @cached_property
    def hessian(self) -> Callable[..., Any]:
        """A list of lists of blocks."""
        return self._build(hessian(self.plain))

    @cached_property
    def jacobian(self) -> Callable[..., Any]:
        """A list of blocks."""
        return self._build(jacobian(self.plain))

    @cached_property
    def weighted(self) -> Derivatives:
        """The sum of the values with weights, ``arrays, weights, *args``."""
        function = self.plain
        return Derivatives(lambda x, w, *args: OPS["sum"](w * function(x, *args)), self.compiled)


def derivatives_of(
    name: str, function: Any, unknowns: Unknowns, checked: Callable[..., Any], compiled: bool
) -> Derivatives:
    """Derivatives of a user's function of the unknowns, whose result ``checked`` looks at.

    What was compiled is kept with the function, if that is a plain one. A function that ``ng.jit``
    made is compiled in any case.
    """
    if not callable(function):
        raise NumgradTypeError(
            f"{name}: takes a function of the unknowns, got a {type(function).__name__}"
        )
    compiled = compiled or jitted_in(function) is not None
    nested, count = unknowns.nested, len(unknowns.constants)

    def of_list(arrays: Sequence[Any], *args: Any) -> Any:
        return checked(name, function(nested(arrays, args[:count]), *args[count:]))

    of_list.__name__ = getattr(function, "__name__", type(function).__name__)
    derivatives = Derivatives(of_list, compiled)
    return (
        cached(function, (name, checked, unknowns.structure), derivatives)
        if compiled
        else derivatives
    )


def check_closures(
    name: str, derivatives: Derivatives, unknowns: Unknowns, args: Sequence[Any]
) -> None:
    """Raise if a transform, or solver, around this one follows what the function reads besides.

    The solution depends on that, but solvers compute with numbers.
    """
    if solutions_are_followed():
        refuse_differentiated(
            name,
            "the function uses",
            derivatives.plain(list(map(Tensor, unknowns.arrays(unknowns.x0))), *args),
        )


def solutions_are_followed() -> bool:
    """Whether a transform, or solver, around a solver may want derivatives of the solution."""
    return bool((state.transforms or SOLVING.depth) and state.grad_enabled)


def refuse_differentiated(name: str, who: str, value: Any) -> None:
    """Raise if a solution depends on a Tensor that is differentiated."""
    if isinstance(value, Tensor) and (value.requires_grad or has_tangent(value)):
        raise NumgradRuntimeError(
            f"{name}: {who} a Tensor that is differentiated, and the solution is a number that no "
            "gradient leads back from; find it with ng.implicit, which differentiates solutions, "
            "or use the Tensor's detach()"
        )


def cached(function: Any, key: Any, derivatives: Any) -> Any:
    """Cache what was made of a plain function, for the next solver that is given it."""
    if not isinstance(function, FunctionType | FunctionWrapper) and jitted_in(function) is None:
        return derivatives
    owner, cache = vars(function).get(KEPT, (None, {}))
    if owner is not function:  # functools.wraps hands attributes of one function to another
        cache = {}
        vars(function)[KEPT] = function, cache
    try:
        return cache.setdefault(key, derivatives)
    except TypeError:  # metadata of a registered container has no hash
        return derivatives


def number(name: str, value: Any) -> Any:
    """Value of an objective, one real number."""
    value = unlabelled(value)
    if type(value) is Tensor and value._array.shape == () and value._array.dtype.kind == "f":
        return value
    if isinstance(value, tuple | list) and any(isinstance(item, Tensor) for item in value):
        raise NumgradTypeError(
            f"{name}: the function returned a {type(value).__name__} of {len(value)}; it returns "
            "one real number. Gradients are taken here: of what returns a value and a gradient, "
            "give the first"
        )
    shown = value if isinstance(value, Tensor) else np.asarray(value)
    if shown.dtype.kind not in "biuf":
        raise NumgradTypeError(
            f"{name}: the function returned a {type(value).__name__} of dtype {shown.dtype}; it "
            "returns one real number"
        )
    if shown.size != 1:
        raise NumgradValueError(
            f"{name}: the function returned shape {shown.shape}; it returns one real number, take "
            "the sum or mean, or give residuals to ng.least_squares"
        )
    return value if shown.shape == () else shown.reshape(())


def vector(name: str, value: Any) -> Any:
    """Values of a function that returns several, as one vector."""
    numbers = leaves(value)
    for leaf in numbers:
        dtype = (leaf if isinstance(leaf, Tensor) else np.asarray(leaf)).dtype
        if dtype.kind not in "biuf":
            raise NumgradTypeError(
                f"{name}: the function returned a {type(leaf).__name__} of dtype {dtype}; it "
                "returns real numbers "
                "(of complex ones return real and imaginary part)"
            )
    if len(numbers) == 1:
        (leaf,) = numbers
        if getattr(leaf, "ndim", None) == 1:
            return leaf
        return leaf.reshape(-1) if hasattr(leaf, "reshape") else np.array([leaf], np.float64)
    flat = [OPS["reshape"](leaf, (-1,)) for leaf in numbers]
    return OPS["concat"](flat) if flat else np.zeros(0)


def independent(name: str, value: Any) -> NumgradRuntimeError:
    """The error for a result without a graph."""
    return NumgradRuntimeError(
        f"{name}: the function returned a {type(value).__name__} that does not depend on the "
        "unknowns, so there is no gradient; compute it from the argument without float(), "
        "np.asarray, detach() or no_grad, or choose a method without gradients"
    )
