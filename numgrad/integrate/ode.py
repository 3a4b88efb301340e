"""``odeint``: initial value problems solved by numgrad's own loops.

Note [Steps that are judged]
----------------------------
A step is computed, its error estimated, and the step taken or made anew with another length. What
the lengths are is no function of anything: gradients are those of the steps taken, with lengths
that are constants. Eager code sees the verdict, and the tape has nothing of a step that is refused.
Where the verdict is known only later, in compiled functions and for examples that differ, choosing
by ``np.where`` would hand a zero to the gradient of the refused step, which may have no value: a
NaN. So the step that counts is computed once more, with length zero if it is refused, and gradients
flow through that one only.

Note [Loops of steps]
---------------------
In compiled functions there are two loops, each a kernel. The first has no derivatives and finds how
many steps are tried. The second is of that length: it tries them again, collects the steps taken,
and computes in each turn the one that was judged in the turn before, so that its transposed loop
reads lengths and judges nothing. The states asked for are interpolated from what was collected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numgrad.compiler.run.inner import with_length
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import map_leaves
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.integrate.motion import Leaves, Motion, as_number, beside
from numgrad.integrate.runge_kutta import TABLEAUS, Tableau
from numgrad.operations.shape import as_index, as_operand
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
    In compiled functions, and for examples of ``vmap`` of which some fail, nothing is raised for
    numbers: states that are not reached are NaN, and all after the first if times have no order.
    ``vmap`` gives each example steps of its own.

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
    if method == "rk4":
        pairs = times[:-1], times[1:]
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
        rows = Solver(motion, TABLEAUS[method], options, times).states()
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
    """Where a solution has got to, and what is tried next.

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
    size: Any
    count: Any


