"""Derivatives in parameters as differences of operations, which have derivatives themselves.

Kernels take the same differences where they can: Note [Differences in a parameter] of
``kernels.differences``. A derivative of one of these loses two digits more.
"""

import numpy as np

from numgrad.kernels.differences import STEP, WEIGHTS


def central_difference(f, a, step=STEP):
    """The derivative of ``f`` at ``a``, of order ten in the step."""
    total = 0
    for k, weight in enumerate(WEIGHTS):
        t = (k + 1) * step
        total = total + weight * (f(a + t) - f(a - t))
    return total / step


def shape_difference(f, a):
    """The same in a parameter of shape of a distribution, by the step that kernels take."""
    return central_difference(f, a, np.where(a < 4, a * STEP, np.sqrt(np.abs(a)) * (2 * STEP)))


def pole_difference(f, a):
    """The same where there are poles at 0 and the negative integers."""
    room = np.where(a > 0.5, a, np.abs(a - np.rint(a)))
    return central_difference(f, a, np.minimum(room, 1) * STEP)
