"""A system of differential equations on the leaves of its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength
from numgrad.core.interpreter import state
from numgrad.core.masks import refuse_mask
from numgrad.core.op import OPS
from numgrad.core.tree import align, flatten, leaves, paths, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor

Leaves = list[Any]


def lifted(what: str, x: Any) -> Tensor:
    """A leaf as a Tensor."""
    if isinstance(x, Tensor):
        return x
    refuse_mask("odeint", x)
    if not isinstance(x, AbstractLength) and np.asarray(x).dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"odeint: {what} holds a {type(x).__name__}; it holds arrays and numbers"
        )
    return Tensor(state.ground.lift(x))


def as_number(what: str, x: Any) -> Any:
    """An option that is a positive number, or None; one that is an array is constant."""
    if x is None:
        return None
    if isinstance(x, Tensor):
        return x.detach()
    if not isinstance(x, int | float | np.number | np.ndarray) or not np.all(np.asarray(x) > 0):
        raise NumgradValueError(f"odeint: {what} is {x!r}; it is a positive number")
    return float(x)


def _tolerance(what: str, x: Any) -> Any:
    """A tolerance of one leaf, a constant."""
    if isinstance(x, Tensor):
        return x.detach()
    array = np.asarray(x)
    if (
        array.dtype.kind not in "iuf"
        or not np.all(array >= 0)
        or (what == "atol" and not np.all(array))
    ):
        raise NumgradValueError(
            f"odeint: {what} is {x!r}; rtol is not negative, and atol is positive"
        )
    return array if array.ndim else float(array)


def beside(x: Any, state: Any, real: np.dtype) -> Any:
    """A number, or one for each time, to multiply states by."""
    if not isinstance(x, Tensor):
        return x
    x = x if x.dtype == real else OPS["astype"](x, real)
    return OPS["reshape"](x, (*x.shape, *(1,) * (state.ndim - 1))) if x.ndim else x


def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0
    return isinstance(x, int | float | complex | np.generic | np.ndarray) and np.ndim(x) == 0


def _vector(value: Any) -> Any:
    """A list of numbers as the vector that it stands for."""
    if type(value) in (list, tuple) and value and all(map(_is_number, value)):
        return OPS["stack"]([lifted("a vector", x) for x in value])
    return value


class Motion:
    """``dy/dt = f(y, t, *args)``, where ``y`` is a list of the leaves of a state.

    Attributes
    ----------
    start
        The first state.
    """

    def __init__(self, f: Callable[..., Any], y0: Any, args: tuple) -> None:
        self.f, self.args = f, args
        found: list[Any] = []
        self.as_tensors = any(isinstance(x, Tensor) for x in leaves((y0, args)))
        self.nesting = flatten(_vector(y0), found)
        if not found:
            raise NumgradValueError("odeint: y0 has no array in it; give a state")
        self.start = [self._inexact(lifted("y0", x)) for x in found]
        self.kinds = [y.dtype for y in self.start]
        self.reals = [np.finfo(kind).dtype for kind in self.kinds]

    @staticmethod
    def _inexact(y: Tensor) -> Tensor:
        return y if y.dtype.kind in "fc" else OPS["astype"](y, np.float64)

    def tolerance(self, what: str, given: Any) -> Leaves:
        """A tolerance for each leaf."""
        if given is None:
            return [float(np.sqrt(np.finfo(kind).eps)) for kind in self.reals]
        if self.nesting is not None and not isinstance(given, int | float | np.number | Tensor):
            found: list[Any] = []
            where = align(self.nesting, given, found, what)
            if where is not None:
                raise NumgradValueError(
                    f"odeint: {where} is nested otherwise than y0; give a number, or one for "
                    "each array of y0"
                )
        else:
            found = [given] * len(self.start)
        return [_tolerance(what, x) for x in found]

    def slopes(self, y: Sequence[Tensor], t: Any) -> Leaves:
        """The right-hand side, in the dtypes of the state."""
        out = self.f(unflatten(self.nesting, iter(y)), t, *self.args)
        found: list[Any] = []
        where = align(self.nesting, _vector(out) if self.nesting is None else out, found, "y")
        if where is not None:
            raise NumgradValueError(
                f"odeint: the function returned a {type(out).__name__} that is at {where} nested "
                "otherwise than y0; return the derivative of each part, nested as y0"
            )
        made = []
        for place, part, like in zip(paths(self.nesting, "y"), found, y, strict=True):
            slope = lifted("what the function returned", part)
            if tuple(slope.shape) != tuple(like.shape):
                raise NumgradValueError(
                    f"odeint: the function returned shape {tuple(slope.shape)} for {place} of "
                    f"shape {tuple(like.shape)}; return the derivative of each element"
                )
            if slope.dtype.kind == "c" and like.dtype.kind != "c":
                raise NumgradTypeError(
                    f"odeint: the function returned dtype {slope.dtype} for {place}, which is "
                    "real; give a complex y0, such as y0.astype(complex)"
                )
            made.append(slope if slope.dtype == like.dtype else OPS["astype"](slope, like.dtype))
        return made

    def scaled(self, h: Any, weights: Sequence[Any], slopes: Sequence[Leaves]) -> Leaves:
        """``h`` times a weighted sum of slopes, for each leaf.

        ``h`` and the weights are numbers, or vectors that go along the first axis of slopes.
        """
        terms = [(w, k) for w, k in zip(weights, slopes, strict=True) if isinstance(w, Tensor) or w]
        found = []
        for leaf, real in enumerate(self.reals):
            total = None
            for w, k in terms:
                term = beside(w, k[leaf], real) * k[leaf]
                total = term if total is None else total + term
            found.append(beside(h, slopes[0][leaf], real) * total)
        return found

    def moved(self, y: Leaves, h: Any, weights: Sequence[Any], slopes: Sequence[Leaves]) -> Leaves:
        """``y`` plus ``h`` times a weighted sum of slopes."""
        return [a + b for a, b in zip(y, self.scaled(h, weights, slopes), strict=True)]

    def result(self, rows: Leaves, t: Any) -> Any:
        """States as the caller gets them: ndarrays where nobody asked for Tensors."""
        tensors = self.as_tensors or isinstance(t, Tensor) or state.ground.deferred
        tensors = tensors or bool(state.transforms or state.interpreters)
        if not tensors and not any(y.requires_grad for y in rows):
            rows = [y._array for y in rows]
        return unflatten(self.nesting, iter(rows))
