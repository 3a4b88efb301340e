"""GradBench's gradient descent, for the extremes of the evals ``particle`` and ``saddle``."""

import numpy as np

import numgrad as ng


def argmin(f, x, differentiate):
    """Where ``f`` is least: the step doubles after ten that went down, halves after a failure.

    ``differentiate`` is ``ng.grad`` or ``ng.jacfwd``. The result has derivatives with respect to
    what ``f`` is made of, through all steps.
    """
    gradient = differentiate(f)

    def moving(state):
        _, _, slope, rate, _ = state
        length = np.sqrt(np.sum(slope**2))
        return (length > 1e-5) & (rate * length > 1e-5)

    def step(state):
        x, value, slope, rate, successes = state
        following = x - rate * slope
        lower = f(following)

        def accept():
            tenth = successes == 9
            faster = np.where(tenth, 2 * rate, rate)
            return following, lower, gradient(following), faster, np.where(tenth, 0, successes + 1)

        def retry():
            return x, value, slope, rate / 2, np.zeros_like(successes)

        return ng.cond(lower < value, accept, retry)

    return ng.while_loop(moving, step, (x, f(x), gradient(x), 1e-5, 0))[0]


def argmax(f, x, differentiate):
    """Where ``f`` is largest."""
    return argmin(lambda x: -f(x), x, differentiate)
