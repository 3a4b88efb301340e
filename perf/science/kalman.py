"""Likelihood of a body's track in space: a Kalman filter of six states and three observations."""

import numpy

SIZES = {"tiny": [4], "small": [20], "middle": [300], "large": [5000]}
ARGNUMS = (0,)


def arguments(observations):
    """Logarithms of variances of the motion and of the observations, and what was observed."""
    steps = numpy.random.default_rng(0).normal(size=(observations, 3))
    return numpy.linspace(-1.0, 0.5, 9), numpy.cumsum(steps, axis=0)


def program(library):
    np = library.np
    motion = numpy.eye(6) + 0.1 * numpy.eye(6, k=3)
    seen = numpy.eye(3, 6)

    def deviance(p, track):
        noise, error = np.diag(np.exp(p[:6])), np.diag(np.exp(p[6:]))

        def step(state, y):
            mean, covariance = state
            mean, covariance = motion @ mean, motion @ covariance @ motion.T + noise
            miss, spread = y - seen @ mean, seen @ covariance @ seen.T + error
            gain = np.linalg.solve(spread, seen @ covariance).T
            surprise = np.linalg.slogdet(spread)[1] + miss @ np.linalg.solve(spread, miss)
            return (mean + gain @ miss, covariance - gain @ seen @ covariance), surprise

        start = np.zeros(6), np.eye(6)
        return np.sum(library.scan(step, start, track)[1])

    return deviance
