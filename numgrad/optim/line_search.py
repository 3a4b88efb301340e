"""A line search for the strong Wolfe conditions, by cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ARMIJO = 1e-4
"""Part of the decrease that the slope promises which a step must bring."""
CURVATURE = 0.9
"""Part of the slope that may be left."""


class Trial(NamedTuple):
    """A point on the line: the factor of the direction, the loss there, its slope and gradient."""

    t: float
    loss: float
    slope: float
    gradient: np.ndarray


def strong_wolfe(
    evaluate: Callable[[float], Trial],
    origin: Trial,
    t: float,
    longest: float,
    tolerance_change: float,
    max_iterations: int,
) -> tuple[Trial, int]:
    """Find a step that decreases the loss enough and flattens its slope enough.

    First the step grows until it is good or an interval is known to hold a good one, then the
    interval shrinks (J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6;
    new points as in M. Schmidt's minFunc).

    Parameters
    ----------
    evaluate
        Loss, slope and gradient at a factor of the direction.
    origin
        Those at 0; the slope is negative.
    t
        First factor.
    longest
        Largest absolute element of the direction.
    tolerance_change
        Least size of a change of a parameter.
    max_iterations
        Evaluations after the first.

    Returns
    -------
    Trial, int
        The point found, or the best one if none is good, and the number of evaluations.
    """
    trial, previous, count = evaluate(t), origin, 0

    def too_high(trial: Trial) -> bool:
        return trial.loss > origin.loss + ARMIJO * trial.t * origin.slope

    def flat(trial: Trial) -> bool:
        return abs(trial.slope) <= -CURVATURE * origin.slope

    while count < max_iterations:
        if too_high(trial) or (count > 1 and trial.loss >= previous.loss):
            break
        if flat(trial):
            return trial, count + 1
        if trial.slope >= 0:
            break
        t = trial.t
        low, high = t + 0.01 * (t - previous.t), t * 10
        previous, trial = trial, evaluate(_interpolate(previous, trial, low, high))
        count += 1
    else:
        previous = origin
    ends = [previous, trial]

    best = _lower(ends)
    close = False
    while count < max_iterations:
        left, right = min(end.t for end in ends), max(end.t for end in ends)
        width = right - left
        if width * longest < tolerance_change:
            break
        t = _interpolate(ends[0], ends[1], left, right)
        # near an end the second time in a row, or at it: a tenth of the interval away from it
        margin = 0.1 * width
        near = min(right - t, t - left) < margin
        if near and (close or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            close = False
        else:
            close = near
        trial = evaluate(t)
        count += 1
        if too_high(trial) or trial.loss >= ends[best].loss:
            ends[1 - best] = trial
            best = _lower(ends)
            continue
        done = flat(trial)
        if not done and trial.slope * (ends[1 - best].t - ends[best].t) >= 0:
            ends[1 - best] = ends[best]
        ends[best] = trial
        if done:
            break
    return ends[best], count + 1


def _lower(ends: list[Trial]) -> int:
    """Which end of an interval has the lower loss."""
    return 0 if ends[0].loss <= ends[1].loss else 1


def _interpolate(a: Trial, b: Trial, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is least, between bounds.

    Their middle, if the cubic has no minimum. Numbers too large or equal points give NaN or an
    infinity, which the bounds take care of.
    """
    if a.t > b.t:
        a, b = b, a
    with np.errstate(all="ignore"):
        width = np.float64(b.t - a.t)
        middle = np.float64(a.slope) + b.slope - 3 * (np.float64(b.loss) - a.loss) / width
        square = middle * middle - np.float64(a.slope) * b.slope
        if not square >= 0:
            return (low + high) / 2
        root = np.sqrt(square)
        t = b.t - width * ((b.slope + root - middle) / (b.slope - a.slope + 2 * root))
    return float(min(max(t, low), high))
