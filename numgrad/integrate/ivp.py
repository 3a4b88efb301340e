"""``solve_ivp``: SciPy solves, numgrad differentiates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, flatten, leaves, paths, unflatten
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.integrate.rules import Problem, SolveIvp
from numgrad.integrate.solving import Settings, solved
from numgrad.integrate.system import Slopes, System, captured
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.chosen import check_function
from numgrad.transforms.mapping import vmap

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    args: Any = (),
    *,
    adjoint: str = "auto",
    jit: bool = False,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    **options: Any,
) -> Any:
    """Solve an initial value problem by SciPy, ``dy/dt = fun(t, y, *args)``, with gradients.

    Parameters
    ----------
    fun
        Takes the time, the state, which is a Tensor or a nesting of them as ``y0`` is, and
        ``args``; returns what is nested and shaped as the state (for a vector also a list of
        numbers).
    t_span
        The first and the last time; numbers or Tensors.
    y0
        The first state: a vector as for SciPy, an array of any shape, or a nesting of arrays.
        What is computed is of double precision.
    method
        ``"RK23"``, ``"RK45"``, ``"DOP853"``, or for stiff systems ``"Radau"``, ``"BDF"``,
        ``"LSODA"``, which are given exact Jacobians; or a class, as for SciPy.
    t_eval
        Times within the span at which the solution is wanted, in the order of integration; by
        default those that the solver chooses.
    dense_output
        Whether the result has ``sol``, a function of times within the span, which has gradients
        too.
    events
        As for SciPy; only where nothing is differentiated.
    args
        More arguments of ``fun``: a tuple of arrays, nestings, and anything else.
    adjoint
        How gradients are computed: ``"reverse"`` by the adjoint equations, backwards in time along
        the solution; ``"forward"`` by the equations of all sensitivities, which is better for few
        numbers, many times, and stiff systems; ``"auto"`` takes the latter for systems with up to
        256 sensitivities.
    jit
        Compile ``fun`` and its derivatives with ``ng.jit``; they are kept as long as ``fun`` is the
        same function.
    rtol, atol
        Tolerances: also those of gradients, relative to how large the state, a parameter and the
        cotangent are.
    **options
        Others of SciPy's: ``first_step``, ``max_step``, ``min_step``, ``jac``, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, where ``y`` is a Tensor of shape ``y0.shape + t.shape``, or a nesting of
        them, and ``t`` a Tensor if a time is one. If ``success`` is False, ``y`` has what was
        solved.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If an argument does not suit, or ``fun`` returns what is shaped otherwise than the state.
    NumgradTraceError
        Inside ``ng.jit``.
    NumgradRuntimeError
        In a backward, if the equations of gradients cannot be solved.

    Notes
    -----
    Gradients, of any order, reverse and forward, go to ``y0``, ``args``, times, and to Tensors
    that ``fun`` closes over. They are those of the exact solution, to the tolerances asked for, and
    not those of the solver's steps [1]_. Inside ``vmap`` all examples are one system: they share
    steps, and times must be the same.

    References
    ----------
    .. [1] R. Serban, A. C. Hindmarsh, "CVODES, the sensitivity-enabled ODE solver in SUNDIALS",
       2005.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def decay(t, y, rate):
    ...     return -rate * y
    >>> def end(rate):
    ...     return ng.solve_ivp(decay, (0, 1), [2.0], args=(rate,), rtol=1e-8).y[0, -1]
    >>> float(np.round(ng.grad(end)(0.5), 6)), float(np.round(-2 * np.exp(-0.5), 6))
    (-1.213061, -1.213061)
    """
    check_function("solve_ivp", fun)
    _check(method, adjoint, args, options)
    if state.ground.deferred:
        raise NumgradTraceError(
            "solve_ivp: SciPy's solvers run in Python and cannot be compiled; call solve_ivp "
            "outside of ng.jit, with jit=True, which compiles what the solver calls, or compile "
            "ng.odeint in place of it"
        )
    layout = Layout(y0)
    arguments = Arguments(tuple(args))
    times = Times(t_span, t_eval)
    system = _system(fun, layout, arguments, jit)
    settings = Settings(method, rtol, atol, adjoint, options)
    result, y = _integrate(
        system, settings, times, layout.vector, arguments.tensors, dense_output,
        layout.events(events, arguments),
    )  # fmt: skip
    result.y = layout.states(y)
    if result.sol is not None:
        solution = result.sol
        result.sol = lambda t: layout.states(solution(t), np.ndim(t))
    if result.y_events is not None:
        result.y_events = [layout.recorded_states(found) for found in result.y_events]
    return result


def _check(method: Any, adjoint: Any, args: Any, options: dict[str, Any]) -> None:
    if method not in METHODS and not isinstance(method, type):
        raise NumgradValueError(
            f"solve_ivp: there is no method {method!r}; SciPy has {', '.join(METHODS)}"
        )
    if adjoint not in ("auto", "reverse", "forward"):
        raise NumgradValueError(
            f'solve_ivp: adjoint is {adjoint!r}; choose "reverse", "forward" or "auto"'
        )
    if not isinstance(args, tuple | list):
        raise NumgradTypeError(
            f"solve_ivp: args is a {type(args).__name__}; give a tuple, such as args=(rate,)"
        )
    options.pop("vectorized", None)  # how differences would be taken, and there are none


# ------------------------------------------------------------------------------------ arguments


def _numeric(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray | np.generic | float | complex)


def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0
    return isinstance(x, int | float | complex | np.generic | np.ndarray) and np.ndim(x) == 0


class Arguments:
    """The arguments of the right-hand side: arrays among them, and what is none."""

    def __init__(self, args: tuple) -> None:
        found: list[Any] = []
        self.nesting = flatten(args, found)
        for leaf in found:
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "biufc":
                raise NumgradTypeError(
                    f"solve_ivp: args has an array of dtype {leaf.dtype} in it; give numbers"
                )
        self.others = tuple(None if _numeric(leaf) else (leaf,) for leaf in found)
        self.tensors = [
            leaf if isinstance(leaf, Tensor) else Tensor(np.array(leaf))
            for leaf in found
            if _numeric(leaf)
        ]

    def given(self, tensors: Sequence[Any]) -> tuple:
        """The arguments with other arrays."""
        return _arguments(self.nesting, self.others, tensors)


def _arguments(nesting: Nesting, others: tuple, tensors: Sequence[Any]) -> tuple:
    remaining = iter(tensors)
    return unflatten(nesting, (next(remaining) if o is None else o[0] for o in others))


class Layout:
    """How a state is made of a vector."""

    def __init__(self, y0: Any) -> None:
        found: list[Any] = []
        if (
            type(y0) in (list, tuple) and len(y0) and all(map(_is_number, y0))
        ):  # as SciPy takes a vector
            y0 = OPS["stack"]([x if isinstance(x, Tensor) else Tensor(np.array(x)) for x in y0])
        self.nesting = flatten(y0, found)
        for place, leaf in zip(paths(self.nesting, "y0"), found, strict=True):
            if not isinstance(leaf, Tensor) and np.asarray(leaf).dtype.kind not in "biufc":
                raise NumgradTypeError(
                    f"solve_ivp: {place} is a {type(leaf).__name__}; give arrays or numbers"
                )
        tensors = [x if isinstance(x, Tensor) else Tensor(np.array(x)) for x in found]
        if not sum(t.size for t in tensors):
            raise NumgradValueError("solve_ivp: y0 has no array in it; give a state")
        kind = np.result_type(np.float64, *[t.dtype for t in tensors])
        self.shapes = tuple(tuple(t.shape) for t in tensors)
        self.real = tuple(t.dtype.kind != "c" for t in tensors)
        flat = [OPS["astype"](t, kind) if t.dtype != kind else t for t in tensors]
        flat = [t if t.ndim == 1 else OPS["reshape"](t, (t.size,)) for t in flat]
        self.vector: Tensor = flat[0] if len(flat) == 1 else OPS["concat"](flat)
        self.key = self.nesting, self.shapes, self.real

    def states(self, y: Tensor, ndim: int = 1) -> Any:
        """Vectors of all times, of shape (times, state), as states with times at last."""
        if ndim == 0:
            return _unravelled(y[0], *self.key)
        return _unravelled(y, *self.key, batch=True)

    def recorded_states(self, y: np.ndarray) -> Any:
        """What SciPy has recorded at events: states with times in front, as SciPy has them."""
        if self.nesting is None and len(self.shapes[0]) == 1:
            return y
        if not y.size:
            return y
        whole = _unravelled(Tensor(y), *self.key, batch=True, front=True)
        return unflatten(self.nesting, (leaf._array for leaf in leaves(whole)))

    def events(self, events: Any, arguments: Arguments) -> Any:
        """Events of a state as those of a vector."""
        if events is None:
            return None
        several = isinstance(events, list | tuple)
        given = tuple(events) if several else (events,)
        for event in given:
            check_function("solve_ivp: events", event)
        numbers = arguments.given([t._array for t in arguments.tensors if t is not None])

        def wrapped(event: Callable[..., Any]) -> Callable[..., Any]:
            def of_vector(t: float, y: np.ndarray) -> float:
                value = event(t, _unravelled(Tensor(y), *self.key), *numbers)
                return float(value)

            for name in ("terminal", "direction"):
                if hasattr(event, name):
                    setattr(of_vector, name, getattr(event, name))
            return of_vector

        return [wrapped(event) for event in given]


def _unravelled(
    y: Any, nesting: Nesting, shapes: tuple, real: tuple, batch: bool = False, front: bool = False
) -> Any:
    if nesting is None and len(shapes[0]) == 1:
        return OPS["swapaxes"](y, 0, 1) if batch and not front else y
    parts, start = [], 0
    for shape, is_real in zip(shapes, real, strict=True):
        stop = start + prod(shape)
        part = y[..., start:stop]
        if is_real and part.dtype.kind == "c":
            part = OPS["real"](part)
        lead = (part.shape[0],) if batch else ()
        part = OPS["reshape"](part, (*lead, *shape))
        parts.append(OPS["moveaxis"](part, 0, -1) if batch and not front else part)
        start = stop
    return unflatten(nesting, iter(parts))


def _ravelled(out: Any, nesting: Nesting, shapes: tuple, kind: np.dtype) -> Tensor:
    """What the right-hand side returned, as a vector."""
    found: list[Any] = []
    if nesting is None:
        if isinstance(out, list | tuple):
            out = OPS["stack"]([x if isinstance(x, Tensor) else _array(x) for x in out])
        found = [out]
        where = None
    else:
        where = align(nesting, out, found, "y")
    if where is not None:
        raise NumgradValueError(
            f"solve_ivp: the function returned a {type(out).__name__} that is at {where} nested "
            "otherwise than y0; return the derivative of each part, nested as y0"
        )
    parts = []
    for part, shape in zip(found, shapes, strict=True):
        t = part if isinstance(part, Tensor) else _array(part)
        if tuple(t.shape) != shape:
            raise NumgradValueError(
                f"solve_ivp: the function returned shape {tuple(t.shape)} for a state of shape "
                f"{shape}; return the derivative of each element"
            )
        if t.dtype.kind == "c" and kind.kind != "c":
            raise NumgradTypeError(
                f"solve_ivp: the function returned dtype {t.dtype} for a real state; give a "
                "complex y0, such as y0.astype(complex)"
            )
        t = OPS["astype"](t, kind) if t.dtype != kind else t
        parts.append(t if t.ndim == 1 else OPS["reshape"](t, (t.size,)))
    return parts[0] if len(parts) == 1 else OPS["concat"](parts)


def _array(x: Any) -> Tensor:
    array = None if x is None else np.asarray(x)
    if array is None or array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"solve_ivp: the function returned a {type(x).__name__}; return arrays or numbers"
        )
    return Tensor(array)


def _system(fun: Callable[..., Any], layout: Layout, arguments: Arguments, jit: bool) -> System:
    given = fun, layout.key, layout.vector.dtype, arguments.nesting, arguments.others, jit
    if jit:
        try:
            return _compiled_system(*given)
        except TypeError:  # something that is no key
            pass
    return _new_system(*given)


def _new_system(
    fun: Callable[..., Any], key: Any, kind: np.dtype, nesting: Any, others: tuple, jit: bool
) -> System:
    def rhs(t: Any, y: Any, *params: Any) -> Tensor:
        out = fun(t, _unravelled(y, *key), *_arguments(nesting, others, params))
        return _ravelled(out, key[0], key[1], kind)

    return System(rhs, (), jit)


_compiled_system = lru_cache(maxsize=64)(_new_system)


class Times:
    """The span, and the times asked for."""

    def __init__(self, span: Any, t_eval: Any) -> None:
        if not hasattr(span, "__len__") or len(span) != 2:
            raise NumgradValueError("solve_ivp: t_span is a pair, the first and the last time")
        self.first, self.last = (self._time(x, "t_span") for x in (span[0], span[1]))
        self.asked = None if t_eval is None else self._time(t_eval, "t_eval", 1)
        self.has_tensors = any(isinstance(x, Tensor) for x in (span, *span, t_eval))
        if self.asked is not None:
            self._check_asked()

    def _time(self, x: Any, what: str, ndim: int = 0) -> Tensor:
        t = x if isinstance(x, Tensor) else Tensor(np.array(x, dtype=None))
        if isinstance(t, Batched):
            raise NumgradNotImplementedError(
                f"solve_ivp: {what} differs by example of vmap, and all examples share their "
                "times; scale time inside of the function instead"
            )
        if t.dtype.kind not in "iuf" or t.ndim != ndim:
            raise NumgradValueError(
                f"solve_ivp: {what} has dtype {t.dtype} and shape {tuple(t.shape)}; times are "
                f"real numbers{', in a 1-D array' if ndim else ''}"
            )
        if not np.all(np.isfinite(t._array)):
            raise NumgradValueError(f"solve_ivp: {what} is not finite; give finite times")
        return t if t.dtype == np.float64 else OPS["astype"](t, np.float64)

    def _check_asked(self) -> None:
        assert self.asked is not None
        t, (a, b) = self.asked._array, self.span
        if np.any(t < min(a, b)) or np.any(t > max(a, b)):
            raise NumgradValueError(
                f"solve_ivp: t_eval has times outside of t_span ({a:.6g}, {b:.6g}); leave them "
                "out, or make the span longer"
            )
        steps = np.diff(t)
        if np.any(steps <= 0 if b > a else steps >= 0):
            raise NumgradValueError(
                "solve_ivp: t_eval is not in the order of integration, each time once; sort it"
            )

    @property
    def span(self) -> tuple[float, float]:
        """As numbers."""
        return float(self.first._array), float(self.last._array)

    @property
    def numbers(self) -> Any:
        """The times asked for, as numbers."""
        return None if self.asked is None else self.asked._array

    def reached(self, t: np.ndarray) -> Tensor:
        """The times of a solution, with what leads to those given."""
        if self.asked is not None:
            return self.asked if t.size == self.asked.shape[0] else self.asked[: t.size]
        if not self.has_tensors or not t.size:
            return Tensor(t)
        ends = [self.first.reshape(1)] if t[0] == self.span[0] else []
        closing = [self.last.reshape(1)] if len(t) > 1 and t[-1] == self.span[1] else []
        inner = t[len(ends) : len(t) - len(closing)]
        return OPS["concat"]([*ends, Tensor(inner), *closing])


# ----------------------------------------------------------------------------------- integration


def _integrate(
    system: System,
    settings: Settings,
    times: Times,
    y0: Tensor,
    params: Sequence[Tensor],
    dense: bool,
    events: Any,
) -> tuple[Any, Tensor]:
    """SciPy's result, and states of shape (times, state)."""
    level = state.interpreters[-1] if state.interpreters else None
    if isinstance(level, BatchingInterpreter) and any(map(level.owns, (y0, *params))):
        return _for_examples(level, system, settings, times, y0, params, dense, events)
    if state.grad_enabled or state.interpreters:
        found = captured(system.rhs, times.span[0], y0, params)
        if found and system.compiled:
            raise NumgradTypeError(
                "solve_ivp: with jit=True the function closes over a Tensor that gradients go to, "
                "and what is compiled once would not see another; pass it in args"
            )
        if found:
            system = System(system.rhs, found)
    inputs = (times.first, *((times.last,) if times.asked is None else (times.asked,)), y0)
    given = (*inputs, *params, *system.captured)
    followed = bool(state.interpreters) or (
        state.grad_enabled and any(t.requires_grad for t in given)
    )
    if followed and events is not None:
        raise NumgradNotImplementedError(
            "solve_ivp: the times of events have no gradients here; solve without events, or under "
            "ng.no_grad() to find the times"
        )
    slopes = Slopes(system, params, ())
    result = solved(
        settings, slopes.value, times.span, y0._array, times.numbers, jac=slopes.matrices,
        dense=dense or followed, events=events, slopes=slopes,
    )  # fmt: skip
    curve = result.sol
    reached = times.reached(result.t)
    if followed:
        problem = Problem(system, settings, copy(result))
        inputs = (y0, *params, *system.captured)
        y = SolveIvp.apply(problem, times.first, reached, *inputs)

        def sol(t: Any) -> Tensor:
            return SolveIvp.apply(problem, times.first, _within(t, times), *inputs)

    else:
        y = Tensor(result.y.T)

        def sol(t: Any) -> Tensor:
            return Tensor(np.atleast_2d(curve(_within(t, times)._array).T))

    result.t = reached if times.has_tensors else result.t
    result.sol = sol if dense else None
    return result, y


