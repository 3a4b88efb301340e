"""Integrals of functions: by SciPy, nested, and at Gauss nodes, with gradients.

Note [Derivatives of integrals]
-------------------------------
By a limit the derivative is the integrand there (Leibniz); by a parameter it is the integral of the
integrand's derivative, which is an integral with parameters of its own, those and the cotangent. So
there are derivatives of any order, each to the tolerances asked for. What the integrand closes over
is a parameter too, whose gradients are pulled through the integrand's own graph at each point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import integrate

from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, flatten, leaves, unflatten
from numgrad.errors import (
    NumgradRuntimeError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.implicit.solution import Gate, Gated, SolverFunction
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import closed_over
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
        If ``f`` closes over a Tensor that forward mode or ``vmap`` follows: it belongs into
        ``args``.
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
    Gradients also go to Tensors that ``f`` closes over. Inside ``vmap`` examples are integrated one
    after the other.

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
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    return _integral("quad", f, a, b, args, options)


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    limit: int = 10000,
    points: Sequence[float] | None = None,
    *,
    args: Any = (),
) -> tuple[Any, float]:
    """The integral of a function that returns arrays, with gradients as ``quad``.

    Parameters
    ----------
    f, a, b, args, points
        As of ``quad``.
    epsabs, epsrel
        Tolerances, absolute and relative.
    norm : {'2', 'max'}
        The norm of an array's error that is compared with them.
    limit : int
        The most intervals.

    Returns
    -------
    value : float, ndarray or Tensor
        The integral, of the shape that ``f`` returns.
    error : float
        An estimate of its error.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def powers(x, k):
    ...     return x ** np.arange(3.0) * k
    >>> ng.grad(lambda k: ng.integrate.quad_vec(powers, 0, 1, args=(k,))[0].sum())(1.0).round(6)
    np.float64(1.833333)
    """
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points, "norm": norm}
    return _integral("quad_vec", f, a, b, args, options)


def nquad(
    func: Callable[..., Any], ranges: Sequence[Any], args: Any = None, opts: Any = None
) -> tuple[Any, float]:
    """The integral of a function of several variables, with gradients in limits and parameters.

    Parameters
    ----------
    func
        ``func(x0, ..., xn, *args)`` returns a real number; the innermost integral is by ``x0``.
    ranges
        For each variable a pair of limits, or a function of the variables behind it and ``args``
        that returns one.
    args
        Parameters of ``func``, a tuple as for ``quad``.
    opts
        Options of ``quad``, a dict or for each variable one, or a function that returns one.

    Returns
    -------
    value : float or Tensor
        The integral.
    error : float
        The largest estimate of the errors of its one-dimensional integrals.

    Raises
    ------
    NumgradValueError
        If there is no range, or not as many dicts of options.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def area(r):  # of a quarter of a disc of that radius
    ...     ranges = [lambda x: (0, np.sqrt(r * r - x * x)), (0, r)]
    ...     return ng.integrate.nquad(lambda y, x: 1.0, ranges)[0]
    >>> round(area(2.0), 6)
    3.141593
    """
    return _iterated("nquad", func, ranges, args, opts)


class _Followed(Exception):
    """A value that derivatives or examples lead back from."""


def _iterated(
    name: str, func: Callable[..., Any], ranges: Sequence[Any], args: Any, opts: Any
) -> tuple[Any, float]:
    """Integral by the first variable, of which that by the second is taken, and so on.

    Ends of a pair may be functions too, of the variables behind it from the last one on.
    """
    if not len(ranges):
        raise NumgradValueError(f"{name}: ranges is empty; give the limits of each variable")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    each = list(opts) if isinstance(opts, list | tuple) else [opts] * len(ranges)
    if len(each) != len(ranges):
        raise NumgradValueError(f"{name}: {len(each)} options for {len(ranges)} ranges")
    errors: list[float] = []

    def over(count: int, outer: tuple, given: tuple[tuple, Sequence[Any]], plain: bool) -> Any:
        """The integral by the first variables, at values of those behind."""
        args, ranges = given
        if not count:
            value = func(*outer, *args)
            return _plain_number(name, value) if plain else value
        limits: Any = ranges[count - 1]
        options: Any = each[count - 1]
        if callable(limits):
            limits = limits(*outer, *args)
        low, high = (end(*outer[::-1]) if callable(end) else end for end in limits)
        options = (options(*outer, *args) if callable(options) else options) or {}
        low, high = _limit(name, "low", low), _limit(name, "high", high)
        if plain:
            low, high = _plain_number(name, low), _plain_number(name, high)
            value, error = _quadpack(
                name, lambda x: over(count - 1, (x, *outer), given, True), low, high, **options
            )
        else:

            def inner(x: Any, behind: tuple, given: Any) -> Any:
                return over(count - 1, (x, *behind), given, False)

            value, error = _integral(name, inner, low, high, (outer, given), options)
        errors.append(error)
        return value

    given = args, [limits if callable(limits) else tuple(limits) for limits in ranges]
    plain = not (state.ground.deferred or any(isinstance(x, Tensor) for x in leaves(given)))
    try:
        value = over(len(ranges), (), given, plain)
    except _Followed:
        errors.clear()
        value = over(len(ranges), (), given, False)
    return value, max(errors)


def _plain_number(name: str, value: Any) -> float:
    """A number of the user's that nothing follows."""
    if type(value) is float:
        return value
    if _is_followed(value):
        raise _Followed
    number = _numbers(name, value)
    if number.size != 1:
        raise NumgradValueError(
            f"{name}: the function returned shape {number.shape}; it returns one number "
            "(ng.integrate.quad_vec takes arrays)"
        )
    return number.item()