class Solver:
    """An explicit method that chooses its steps: Note [Steps that are judged]."""

    def __init__(self, motion: Motion, tableau: Tableau, options: Options, times: Tensor) -> None:
        self.motion, self.tableau, self.options = motion, tableau, options
        self.times = times
        fixed = stop_gradient(times)
        self.end = fixed[-1]
        self.spacing = 4 * float(np.finfo(times.dtype).eps)
        span = self.end - fixed[0]
        self.direction = np.where(span < 0, -1.0, 1.0).astype(times.dtype)
        self.span = abs(span)
        ordered = np.all((fixed[1:] - fixed[:-1]) * self.direction >= 0) & (self.span < np.inf)
        if _known(ordered) is False:
            raise NumgradValueError(
                "odeint: t is not in order, or not finite; sort the times, increasing or "
                'decreasing, or take method="rk4", which goes from each one to the next'
            )
        self.ordered = ordered

    def states(self) -> Leaves:
        """The states at all times but the first."""
        now = self._begin(self.times[0])
        if state.ground.deferred:
            return self._compiled(now)
        stages = [now.k] * (1 + len(self.tableau.nodes))
        last = Step(now.t, np.ones_like(stop_gradient(now.t)), now.y, stages)
        return scan(self._reach, (now, last), self.times[1:])[1]

    # ------------------------------------------------------------------------ choosing steps

    def _begin(self, t: Any) -> Progress:
        """Before the first step."""
        y = self.motion.start
        k = self.motion.slopes(y, t)
        return Progress(t, y, k, self._first_size(t, y, k), 0)

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
            size = np.where(best > 0, np.minimum(best, 100 * size), size)  # not so if best is NaN
        size = np.minimum(size, options.max_step)
        return stop_gradient(OPS["astype"](as_operand(size), t.dtype))

    def _norm(self, errors: Leaves, y: Leaves, new: Leaves) -> Any:
        """The root mean square of errors over what is tolerated."""
        total = 0.0
        count = 0
        rtol, atol = self.options.rtol, self.options.atol
        for k, (error, a, b) in enumerate(zip(errors, y, new, strict=True)):
            allowed = atol[k] + rtol[k] * np.maximum(abs(a), abs(b))
            total = total + np.sum(np.square(abs(error) / allowed))
            count = count + error.size
        return stop_gradient(np.sqrt(total / (1 if type(count) is int and not count else count)))

    def _try(self, now: Progress) -> tuple[Any, Step, Leaves, Any]:
        """A step, the state after it, whether to take it, and how long the next one is to be."""
        h = np.minimum(now.size, abs(self.end - stop_gradient(now.t))) * self.direction
        new, step = self._step(now.t, now.y, now.k, h)
        errors = self.motion.scaled(h, self.tableau.errors, step.slopes)
        norm = self._norm(errors, now.y, new)
        factor = np.minimum(10.0, np.maximum(0.2, 0.9 * np.maximum(norm, 1e-10) ** -0.2))
        factor = np.where(norm < np.inf, factor, 0.2)
        size = np.minimum(abs(h) * factor, self.options.max_step)
        return norm <= 1.0, step, new, stop_gradient(OPS["astype"](size, h.dtype))

    def _step(self, t: Any, y: Leaves, k: Leaves, h: Any) -> tuple[Leaves, Step]:
        """The state after a step, and the step."""
        slopes = [k]
        new = y
        for node, row in zip(self.tableau.nodes, self.tableau.rows, strict=True):
            new = self.motion.moved(y, h, row, slopes)
            slopes.append(self.motion.slopes(new, t + node * h))
        return new, Step(t, h, y, slopes)

    def _within(self, step: Step, t: Any) -> Leaves:
        """The state at a time within a step, or at times within as many steps."""
        part = (t - step.t) / step.h
        weights: list[Any] = []
        for a, b, c, d in self.tableau.dense:
            weights.append(part * (a + part * (b + part * (c + part * d))) if a or b else 0.0)
        return self.motion.moved(step.y, step.h, weights, step.slopes)

    def _before(self, target: Any, t: Any) -> Any:
        return (target - t) * self.direction > self.spacing * abs(target)

    def _goes_on(self, target: Any, now: Progress) -> Any:
        possible = np.logical_and(
            now.size > self.spacing * abs(now.t), now.count < self.options.max_steps
        )
        return np.logical_and(self._before(target, now.t), possible)

    # ---------------------------------------------------------------------------- eager code

    def _reach(self, carry: tuple[Progress, Step], target: Any) -> tuple[Any, Leaves]:
        """As many steps as lead to a time or beyond, and the state there."""
        now, last = while_loop(lambda carry: self._goes_on(target, carry[0]), self._attempt, carry)
        there = OPS["logical_not"](self._before(target, now.t))
        verdict = _known(there)
        if verdict is False:
            self._fail(now)
        y = self._within(last, target)
        if verdict is True and _known(self.ordered) is True:
            return (now, last), y
        return (now, last), self._valid(np.logical_and(there, self.ordered), y)

    def _attempt(self, carry: tuple[Progress, Step]) -> tuple[Progress, Step]:
        """A step, taken or not."""
        now, last = carry
        good, step, new, size = self._try(now)
        verdict = _known(good)
        count = now.count + 1
        if verdict is False:
            return now._replace(size=size, count=count), last
        if verdict is True:
            return Progress(now.t + step.h, new, step.slopes[-1], size, count), step
        taken = np.where(good, step.h, 0.0 * step.h)
        new, step = self._step(now.t, now.y, now.k, taken)
        new = Progress(now.t + taken, new, step.slopes[-1], size, count)
        return new, chosen("odeint", good, step, last)

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

    def _valid(self, flags: Any, y: Leaves) -> Leaves:
        """States, NaN where a flag says that there is none, gradients as well."""
        valid = np.where(flags, 1.0, np.nan)
        return [beside(valid, a, real) * a for a, real in zip(y, self.motion.reals, strict=True)]

    # ----------------------------------------------------------------------------- compiled

    def _compiled(self, start: Progress) -> Leaves:
        """Two native loops: Note [Loops of steps]."""
        count = while_loop(
            lambda now: self._goes_on(self.end, now), self._judged, stop_gradient(start)
        ).count
        return with_length(partial(self._replayed, start), count + 1)

    def _judged(self, now: Progress) -> Progress:
        """A step, taken or not, without derivatives."""
        good, step, new, size = self._try(now)
        after = (now.t + step.h, new, step.slopes[-1])
        t, y, k = chosen("odeint", good, after, (now.t, now.y, now.k))
        return Progress(t, y, k, size, now.count + 1)

    def _replayed(self, start: Progress, length: Any) -> Leaves:
        def take(carry: tuple[Progress, Any], _: Any) -> Any:
            now, h = carry
            new, step = self._step(now.t, now.y, now.k, h)
            now = Progress(now.t + h, new, step.slopes[-1], now.size, now.count + 1)
            good, tried, _, size = self._try(now)
            taken = stop_gradient(np.where(good, tried.h, 0.0 * tried.h))
            return (now._replace(size=size), taken), step

        _, steps = scan(take, (start, 0.0 * start.size), None, length)
        targets = self.times[1:]
        ends = stop_gradient(steps.t + steps.h) * self.direction
        goals = stop_gradient(targets) * self.direction
        goals = goals - self.spacing * abs(goals)
        place = np.minimum(np.searchsorted(ends, goals), length - 1)
        at = Step(*_taken(place, steps[:2]), *(_taken(place, part) for part in steps[2:]))
        at = at._replace(h=np.where(at.h == 0, 1.0, at.h).astype(at.h.dtype))
        y = self._within(at, targets)
        return self._valid(np.logical_and(goals <= ends[-1], self.ordered), y)


def _taken(place: Any, tree: Any) -> Any:
    return map_leaves(lambda leaf: OPS["take"](leaf, place, axis=0), tree)


def _known(flag: Any) -> Any:
    """A truth value as a bool, or as it is if that is not known or differs by example."""
    return flag if state.ground.deferred else decided("odeint", flag)
