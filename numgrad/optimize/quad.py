"""``ng.quad``: integrals by SciPy, with gradients.

Note [Derivatives of integrals]
-------------------------------
By a limit the derivative is the integrand there (Leibniz); by a parameter it is the integral of the
integrand's derivative, which is an integral with parameters of its own, those and the cotangent. So
there are derivatives of any order, each to the tolerances asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import integrate

from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.function import Function
from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, flatten, unflatten
from numgrad.errors import (
    NumgradRuntimeError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.products import jvp, vjp


def quad(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    *,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int | None = None,
    points: Sequence[float] | None = None,
) -> tuple[Any, float]:
    """The integral of a function by SciPy, with gradients in limits and parameters.

    Parameters
    ----------
    f
        ``f(x, *args)`` returns real numbers: one, or an array of some shape.
    a, b
        Limits; either may be infinite.
    args
        Parameters of ``f``, a tuple: Tensors, to which gradients go, nestings of them, and anything
        else.
    epsabs, epsrel
        Tolerances, absolute and relative; also those of gradients.
    limit
        The most intervals, by default 50 for one number and 10,000 for arrays.
    points
        Where to divide a finite interval, at kinks for instance.

    Returns
    -------
    value : float, ndarray or Tensor
        The integral, of the shape that ``f`` returns; a Tensor if a limit or parameter is one.
    error : float
        An estimate of its error.

    Raises
    ------
    NumgradTypeError
        If ``f`` does not return real numbers.
    NumgradValueError
        If a limit is no number.
    NumgradRuntimeError
        If ``f`` closes over a Tensor that requires grad: it belongs into ``args``.
    NumgradTraceError
        Inside ``ng.jit``.

    Warns
    -----
    scipy.integrate.IntegrationWarning
        If SciPy did not get to the tolerances.

    Notes
    -----
    QUADPACK integrates single numbers, ``scipy.integrate.quad_vec`` arrays. Where the result is
    differentiated by ``p``, the gradient is the integral of ``df/dp``: so that has to converge.
    Inside ``vmap`` examples are integrated one after the other.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def bell(x, width):
    ...     return np.exp(-((x / width) ** 2))
    >>> def area(width):
    ...     return ng.quad(bell, 0, np.inf, args=(width,))[0]
    >>> print(np.round([area(2.0), ng.grad(area)(2.0), np.sqrt(np.pi) / 2], 6))
    [1.772454 0.886227 0.886227]
    """
    if not callable(f):
        raise NumgradTypeError(f"quad: takes a function of x, got a {type(f).__name__}")
    if state.ground.deferred:
        raise NumgradTraceError(
            "quad: SciPy integrates in Python, which cannot be compiled; call quad outside of "
            "ng.jit (f itself may be compiled), or sum over fixed nodes"
        )
    parameters: list[Any] = []
    nesting = flatten(args if isinstance(args, tuple) else (args,), parameters)
    for leaf in parameters:
        refuse_mask("quad", leaf)
    tensors = [leaf for leaf in parameters if isinstance(leaf, Tensor)]
    others = tuple(None if isinstance(leaf, Tensor) else (leaf,) for leaf in parameters)
    integral = Integral(f, nesting, others, epsabs, epsrel, limit, points)
    low, high = _limit("a", a), _limit("b", b)
    if not (tensors or isinstance(low, Tensor) or isinstance(high, Tensor)):
        with no_grad():
            return integral.solved(low, high, ())
    errors: list[float] = []
    value = Quad.apply(integral, errors, _tensor(low), _tensor(high), *tensors)
    return value, max(errors)


@dataclass(frozen=True)
class Integral:
    """An integrand, and how to integrate it."""

    function: Callable[..., Any]
    nesting: Nesting
    others: tuple
    epsabs: float
    epsrel: float
    limit: int | None
    points: Sequence[float] | None

    def at(self, x: Any, parameters: Sequence[Tensor]) -> Any:
        """The integrand."""
        values = iter(parameters)
        leaves = [next(values) if other is None else other[0] for other in self.others]
        return self.function(x, *unflatten(self.nesting, iter(leaves)))

    def of(self, function: Callable[..., Any], count: int) -> Integral:
        """The same of another function, of ``x`` and so many Tensors."""
        nesting: Nesting = (tuple, None, (None,) * count)
        return replace(self, function=function, nesting=nesting, others=(None,) * count)

    def solved(self, a: Any, b: Any, parameters: Sequence[Tensor]) -> tuple[Any, float]:
        """Numbers: the value and an estimate of its error."""
        low, high = (float(end) for end in (a, b))

        def integrand(x: float) -> np.ndarray:
            return _numbers(self.at(x, parameters))

        shape = self._tried(_between(low, high), parameters).shape
        options: dict[str, Any] = {"epsabs": self.epsabs, "epsrel": self.epsrel}
        options |= {} if self.limit is None else {"limit": self.limit}
        options |= {} if self.points is None else {"points": self.points}
        if int(np.prod(shape)) == 1:
            value, error, _, *message = integrate.quad(
                lambda x: integrand(x).item(), low, high, full_output=1, **options
            )
            failed = message[0] if message else None
        elif low == high or 0 in shape:
            value, error, failed = np.zeros(shape), 0.0, None
        else:
            ends = (low, high) if low < high else (high, low)
            value, error, info = integrate.quad_vec(
                integrand, *ends, norm="max", full_output=True, **options
            )
            value = value if low < high else -value
            failed = None if info.success else info.message
        if failed is not None:
            warn(f"quad: {failed}", integrate.IntegrationWarning)
        return (np.reshape(value, shape) if shape else value), float(error)

    def _tried(self, x: float, parameters: Sequence[Tensor]) -> np.ndarray:
        """The integrand at one point, if it does not close over what gradients should go to."""
        with enable_grad():
            value = self.at(x, [each.detach() for each in parameters])
        if isinstance(value, Tensor) and (
            type(value) is not Tensor or value.requires_grad or has_tangent(value)
        ):
            raise NumgradRuntimeError(
                "quad: the function closes over a Tensor that is differentiated or mapped, which "
                "would be lost; pass the Tensor in args"
            )
        return _numbers(value)

    def vjp(self, numbers: Sequence[int]) -> Integral:
        """The integrand's gradients by some parameters, as one vector; ``(x, w, *parameters)``."""

        def gradients(x: Any, w: Tensor, *parameters: Tensor) -> Tensor:
            def function(*some: Tensor) -> Tensor:
                values = list(parameters)
                for k, each in zip(numbers, some, strict=True):
                    values[k] = each
                return _tensor(self.at(x, values))

            _, product = vjp(function, *[parameters[k] for k in numbers])
            grads = product(w)
            several = grads if len(numbers) > 1 else (grads,)
            return OPS["concat"]([grad.reshape(-1) for grad in several])

        return self.of(gradients, 1 + len(self._tensors()))

    def jvp(self, moving: Sequence[int]) -> Integral:
        """The integrand's derivative; ``(x, *parameters, *tangents of those that move)``."""
        count = len(self._tensors())

        def derivative(x: Any, *inputs: Tensor) -> Any:
            parameters, tangents = inputs[:count], inputs[count:]

            def function(*some: Tensor) -> Tensor:
                whole = list(parameters)
                for k, each in zip(moving, some, strict=True):
                    whole[k] = each
                return _tensor(self.at(x, whole))

            return jvp(function, tuple(parameters[k] for k in moving), tangents)[1]

        return self.of(derivative, count + len(moving))

    def _tensors(self) -> list[None]:
        return [None for other in self.others if other is None]