def _within(t: Any, times: Times) -> Tensor:
    """Times at which a solution is wanted, in a vector."""
    given = t if isinstance(t, Tensor) else Tensor(np.array(t, dtype=np.float64))
    a, b = sorted(times.span)
    if given.ndim > 1 or np.any(given._array < a) or np.any(given._array > b):
        raise NumgradValueError(
            f"sol: takes a time, or a vector of times, within the span ({a:.6g}, {b:.6g})"
        )
    return given if given.ndim else given.reshape(1)


def _for_examples(
    level: BatchingInterpreter,
    system: System,
    settings: Settings,
    times: Times,
    y0: Tensor,
    params: Sequence[Tensor],
    dense: bool,
    events: Any,
) -> tuple[Any, Tensor]:
    """All examples of a batch as one system."""
    if events is not None:
        raise NumgradNotImplementedError(
            "solve_ivp: events inside vmap, where examples share their steps; loop over examples"
        )
    size, n = level.size, int(y0.shape[0])
    axes = tuple(0 if level.owns(p) else None for p in params)
    whole = vmap(system.rhs, in_axes=(None, 0, *axes), axis_size=size)

    def rhs(t: Any, y: Any, *given: Any) -> Tensor:
        return OPS["reshape"](whole(t, OPS["reshape"](y, (size, n)), *given), (size * n,))

    def example(y: Tensor) -> Tensor:  # of shape (times, size * n)
        y = OPS["reshape"](y, (y.shape[0], size, n))
        return Batched(OPS["moveaxis"](y, 1, 0), level)

    with level._below():
        start = OPS["reshape"](level.unwrap(y0), (size * n,))
        given = [p.value if level.owns(p) else p for p in params]
        result, y = _integrate(
            System(rhs, (), system.compiled), _spread(settings, size, n), times, start, given,
            dense, None,
        )  # fmt: skip
        y = example(y)
    if dense:
        solution = result.sol

        def sol(t: Any) -> Tensor:
            with level._below():
                return example(solution(t))

        result.sol = sol
    return result, y


def _spread(settings: Settings, size: int, n: int) -> Settings:
    """Tolerances of one example for all."""
    rtol, atol = (
        x if np.ndim(x) == 0 else np.tile(np.broadcast_to(x, (n,)), size)
        for x in (settings.rtol, settings.atol)
    )
    return replace(settings, rtol=rtol, atol=atol)
