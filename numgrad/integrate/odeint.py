"""``odeint``: initial value problems solved by numgrad's own loops.

Note [Steps that are judged]
----------------------------
A step is computed, its error estimated, and the step taken or made anew with another length. What
the steps are is no function of anything: gradients are those of the steps taken, with lengths that
are constants. Eager code sees the verdict, and the tape has nothing of a step that is refused.
Where the verdict is known only later, in compiled functions and for examples that differ, an array
chosen by ``np.where`` would hand a zero to the gradient of the refused step, which may have no
value: a NaN. So the step that counts is computed once more, with length zero if it is refused, and
gradients flow through that one only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.integrate.motion import Leaves, Motion, as_number
from numgrad.integrate.runge_kutta import TABLEAUS, Tableau, Weights
from numgrad.operations.shape import as_index
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.chosen import check_function
from numgrad.transforms.lanes import chosen, decided
from numgrad.transforms.loops import fori_loop, scan, while_loop
from numgrad.transforms.products import stop_gradient

METHODS = (*TABLEAUS, "rk4")


def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    method: str = "dopri5",
    rtol: Any = None,
    atol: Any = None,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = 100_000,
    substeps: int = 1,
) -> Any:
    """Solve an initial value problem ``dy/dt = f(y, t, *args)`` with gradients through its steps.

    Under ``ng.jit`` the solver and its gradient are native loops. Stiff systems are for
    ``ng.solve_ivp``, whose implicit methods need fewer steps.

    Parameters
    ----------
    f
        Takes the state, nested as ``y0``, the time and ``args``; returns what is nested and shaped
        as the state (for a vector also a list of numbers).
    y0
        The state at the first time: an array of any shape, a list of numbers (a vector), or a
        nesting of arrays.
    t
        Times at which the solution is wanted, the first that of ``y0``: a vector, increasing or
        decreasing, in which times may be repeated.
    *args
        More arguments of ``f``: arrays, nestings, and anything else.
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
    In compiled functions, and inside ``vmap`` for examples of which some fail, nothing is raised for
    numbers: states that are not reached are NaN, and all are if times have no order. ``vmap`` gives
    each example steps of its own.

    Gradients, of any order, reverse and forward, go to ``y0``, ``args``, ``t``, and to Tensors that
    ``f`` closes over. They are those of the steps taken, exact to rounding for lengths that are
    constants, and so as near to those of the solution as the tolerances make the steps [1]_.

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
    motion = Motion(f, y0, args)
    times = _times(t)
    count = times.shape[0]
    if count == 0:
        return motion.result([OPS["expand_dims"](y, axis=0)[:0] for y in motion.start], t)
    first = times[0]
    after = times[1:]
    if method == "rk4":
        pairs = times[:-1], after
        step = _fixed(motion, as_index("odeint", substeps, "substeps"))
        _, rows = scan(step, motion.start, pairs)
    else:
        options = Options(
            motion.tolerance("rtol", rtol),
            motion.tolerance("atol", atol),
            as_number("first_step", first_step),
            as_number("max_step", max_step),
            as_index("odeint", max_steps, "max_steps"),
        )
        solver = Solver(motion, TABLEAUS[method], options, stop_gradient(times))
        _, rows = scan(solver.reach, solver.begin(first), after)
    starts = [OPS["expand_dims"](y, axis=0) for y in motion.start]
    whole = [OPS["concat"](list(pair)) for pair in zip(starts, rows, strict=True)]
    return motion.result(whole, t)


def _times(t: Any) -> Tensor:
    given = t if isinstance(t, Tensor) else Tensor(state.ground.lift(t))
    if given.dtype.kind not in "iuf" or given.ndim != 1:
        raise NumgradValueError(
            f"odeint: t has dtype {given.dtype} and shape {tuple(given.shape)}; times are real "
            "numbers in a 1-D array, the first that of y0"
        )
    kind = np.result_type(given.dtype, np.float32) if given.dtype.kind == "f" else np.float64
    return given if given.dtype == kind else OPS["astype"](given, kind)


