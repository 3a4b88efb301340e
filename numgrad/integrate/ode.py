"""``ng.odeint``: initial value problems solved by numgrad's own loops, at times asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.integrate.runge_kutta import TABLEAUS, Solver, StepControl
from numgrad.integrate.system import Motion, as_number
from numgrad.operations.shape import as_index
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import check_function
from numgrad.transforms.control_flow import fori_loop, scan


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
        refuse_mask("solve_ivp", x)
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
        """The first and the last time, as numbers."""
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


METHODS = (*TABLEAUS, "rk4")


def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *arguments: Any,
    args: tuple = (),
    method: str = "dopri5",
    rtol: Any = None,
    atol: Any = None,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = 100_000,
    substeps: int = 1,
) -> Any:
    """Solve an initial value problem ``dy/dt = f(y, t, *arguments)``, differentiable step by step.

    Under ``ng.jit`` the solver and its gradient are native loops. Stiff systems are for
    ``ng.solve_ivp``, whose implicit methods need fewer steps.

    Parameters
    ----------
    f
        Takes the state, nested as ``y0``, the time and ``arguments``; returns what is nested and
        shaped as the state (for a vector also a list of numbers).
    y0
        The state at the first time: an array of any shape, a list of numbers (a vector), or a
        nesting of arrays.
    t
        Times at which the solution is wanted, the first that of ``y0``: a vector, increasing or
        decreasing, in which times may be repeated.
    *arguments
        More arguments of ``f``: arrays, nestings, and anything else.
    args
        The same as a tuple, as SciPy takes them.
    method
        ``"dopri5"`` (Dormand and Prince) or ``"tsit5"`` (Tsitouras), of order five, choose their
        steps and interpolate between them by polynomials of degree four; ``"rk4"`` makes
        ``substeps`` steps from one time to the next, which may be in any order.
    rtol, atol
        Tolerances: the root mean square of a step's estimated errors, each divided by ``atol + rtol
        * abs(y)``, is at most one. By default the square root of the spacing of the state's
        numbers at 1, ``1.5e-8`` in double precision.
    first_step
        The length of the first step; by default estimated.
    max_step
        The longest step allowed.
    max_steps
        How many steps are tried at most.
    substeps
        Steps of ``"rk4"`` between two times.

    Returns
    -------
    Tensor
        The states, times along a first axis in front, nested as ``y0``: shape ``(len(t),
        *y0.shape)``. Integers are solved for in double precision, other dtypes stay. An ndarray if
        no Tensor came in and nothing can be differentiated.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If an argument does not suit, or ``f`` returns what is nested or shaped otherwise than the
        state; in eager code if times are neither increasing nor decreasing.
    NumgradRuntimeError
        In eager code, if ``max_steps`` do not suffice, or no step is short enough.

    Notes
    -----
    In compiled functions, and for examples of ``vmap`` of which some fail, nothing is raised for
    numbers: states that are not reached are NaN, and all after the first if times have no order.
    ``vmap`` gives each example steps of its own.

    Gradients, of any order, reverse and forward, go to ``y0``, arguments, ``t``, and to Tensors
    that ``f`` closes over. They are those of the steps taken, exact to rounding for lengths that
    are constants, and so as near to those of the solution as the tolerances make the steps [1]_.

    References
    ----------
    .. [1] E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", II.4
       to II.6, 1993.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def end(rate):
    ...     return ng.odeint(lambda y, t, rate: -rate * y, 2.0, np.array([0.0, 1.0]), rate)[-1]
    >>> float(np.round(ng.grad(end)(0.5), 6)), float(np.round(-2 * np.exp(-0.5), 6))
    (-1.213061, -1.213061)
    """
    check_function("odeint", f)
    if method not in METHODS:
        raise NumgradValueError(
            f"odeint: there is no method {method!r}; it has {', '.join(METHODS)}, and "
            "ng.solve_ivp those for stiff systems"
        )
    motion = Motion(f, y0, (*arguments, *(args if isinstance(args, tuple) else (args,))))
    times = _times(t)
    count = times.shape[0]
    if count == 0:
        return motion.result([OPS["expand_dims"](y, axis=0)[:0] for y in motion.start], t)
    if method == "rk4":
        pairs = times[:-1], times[1:]
        step = _fixed(motion, as_index("odeint", substeps, "substeps"))
        _, rows = scan(step, motion.start, pairs)
    else:
        options = StepControl(
            motion.tolerance("rtol", rtol),
            motion.tolerance("atol", atol),
            as_number("first_step", first_step),
            as_number("max_step", max_step),
            as_index("odeint", max_steps, "max_steps"),
        )
        rows = Solver(motion, TABLEAUS[method], options, times).states()
    starts = [OPS["expand_dims"](y, axis=0) for y in motion.start]
    whole = [OPS["concat"](list(pair)) for pair in zip(starts, rows, strict=True)]
    return motion.result(whole, t)


def _times(t: Any) -> Tensor:
    refuse_mask("odeint", t)
    times = t if isinstance(t, Tensor) else Tensor(state.ground.lift(t))
    if times.dtype.kind not in "iuf" or times.ndim != 1:
        raise NumgradValueError(
            f"odeint: t has dtype {times.dtype} and shape {tuple(times.shape)}; times are real "
            "numbers in a 1-D array, the first that of y0"
        )
    kind = np.result_type(times.dtype, np.float32) if times.dtype.kind == "f" else np.float64
    return times if times.dtype == kind else OPS["astype"](times, kind)


# ------------------------------------------------------------------------------------ fixed steps


def _fixed(motion: Motion, substeps: int) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Advance from a time to the next by the classical method of order four."""
    if substeps < 1:
        raise NumgradValueError(f"odeint: substeps is {substeps}; a step is one or more")

    def step(y: Any, pair: Any) -> tuple[Any, Any]:
        start, end = pair
        h = (end - start) / substeps

        def one(k: Any, y: Any) -> Any:
            t = start + k * h
            k1 = motion.slopes(y, t)
            k2 = motion.slopes(motion.moved(y, h, (0.5,), [k1]), t + 0.5 * h)
            k3 = motion.slopes(motion.moved(y, h, (0.5,), [k2]), t + 0.5 * h)
            k4 = motion.slopes(motion.moved(y, h, (1.0,), [k3]), t + h)
            return motion.moved(y, h, (1 / 6, 1 / 3, 1 / 3, 1 / 6), [k1, k2, k3, k4])

        y = one(0, y) if substeps == 1 else fori_loop(0, substeps, one, y)
        return y, y

    return step
