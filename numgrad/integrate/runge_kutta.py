"""Runge-Kutta methods: tables of numbers, and explicit methods that choose their steps.

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
In compiled functions one loop without derivatives tries the steps, and collects lengths and slopes
(Note [Adaptive loops] in ``compiler.loops.while_loop``); a step refused has length zero and the
slopes there. A step with a given length judges nothing: the loop of such steps would collect the
same, so of it only the transposed loop runs. The states asked for are interpolated from what was
collected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import map_leaves
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.integrate.system import Leaves, Motion, beside
from numgrad.operations.shape import as_operand
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.carried import decided, select
from numgrad.transforms.control_flow import scan, while_loop
from numgrad.transforms.products import stop_gradient

Weights = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """An explicit method whose last stage is the slope at the end of the step.

    Attributes
    ----------
    nodes
        Where in the step slopes are taken, after the one at its start.
    rows
        For each of these, the weights of the slopes before it; the last row makes the new state.
    errors
        Weights of all slopes in the estimate of the error, which is that of a step of order four.
    dense
        For each slope, what its weight is within the step: factors of the first four powers.
    """

    nodes: Weights
    rows: tuple[Weights, ...]
    errors: Weights
    dense: tuple[Weights, ...]


NONE = (0.0, 0.0, 0.0, 0.0)

# J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", 1980; within a step
# L. F. Shampine, "Some practical Runge-Kutta formulas", 1986.
DOPRI5 = Tableau(
    nodes=(1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    rows=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    errors=(-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),
    dense=(
        (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        NONE,
        (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

# Ch. Tsitouras, "Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying
# assumption", 2011.
TSIT5 = Tableau(
    nodes=(0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    rows=(
        (0.161,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401,
         -0.028269050394068383),
        (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081,
         2.324710524099774),
    ),
    errors=(-0.00178001105222577714, -0.0008164344596567469, 0.007880878010261995,
            -0.1447110071732629, 0.5823571654525552, -0.45808210592918697, 1 / 66),
    dense=(
        (1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216),
        (0.0, 0.1317, -0.2234, 0.1017),
        (0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253),
        (0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902),
        (0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928),
        (0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661),
        (0.0, 1.5, -4.0, 2.5),
    ),
)  # fmt: skip

TABLEAUS = {"dopri5": DOPRI5, "tsit5": TSIT5}


class StepControl(NamedTuple):
    """Parameters that say how steps are chosen."""

    rtol: Any
    atol: Any
    first_step: Any
    max_step: Any
    max_steps: int


class TakenStep(NamedTuple):
    """A step that was taken: from where, how far, and the slopes within."""

    t: Any
    h: Any
    y: Leaves
    slopes: list[Leaves]


class Reached(NamedTuple):
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

    def __init__(
        self, motion: Motion, tableau: Tableau, options: StepControl, times: Tensor
    ) -> None:
        self.motion, self.tableau, self.options = motion, tableau, options
        self.times = times
        fixed = stop_gradient(times)
        self.end = fixed[-1]
        self.spacing = 4 * float(np.finfo(times.dtype).eps)
        span = self.end - fixed[0]
        self.direction = np.where(span < 0, -1.0, 1.0).astype(times.dtype)
        self.span = abs(span)
        ordered = np.all((fixed[1:] - fixed[:-1]) * self.direction >= 0) & (self.span < np.inf)
        if _decide(ordered) is False:
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
        last = TakenStep(now.t, np.ones_like(stop_gradient(now.t)), now.y, stages)
        return scan(self._reach, (now, last), self.times[1:])[1]

    # ------------------------------------------------------------------------ choosing steps

    def _begin(self, t: Any) -> Reached:
        """The carry before the first step."""
        y = self.motion.start
        k = self.motion.slopes(y, t)
        return Reached(t, y, k, self._first_size(t, y, k), 0)

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
        return np.sqrt(self._mean_square(errors, y, new))

    def _mean_square(self, errors: Leaves, y: Leaves, new: Leaves) -> Any:
        """The mean square of errors over what is tolerated."""
        total: Any = 0.0
        count = 0
        rtol, atol = self.options.rtol, self.options.atol
        for k, (error, a, b) in enumerate(zip(errors, y, new, strict=True)):
            allowed = atol[k] + rtol[k] * np.maximum(abs(a), abs(b))
            share = np.sum(np.square(abs(error) / allowed))
            total = total + share if k else share
            count = count + error.size
        if type(count) is int:  # a product is there sooner than a quotient
            return stop_gradient(total * (1.0 / max(count, 1)))
        return stop_gradient(total / count)

    def _try(self, now: Reached) -> tuple[Any, TakenStep, Leaves, Any]:
        """A step, the state after it, whether to take it, and how long the next one is to be."""
        h = np.minimum(now.size, abs(self.end - stop_gradient(now.t))) * self.direction
        new, step = self._step(now.t, now.y, now.k, h)
        errors = self.motion.scaled(h, self.tableau.errors, step.slopes)
        square = self._mean_square(errors, now.y, new)
        # the next step waits for this number, and a logarithm is there sooner than a power
        ratio = np.exp(-0.1 * np.log(np.maximum(square, 1e-20)))
        factor = np.minimum(10.0, np.maximum(0.2, 0.9 * ratio))
        factor = np.where(square < np.inf, factor, 0.2)
        size = np.minimum(abs(h) * factor, self.options.max_step)
        return square <= 1.0, step, new, stop_gradient(OPS["astype"](size, h.dtype))

    def _step(self, t: Any, y: Leaves, k: Leaves, h: Any) -> tuple[Leaves, TakenStep]:
        """The state after a step, and the step."""
        slopes = [k]
        new = y
        for node, row in zip(self.tableau.nodes, self.tableau.rows, strict=True):
            new = self.motion.moved(y, h, row, slopes)
            slopes.append(self.motion.slopes(new, t + node * h))
        return new, TakenStep(t, h, y, slopes)

    def _within(self, step: TakenStep, t: Any) -> Leaves:
        """The state at a time within a step, or at times within as many steps."""
        fraction = (t - step.t) / step.h
        weights: list[Any] = []
        for a, b, c, d in self.tableau.dense:
            weights.append(
                fraction * (a + fraction * (b + fraction * (c + fraction * d))) if a or b else 0.0
            )
        return self.motion.moved(step.y, step.h, weights, step.slopes)

    def _before(self, target: Any, t: Any) -> Any:
        return (target - t) * self.direction > self.spacing * abs(target)

    def _goes_on(self, target: Any, now: Reached) -> Any:
        possible = np.logical_and(
            now.size > self.spacing * abs(now.t), now.count < self.options.max_steps
        )
        return np.logical_and(self._before(target, now.t), possible)

    # ---------------------------------------------------------------------------- eager code

    def _reach(self, carry: tuple[Reached, TakenStep], target: Any) -> tuple[Any, Leaves]:
        """Step to a time or beyond, and interpolate the state there."""
        now, last = while_loop(lambda carry: self._goes_on(target, carry[0]), self._attempt, carry)
        there = OPS["logical_not"](self._before(target, now.t))
        verdict = _decide(there)
        if verdict is False:
            self._fail(now)
        y = self._within(last, target)
        if verdict is True and _decide(self.ordered) is True:
            return (now, last), y
        return (now, last), self._valid(np.logical_and(there, self.ordered), y)

    def _attempt(self, carry: tuple[Reached, TakenStep]) -> tuple[Reached, TakenStep]:
        """A step, taken or not."""
        now, last = carry
        good, step, new, size = self._try(now)
        verdict = _decide(good)
        count = now.count + 1
        if verdict is False:
            return now._replace(size=size, count=count), last
        if verdict is True:
            return Reached(now.t + step.h, new, step.slopes[-1], size, count), step
        length = np.where(good, step.h, 0.0 * step.h)
        new, step = self._step(now.t, now.y, now.k, length)
        new = Reached(now.t + length, new, step.slopes[-1], size, count)
        return new, select("odeint", good, step, last)

    def _fail(self, now: Reached) -> None:
        where = f"at t = {float(now.t):.6g}" if now.t.ndim == 0 else "at some time"
        if _decide(now.count >= self.options.max_steps) is not False:
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

    def _compiled(self, start: Reached) -> Leaves:
        """A native loop forward, and its transposed loop: Note [Loops of steps]."""
        from numgrad.compiler.loops.subgraph import with_length
        from numgrad.compiler.loops.while_loop import run_adaptive

        fixed = stop_gradient(start)
        count = np.asarray(0, np.int64)
        carry = [fixed.t, *fixed.y, *fixed.k, fixed.size, as_operand(count)]
        walk = run_adaptive(self._judged, carry)
        return with_length(partial(self._along, start, walk), walk.length)

    def _judged(self, carry: Sequence[Any]) -> tuple[list[Any], Any, list[Any]]:
        """A step, taken or not, without derivatives, and what of it is collected."""
        n = len(self.motion.start)
        now = Reached(carry[0], list(carry[1 : 1 + n]), list(carry[1 + n : -2]), *carry[-2:])
        possible = self._goes_on(self.end, now)
        good, step, new, size = self._try(now)
        good = np.logical_and(good, possible)
        length = np.where(good, step.h, 0.0 * now.size)
        stages = [select("odeint", good, k, now.k) for k in step.slopes[1:]]
        t, y, k = select("odeint", good, (now.t + step.h, new, step.slopes[-1]), now[:3])
        after = Reached(t, y, k, size, now.count + 1)
        rows = [length, *(x for stage in stages for x in stage), now.t, *now.y, *now.k]
        return [t, *y, *k, size, after.count], self._goes_on(self.end, after), rows

    def _along(self, start: Reached, walk: Any, length: Any) -> Leaves:
        """The states asked for, of the steps that a walk has taken."""
        n = len(self.motion.start)

        def take(row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            t, y, k = row[0], list(row[1 : 1 + n]), list(row[1 + n : -1])
            h = stop_gradient(row[-1])
            new, step = self._step(t, y, k, h)
            stages = [x for stage in step.slopes[1:] for x in stage]
            return [t + h, *new, *step.slopes[-1]], stages

        h, *rows = walk.rows(length)
        carry = [start.t, *start.y, *start.k]
        from numgrad.compiler.loops.while_loop import replay_adaptive

        stages, before = replay_adaptive(take, carry, [h], rows, length)
        slopes = [before[1 + n :], *([*stages[i : i + n]] for i in range(0, len(stages), n))]
        steps = TakenStep(before[0], h, before[1 : 1 + n], slopes)
        targets = self.times[1:]
        ends = stop_gradient(steps.t + steps.h) * self.direction
        goals = stop_gradient(targets) * self.direction
        goals = goals - self.spacing * abs(goals)
        interval = np.minimum(np.searchsorted(ends, goals), length - 1)
        at = TakenStep(
            *_take(interval, steps[:2]), *(_take(interval, field) for field in steps[2:])
        )
        at = at._replace(h=np.where(at.h == 0, 1.0, at.h).astype(at.h.dtype))
        y = self._within(at, targets)
        return self._valid(np.logical_and(goals <= ends[-1], self.ordered), y)


def _take(index: Any, tree: Any) -> Any:
    return map_leaves(lambda leaf: OPS["take"](leaf, index, axis=0), tree)


def _decide(flag: Any) -> Any:
    """A truth value as a bool, or as it is if that is not known, differs by example, or is none."""
    empty = any(getattr(level, "size", 1) == 0 for level in state.interpreters)
    return flag if state.ground.deferred or empty else decided("odeint", flag)