# ------------------------------------------------------------------------------------ fixed steps


def _fixed(motion: Motion, substeps: int) -> Callable[[Any, Any], tuple[Any, Any]]:
    """From a time to the next by the classical method of order four."""
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


# --------------------------------------------------------------------------------- adaptive steps


class Options(NamedTuple):
    """What says how steps are chosen."""

    rtol: Any
    atol: Any
    first_step: Any
    max_step: Any
    max_steps: int


class Step(NamedTuple):
    """A step that was taken: from where, how far, and the slopes within."""

    t: Any
    h: Any
    y: Leaves
    slopes: list[Leaves]


class Progress(NamedTuple):
    """The carry: where the solution has got to, what brought it there, and what is tried next.

    Attributes
    ----------
    k
        The slopes at ``y``.
    size
        Length of the next step, without sign.
    count
        How many steps were tried.
    """

    t: Any
    y: Leaves
    k: Leaves
    last: Step
    size: Any
    count: Any


class Solver:
    """An explicit method that chooses its steps: Note [Steps that are judged]."""

    def __init__(
        self, motion: Motion, tableau: Tableau, options: Options, times: Tensor
    ) -> None:
        self.motion, self.tableau, self.options = motion, tableau, options
        self.end = times[-1]
        self.spacing = 4 * float(np.finfo(times.dtype).eps)
        span = self.end - times[0]
        self.direction = np.where(span < 0, -1.0, 1.0).astype(times.dtype)
        self.span = abs(span)
        ordered = np.all((times[1:] - times[:-1]) * self.direction >= 0)
        if _known(ordered) is False:
            raise NumgradValueError(
                "odeint: t is not in order, or not finite; sort the times, increasing or "
                'decreasing, or take method="rk4", which goes from each one to the next'
            )
        self.ordered = ordered

    def begin(self, t: Any) -> Progress:
        """Before the first step."""
        y = self.motion.start
        k = self.motion.slopes(y, t)
        one = np.ones_like(stop_gradient(t))
        stages = [k] * (1 + len(self.tableau.nodes))
        return Progress(t, y, k, Step(t, one, y, stages), self._first_size(t, y, k), 0)

    def _first_size(self, t: Any, y: Leaves, k: Leaves) -> Any:
        """A length for the first step: Hairer and others, II.4."""
        t, y, k = (stop_gradient(x) for x in (t, y, k))
        options = self.options
        size = options.first_step
        if size is None:
            d0, d1 = self._norm(y, y, y), self._norm(k, y, y)
            small = np.logical_or(d0 < 1e-5, d1 < 1e-5)
            size = np.where(small, 1e-6, 0.01 * d0 / np.where(small, 1.0, d1))
            h = np.minimum(size, self.span) * self.direction
            ahead = self.motion.slopes(self.motion.moved(y, h, (1.0,), [k]), t + h)
            change = [a - b for a, b in zip(ahead, k, strict=True)]
            d2 = np.maximum(d1, self._norm(change, y, y) / size)
            flat = d2 <= 1e-15
            best = np.where(
                flat, np.maximum(1e-6, size * 1e-3), (0.01 / np.where(flat, 1.0, d2)) ** 0.2
            )
            size = np.where(best <= 100 * size, best, np.where(best > 0, 100 * size, size))
        size = np.minimum(size, options.max_step)
        return stop_gradient(OPS["astype"](size, t.dtype))

    def _norm(self, errors: Leaves, y: Leaves, new: Leaves) -> Any:
        """The root mean square of errors over what is tolerated."""
        total = 0.0
        sizes = 0
        rtol, atol = self.options.rtol, self.options.atol
        for k, (error, a, b) in enumerate(zip(errors, y, new, strict=True)):
            allowed = atol[k] + rtol[k] * np.maximum(abs(a), abs(b))
            total = total + np.sum(np.square(abs(error) / allowed))
            sizes = sizes + error.size
        return stop_gradient(np.sqrt(total / sizes))

    def reach(self, now: Progress, target: Any) -> tuple[Progress, Leaves]:
        """As many steps as lead to a time or beyond, and the state there."""
        now = while_loop(partial(self._goes_on, target), self._attempt, now)
        there = OPS["logical_not"](self._before(target, now.t))
        if _known(there) is False:
            self._fail(now)
        valid = np.where(np.logical_and(there, self.ordered), 1.0, np.nan)
        y = self._within(now.last, target)
        if _known(valid == 1.0) is True:
            return now, y
        return now, [a * OPS["astype"](valid, abs(a).dtype) for a in y]

    def _before(self, target: Any, t: Any) -> Any:
        return (target - t) * self.direction > self.spacing * abs(target)

    def _goes_on(self, target: Any, now: Progress) -> Any:
        possible = np.logical_and(
            now.size > self.spacing * abs(now.t), now.count < self.options.max_steps
        )
        return np.logical_and(self._before(target, now.t), possible)

    def _attempt(self, now: Progress) -> Progress:
        """A step, taken or not."""
        t, y, k, last, size, count = now
        h = np.minimum(size, abs(self.end - stop_gradient(t))) * self.direction
        new, slopes = self._step(t, y, k, h)
        errors = self.motion.scaled(h, self.tableau.errors, slopes)
        norm = self._norm(errors, y, new)
        factor = np.minimum(10.0, np.maximum(0.2, 0.9 * np.maximum(norm, 1e-10) ** -0.2))
        factor = np.where(norm < np.inf, factor, 0.2)
        size = np.minimum(abs(h) * OPS["astype"](factor, h.dtype), self.options.max_step)
        size = stop_gradient(OPS["astype"](size, h.dtype))
        good = norm <= 1.0
        verdict = _known(good)
        if verdict is False:
            return Progress(t, y, k, last, size, count + 1)
        if verdict is True:
            return Progress(t + h, new, slopes[-1], Step(t, h, y, slopes), size, count + 1)
        taken = np.where(good, h, 0.0 * h)
        new, slopes = self._step(t, y, k, taken)
        step = chosen("odeint", good, Step(t, h, y, slopes), last)
        return Progress(t + taken, new, slopes[-1], step, size, count + 1)

    def _step(self, t: Any, y: Leaves, k: Leaves, h: Any) -> tuple[Leaves, list[Leaves]]:
        """The state after a step, and all slopes."""
        slopes = [k]
        new = y
        for node, row in zip(self.tableau.nodes, self.tableau.rows, strict=True):
            new = self.motion.moved(y, h, row, slopes)
            slopes.append(self.motion.slopes(new, t + node * h))
        return new, slopes

    def _within(self, step: Step, t: Any) -> Leaves:
        """The state at a time within a step."""
        part = (t - step.t) / step.h
        weights: list[Any] = []
        for a, b, c, d in self.tableau.dense:
            weights.append(part * (a + part * (b + part * (c + part * d))))
        return self.motion.moved(step.y, step.h, weights, step.slopes)

    def _fail(self, now: Progress) -> None:
        where = f"at t = {float(now.t):.6g}" if now.t.ndim == 0 else "at some time"
        if _known(now.count >= self.options.max_steps) is not False:
            raise NumgradRuntimeError(
                f"odeint: {self.options.max_steps} steps end {where}, before the last time; allow "
                "more (max_steps), larger errors (rtol, atol), or, as the system may be stiff, "
                'take ng.solve_ivp with method="Radau"'
            )
        raise NumgradRuntimeError(
            f"odeint: {where} no step is short enough: the function returns NaN there, or the "
            "solution ends; look at what it returns, or end before"
        )


def _known(flag: Any) -> Any:
    """A truth value as a bool, or as it is if that is not known or differs by example."""
    return flag if state.ground.deferred else decided("odeint", flag)
