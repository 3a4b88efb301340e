"""``solve_ivp``: SciPy solves, numgrad differentiates."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.integrate.ode import Times
from numgrad.integrate.solution import InitialValueProblem, SolveIvp, SolverSettings, solved
from numgrad.integrate.system import (
    Layout,
    OdeSystem,
    RightSideArguments,
    Slopes,
    arranged,
    ravelled,
    unravelled,
)
from numgrad.optimize.watch import SOLVING
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import check_function, closed_over
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
    args: Any = None,
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
    args = () if args is None else args
    _check(method, adjoint, args, options)
    if state.ground.deferred:
        raise NumgradTraceError(
            "solve_ivp: SciPy's solvers run in Python and cannot be compiled; call solve_ivp "
            "outside of ng.jit, with jit=True, which compiles what the solver calls, or compile "
            "ng.odeint in place of it"
        )
    layout = Layout(y0)
    arguments = RightSideArguments(tuple(args))
    times = Times(t_span, t_eval)
    SOLVING.inner = True
    system = _system(fun, layout, arguments, jit)
    settings = SolverSettings(method, rtol, atol, adjoint, options)
    result, y = _integrate(
        system, settings, times, layout.vector, arguments.tensors, dense_output,
        layout.events(events, arguments),
    )  # fmt: skip
    result.y = layout.states(y)
    if result.sol is not None:
        solution = result.sol
        result.sol = lambda t: layout.states(solution(t), np.ndim(t))
    if result.y_events is not None:
        result.y_events = [layout.recorded_states(states) for states in result.y_events]
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


def _system(
    fun: Callable[..., Any], layout: Layout, arguments: RightSideArguments, jit: bool
) -> OdeSystem:
    key = fun, layout.key, layout.vector.dtype, arguments.nesting, arguments.others, jit
    if jit:
        try:
            return _compiled_system(*key)
        except TypeError:  # something that is no key
            pass
    return _new_system(*key)


def _new_system(
    fun: Callable[..., Any], key: Any, kind: np.dtype, nesting: Any, others: tuple, jit: bool
) -> OdeSystem:
    def rhs(t: Any, y: Any, *params: Any) -> Tensor:
        out = fun(t, unravelled(y, *key), *arranged(nesting, others, params))
        return ravelled(out, key[0], key[1], kind)

    return OdeSystem(rhs, (), jit)


_compiled_system = lru_cache(maxsize=64)(_new_system)


# ----------------------------------------------------------------------------------- integration


def _integrate(
    system: OdeSystem,
    settings: SolverSettings,
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
        standins = [Tensor(np.array(x._array), x.dtype.kind in "fc") for x in (y0, *params)]
        closures = closed_over(
            "solve_ivp", lambda standins: [system.rhs(times.span[0], *standins)], standins
        )
        if closures and system.compiled:
            raise NumgradTypeError(
                "solve_ivp: with jit=True the function closes over a Tensor that gradients go to, "
                "and what is compiled once would not see another; pass it in args"
            )
        if closures:
            system = OdeSystem(system.rhs, closures)
    inputs = (times.first, *((times.last,) if times.asked is None else (times.asked,)), y0)
    tensors = (*inputs, *params, *system.closed_over)
    followed = bool(state.interpreters) or (
        state.grad_enabled and any(t.requires_grad for t in tensors)
    )
    if followed and events is not None:
        raise NumgradNotImplementedError(
            "solve_ivp: the times of events have no gradients here; solve without events, or under "
            "ng.no_grad() to find the times"
        )
    slopes = Slopes(system, params, ())
    result = solved(
        settings, slopes.value, times.span, y0._array, times.numbers, jac=slopes.matrix,
        dense=dense or followed, events=events, slopes=slopes,
    )  # fmt: skip
    curve = result.sol
    reached = times.reached(result.t)
    if followed:
        problem = InitialValueProblem(system, settings, copy(result))
        inputs = (y0, *params, *system.closed_over)
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
    queries = t if isinstance(t, Tensor) else Tensor(np.array(t, dtype=np.float64))
    a, b = sorted(times.span)
    if queries.ndim > 1 or np.any(queries._array < a) or np.any(queries._array > b):
        raise NumgradValueError(
            f"sol: takes a time, or a vector of times, within the span ({a:.6g}, {b:.6g})"
        )
    return queries if queries.ndim else queries.reshape(1)


def _for_examples(
    level: BatchingInterpreter,
    system: OdeSystem,
    settings: SolverSettings,
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

    def rhs(t: Any, y: Any, *values: Any) -> Tensor:
        return OPS["reshape"](whole(t, OPS["reshape"](y, (size, n)), *values), (size * n,))

    def example(y: Tensor) -> Tensor:  # of shape (times, size * n)
        y = OPS["reshape"](y, (y.shape[0], size, n))
        return Batched(OPS["moveaxis"](y, 1, 0), level)

    with level._below():
        start = OPS["reshape"](level.unwrap(y0), (size * n,))
        values = [level.unwrap(p) if level.owns(p) else p for p in params]
        result, y = _integrate(
            OdeSystem(rhs, (), system.compiled), _for_all(settings, size, n), times, start, values,
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


def _for_all(settings: SolverSettings, size: int, n: int) -> SolverSettings:
    """Tolerances of one example for all."""
    rtol, atol = (
        x if np.ndim(x) == 0 else np.tile(np.broadcast_to(x, (n,)), size)
        for x in (settings.rtol, settings.atol)
    )
    return replace(settings, rtol=rtol, atol=atol)