def _is_followed(value: Any) -> bool:
    return isinstance(value, Tensor) and (
        type(value) is not Tensor or value.requires_grad or has_tangent(value)
    )


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, float]:
    """The double integral of ``func(y, x)``, with gradients in limits and parameters.

    Parameters
    ----------
    func
        ``func(y, x, *args)`` returns a real number.
    a, b
        Limits of ``x``.
    gfun, hfun
        Limits of ``y``: numbers, or functions of ``x``.
    args
        Parameters of ``func``, a tuple as for ``quad``.
    epsabs, epsrel
        Tolerances of each one-dimensional integral.

    Returns
    -------
    value : float or Tensor
        The integral.
    error : float
        The largest estimate of the errors of its one-dimensional integrals.

    Examples
    --------
    >>> import numgrad as ng
    >>> def area(k):
    ...     return ng.integrate.dblquad(lambda y, x, k: k * x * y, 0, 2, 0, lambda x: x, (k,))[0]
    >>> ng.grad(area)(3.0).round(6)
    np.float64(2.0)
    """
    options = {"epsabs": epsabs, "epsrel": epsrel}
    return _iterated("dblquad", func, [(gfun, hfun), (a, b)], args, options)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, float]:
    """The triple integral of ``func(z, y, x)``, with gradients in limits and parameters.

    Parameters
    ----------
    func
        ``func(z, y, x, *args)`` returns a real number.
    a, b
        Limits of ``x``.
    gfun, hfun
        Limits of ``y``: numbers, or functions of ``x``.
    qfun, rfun
        Limits of ``z``: numbers, or functions of ``x`` and ``y``.
    args
        Parameters of ``func``, a tuple as for ``quad``.
    epsabs, epsrel
        Tolerances of each one-dimensional integral.

    Returns
    -------
    value : float or Tensor
        The integral.
    error : float
        The largest estimate of the errors of its one-dimensional integrals.

    Examples
    --------
    >>> import numgrad as ng
    >>> value, _ = ng.integrate.tplquad(lambda z, y, x: x * y * z, 1, 2, 2, 3, 0, 1)
    >>> round(value, 6)
    1.875
    """
    options = {"epsabs": epsabs, "epsrel": epsrel}
    return _iterated("tplquad", func, [(qfun, rfun), (gfun, hfun), (a, b)], args, options)