class Quad(Function):
    """An integral on the tape: Note [Derivatives of integrals]."""

    own_rule = False

    @staticmethod
    def forward(integral: Integral, errors: list[float], *inputs: Tensor) -> Tensor:
        """Integrate."""
        a, b, *parameters = inputs
        value, error = integral.solved(a, b, parameters)
        errors.append(error)
        return _tensor(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        """Keep what is differentiated by."""
        ctx.integral, _, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, w: Tensor) -> Any:
        """Gradients of limits and parameters."""
        a, b, *parameters = ctx.saved_tensors
        integral, needed = ctx.integral, ctx.needs_input_grad[2:]
        by_ends: list[Any] = []
        for sign, end, needs in ((-1.0, a, needed[0]), (1.0, b, needed[1])):
            known = needs and np.isfinite(end.detach().numpy())
            by_ends.append(
                OPS["sum"](w * _tensor(integral.at(end, parameters))) * sign if known else None
            )
        numbers = [k for k, needs in enumerate(needed[2:]) if needs]
        by_parameters: list[Any] = [None] * len(parameters)
        if numbers:
            # Tolerances are those of weights of the size of one.
            scale = float(np.max(np.abs(w.detach().numpy()), initial=0.0))
            scale = scale if 0 < scale < np.inf else 1.0
            whole = Quad.apply(integral.vjp(numbers), [], a, b, w / scale, *parameters) * scale
            start = 0
            for k in numbers:
                size, like = parameters[k].size, parameters[k]
                chunk = whole[start : start + size].reshape(like.shape)
                by_parameters[k] = chunk.astype(like.dtype) if like.dtype != chunk.dtype else chunk
                start += size
        return None, None, *by_ends, *by_parameters

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *tangents: Any) -> Any:
        """The derivative along a direction."""
        a, b, *parameters = ctx.saved_tensors
        integral, moves = ctx.integral, tangents[2:]
        moving = [k for k, tangent in enumerate(moves) if tangent is not None]
        total: Any = 0.0
        if moving:
            inputs = (*parameters, *(moves[k] for k in moving))
            total = Quad.apply(integral.jvp(moving), [], a, b, *inputs)
        for sign, end, tangent in ((-1.0, a, tangents[0]), (1.0, b, tangents[1])):
            if tangent is not None and np.isfinite(end.detach().numpy()):
                total = total + sign * tangent * integral.at(end, parameters)
        return total

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> tuple[Any, Any]:
        """One example after the other."""
        values = []
        for k in range(info.batch_size):
            each = zip(args, in_dims, strict=True)
            values.append(Quad.apply(*(x if axis is None else x[k] for x, axis in each)))
        return OPS["stack"](values), 0


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value, np.float64))


def _limit(name: str, end: Any) -> Any:
    shown = end if isinstance(end, Tensor) else np.asarray(end)
    if shown.dtype.kind not in "biuf" or shown.size != 1:
        raise NumgradValueError(
            f"quad: the limit {name} is a {type(end).__name__} of dtype {shown.dtype} and shape "
            f"{shown.shape}; it is one real number (ng.vmap takes several)"
        )
    if not isinstance(end, Tensor):
        if np.isnan(shown).any():
            raise NumgradValueError(f"quad: the limit {name} is not a number")
        return float(shown.reshape(())[()])
    return end.reshape(()) if end.dtype == np.float64 else end.reshape(()).astype(np.float64)


def _numbers(value: Any) -> np.ndarray:
    array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise NumgradTypeError(
            f"quad: the function returned a {type(value).__name__} of dtype {array.dtype}; it "
            "returns real numbers (integrate real and imaginary part)"
        )
    return array.astype(np.float64, copy=False)


def _between(low: float, high: float) -> float:
    """A point inside of the interval."""
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * 0.4375
    if np.isfinite(low) or np.isfinite(high):
        end = low if np.isfinite(low) else high
        return end + (1.0 if max(low, high) == np.inf else -1.0)
    return 0.0
