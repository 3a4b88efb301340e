"""Couplings of spins from their mean values: mean-field equations by damped iteration."""

import numpy

SIZES = {"tiny": [3, 4], "small": [16, 50], "middle": [128, 100], "large": [600, 100]}
ARGNUMS = (0, 1)


def arguments(spins, steps):
    """Couplings, fields, mean values, and how much of each step is taken."""
    draw = numpy.random.default_rng(0)
    couplings = draw.normal(size=(spins, spins)) / spins**0.5
    return couplings, draw.normal(size=spins), draw.uniform(-1, 1, spins), numpy.full(steps, 0.5)


def program(library):
    np = library.np

    def misfit(couplings, fields, means, damping):
        symmetric = 0.5 * (couplings + couplings.T)

        def step(m, share):
            return m + share * (np.tanh(symmetric @ m + fields) - m), None

        m = library.scan(step, np.zeros_like(fields), damping)[0]
        return np.sum((m - means) ** 2)

    return misfit