def fixed_quad(
    func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5
) -> tuple[Any, None]:
    """The integral by Gauss-Legendre quadrature of order ``n``, which ``ng.jit`` compiles.

    Parameters
    ----------
    func
        ``func(x, *args)`` of a vector of points returns values along its last axis.
    a, b
        Finite limits, to which gradients go.
    args
        Parameters of ``func``, a tuple.
    n : int
        Number of points.

    Returns
    -------
    value : Tensor
        The integral, exact for polynomials of degree ``2 n - 1``.
    none
        None, as SciPy returns.

    Raises
    ------
    NumgradValueError
        If a limit is infinite.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.grad(lambda b: ng.integrate.fixed_quad(np.cos, 0.0, b)[0])(0.5).round(6)
    np.float64(0.877583)
    """
    n = as_index("fixed_quad", n, "n")
    if n < 1:
        raise NumgradValueError(f"fixed_quad: n is the number of nodes, at least 1, got {n}")
    nodes, weights = np.polynomial.legendre.leggauss(n)
    a, b = as_operand(a), as_operand(b)
    for end in (a, b):
        if isinstance(end, np.ndarray) and np.any(np.isinf(end)):
            raise NumgradValueError("fixed_quad: limits must be finite; quad takes infinite ones")
    values = func((b - a) * (nodes + 1) / 2 + a, *args)
    return (b - a) / 2 * OPS["sum"](weights * values, axis=-1), None


# ---------------------------------------------------------------------------------- on the tape


def _integral(
    name: str, f: Callable[..., Any], a: Any, b: Any, args: Any, options: dict[str, Any]
) -> tuple[Any, float]:
    if not callable(f):
        raise NumgradTypeError(f"{name}: takes a function of x, got a {type(f).__name__}")
    if state.ground.deferred:
        raise NumgradTraceError(
            f"{name}: SciPy integrates in Python, which cannot be compiled; call {name} outside of "
            "ng.jit (f itself may be compiled), or use ng.integrate.fixed_quad"
        )
    parameters: list[Any] = []
    nesting = flatten(args if isinstance(args, tuple) else (args,), parameters)
    for leaf in parameters:
        refuse_mask(name, leaf)
    tensors = [leaf for leaf in parameters if isinstance(leaf, Tensor)]
    others = tuple(None if isinstance(leaf, Tensor) else (leaf,) for leaf in parameters)
    followed = state.grad_enabled or bool(state.interpreters)
    integral = Integral(name, f, nesting, others, options, followed)
    low, high = _limit(name, "a", a), _limit(name, "b", b)
    if state.grad_enabled and all(type(x) in (Tensor, float) for x in (low, high, *tensors)):
        integral = replace(integral, closures=integral.closures_at(low, high, tensors))
    is_tensor = any(isinstance(x, Tensor) for x in (low, high, *tensors, *integral.closures))
    if not (is_tensor and followed):
        with no_grad():
            value, error = integral.solved(low, high, tensors)
        return (_tensor(value) if is_tensor else value), error
    errors: list[float] = []
    ends = _tensor(low), _tensor(high)
    value = Quad.apply(integral, errors, *ends, *tensors, *integral.closures)
    return value, max(errors)


@dataclass(frozen=True)
class Integral:
    """An integrand, and how to integrate it.

    Attributes
    ----------
    followed
        Whether derivatives of the integral may be asked for.
    closures
        Tensors with the place in the graph of what the integrand closes over; their numbers mean
        nothing.
    """

    name: str
    function: Callable[..., Any]
    nesting: Nesting
    others: tuple
    options: dict[str, Any]
    followed: bool
    closures: tuple[Tensor, ...] = field(default=())

    @property
    def remedy(self) -> str:
        """What to do about a Tensor that is followed from outside."""
        if self.name not in ("dblquad", "tplquad"):
            return "pass the Tensor in args"
        return (
            "pass the Tensor in args; for limits take nquad, whose ranges are functions of args too"
        )

    def at(self, x: Any, parameters: Sequence[Tensor]) -> Any:
        """The integrand."""
        values = iter(parameters)
        leaves = [next(values) if other is None else other[0] for other in self.others]
        return self.function(x, *unflatten(self.nesting, iter(leaves)))

    def of(self, function: Callable[..., Any], count: int) -> Integral:
        """The same of another function, of ``x`` and so many Tensors."""
        nesting: Nesting = (tuple, None, (None,) * count)
        return replace(self, function=function, nesting=nesting, others=(None,) * count)

    def closures_at(self, a: Any, b: Any, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Tensors that the integrand closes over, at some points; if at any, at all points."""
        low, high = (float(end._array if isinstance(end, Tensor) else end) for end in (a, b))
        points = [_between(low, high, part) for part in (0.0625, 0.4375, 0.875)]

        def function(own: Sequence[Tensor]) -> list[Tensor]:
            values = [self.at(x, own) for x in points]
            return [value for value in values if isinstance(value, Tensor)]

        standins = [Tensor(np.array(p._array), p.dtype.kind in "fc") for p in parameters]
        closures = tuple(closed_over(self.name, function, standins, self.remedy))
        if not closures:
            return ()
        points = []  # a branch may close over others
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", integrate.IntegrationWarning)
            replace(self, closures=closures).solved(low, high, parameters, points)
        return tuple(closed_over(self.name, function, standins, self.remedy))

    def solved(
        self, a: Any, b: Any, parameters: Sequence[Tensor], points: list[float] | None = None
    ) -> tuple[Any, float]:
        """Numbers: the value and an estimate of its error; ``points`` gets the places of values."""
        low, high = (float(end) for end in (a, b))
        parameters = [each.detach() for each in parameters]

        checks = self.followed and not self.closures

        def integrand(x: float) -> np.ndarray:
            if points is not None:
                points.append(x)
            with enable_grad() if checks else no_grad():
                value = self.at(x, parameters)
            if checks and _is_followed(value):
                raise NumgradRuntimeError(
                    f"{self.name}: the function closes over a Tensor that is differentiated or "
                    f"mapped, which would be lost; {self.remedy}"
                )
            return _numbers(self.name, value)

        shape = integrand(_between(low, high)).shape
        options: Any = {key: value for key, value in self.options.items() if value is not None}
        if int(np.prod(shape)) == 1 and "norm" not in options:
            value, error = _quadpack(self.name, lambda x: integrand(x).item(), low, high, **options)
        elif low == high or 0 in shape:
            value, error = np.zeros(shape), 0.0
        else:
            ends = (low, high) if low < high else (high, low)
            value, error, info = integrate.quad_vec(
                integrand, *ends, full_output=True, **({"norm": "max"} | options)
            )
            value = value if low < high else -value
            if not info.success:
                warn(f"{self.name}: {info.message}", integrate.IntegrationWarning)
        return (np.reshape(value, shape) if shape else value), float(error)

    def vjp(self, numbers: Sequence[int]) -> Integral:
        """The integrand's gradients by some parameters, as one vector; ``(x, w, *parameters)``.

        Numbers behind those of the parameters are of what is closed over.
        """
        count = len(self._tensors())
        places = [self.closures[k - count] for k in numbers if k >= count]
        numbers = [k for k in numbers if k < count]

        def gradients(x: Any, w: Tensor, *parameters: Tensor) -> Tensor:
            def function(*some: Tensor) -> Tensor:
                values = list(parameters)
                for k, each in zip(numbers, some, strict=True):
                    values[k] = each
                return _tensor(self.at(x, values))

            several: list[Any] = []
            if numbers:
                _, product = vjp(function, *[parameters[k] for k in numbers])
                grads = product(w)
                several += grads if len(numbers) > 1 else (grads,)
            if places:
                create, gate = state.grad_enabled, Gate()
                with enable_grad():  # the point and parameters may depend on what is closed over
                    held = [Gated.apply(gate, _tensor(each)) for each in (x, *parameters)]
                    value = _tensor(self.at(held[0], held[1:]))
                pulled: Any = [None] * len(places)
                if value.requires_grad:
                    pulled = dense_grad([value], places, [w], True, create, allow_unused=True)
                gate.is_open = True
                several += [
                    Tensor(np.zeros(t.shape, t.dtype)) if g is None else g
                    for g, t in zip(pulled, places, strict=True)
                ]
            return OPS["concat"]([grad.reshape(-1) for grad in several])

        return self.of(gradients, 1 + count)

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

    def own(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Parameters alone, without what is closed over behind them."""
        return tensors[: len(tensors) - len(self.closures)]

    def _tensors(self) -> list[None]:
        return [None for other in self.others if other is None]


class Quad(SolverFunction):
    """An integral on the tape: Note [Derivatives of integrals]."""

    @classmethod
    def run_forward(cls, ctx: Any, args: tuple, keywords: dict[str, Any]) -> Tensor:
        """Integrate."""
        ctx.integral, errors, a, b, *tensors = args
        value, error = ctx.integral.solved(a, b, ctx.integral.own(tensors))
        errors.append(error)
        ctx.save_for_backward(a, b, *tensors)
        ctx.save_for_forward(a, b, *tensors)
        return _tensor(value)

    @staticmethod
    def backward(ctx: Any, w: Tensor) -> Any:
        """Gradients of limits and parameters."""
        a, b, *tensors = ctx.saved_tensors
        integral, needed = ctx.integral, ctx.needs_input_grad[2:]
        parameters = integral.own(tensors)
        by_ends: list[Any] = []
        for sign, end, needs in ((-1.0, a, needed[0]), (1.0, b, needed[1])):
            known = needs and np.isfinite(end.detach().numpy())
            by_ends.append(
                OPS["sum"](w * _tensor(integral.at(end, parameters))) * sign if known else None
            )
        numbers = [k for k, needs in enumerate(needed[2:]) if needs]
        by_parameters: list[Any] = [None] * len(tensors)
        if numbers:
            # Tolerances are those of weights of the size of one.
            scale = float(np.max(np.abs(w.detach().numpy()), initial=0.0))
            scale = scale if 0 < scale < np.inf else 1.0
            whole = Quad.apply(integral.vjp(numbers), [], a, b, w / scale, *tensors) * scale
            start = 0
            for k in numbers:
                size, like = tensors[k].size, tensors[k]
                chunk = whole[start : start + size].reshape(like.shape)
                by_parameters[k] = chunk.astype(like.dtype) if like.dtype != chunk.dtype else chunk
                start += size
        return None, None, *by_ends, *by_parameters

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *tangents: Any) -> Any:
        """The derivative along a direction."""
        a, b, *tensors = ctx.saved_tensors
        integral, moves = ctx.integral, tangents[2:]
        parameters = integral.own(tensors)
        moving = [k for k, tangent in enumerate(moves) if tangent is not None]
        total: Any = 0.0
        if moving:
            inputs = (*parameters, *(moves[k] for k in moving), *integral.closures)
            total = Quad.apply(integral.jvp(moving), [], a, b, *inputs)
        for sign, end, tangent in ((-1.0, a, tangents[0]), (1.0, b, tangents[1])):
            if tangent is not None and np.isfinite(end.detach().numpy()):
                total = total + sign * tangent * integral.at(end, parameters)
        return total


def _quadpack(
    name: str, function: Callable[[float], float], low: float, high: float, **options: Any
) -> tuple[float, float]:
    """The integral of a function of numbers, and an estimate of its error."""
    value, error, _, *message = integrate.quad(function, low, high, full_output=1, **options)
    if message:
        warn(f"{name}: {message[0]}", integrate.IntegrationWarning)
    return value, error


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value, np.float64))


def _limit(operation: str, name: str, end: Any) -> Any:
    if type(end) is float and end == end:
        return end
    shown = end if isinstance(end, Tensor) else np.asarray(end)
    if shown.dtype.kind not in "biuf" or shown.size != 1:
        raise NumgradValueError(
            f"{operation}: the limit {name} is a {type(end).__name__} of dtype {shown.dtype} and "
            f"shape {shown.shape}; it is one real number (ng.vmap takes several)"
        )
    if not isinstance(end, Tensor):
        if np.isnan(shown).any():
            raise NumgradValueError(f"{operation}: the limit {name} is not a number")
        return float(shown.reshape(())[()])
    return end.reshape(()) if end.dtype == np.float64 else end.reshape(()).astype(np.float64)


def _numbers(name: str, value: Any) -> np.ndarray:
    array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise NumgradTypeError(
            f"{name}: the function returned a {type(value).__name__} of dtype {array.dtype}; it "
            "returns real numbers (integrate real and imaginary part)"
        )
    return array.astype(np.float64, copy=False)


def _between(low: float, high: float, part: float = 0.4375) -> float:
    """A point inside of the interval, that part of the way."""
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * part
    far = part / (1 - part)
    if np.isfinite(low) or np.isfinite(high):
        end = low if np.isfinite(low) else high
        return end + (far if max(low, high) == np.inf else -far)
    return far - 1 / far
