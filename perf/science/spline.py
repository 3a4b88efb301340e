"""A natural cubic spline through free knots, fitted to noisy points: the sum of squares."""

import numpy

SIZES = {"tiny": [5, 9], "small": [8, 100], "middle": [32, 10_000], "large": [128, 300_000]}
ARGNUMS = (0, 1)


def arguments(knots, points):
    """Places of knots and values there; the points."""
    draw = numpy.random.default_rng(0)
    places = numpy.linspace(0.0, 1.0, knots)
    places[1:-1] += 0.2 / knots * draw.uniform(-1.0, 1.0, knots - 2)
    x = numpy.sort(draw.random(points))
    return places, numpy.sin(6.0 * places), x, numpy.sin(6.0 * x) + 0.1 * draw.normal(size=points)


def program(library):
    np = library.np

    def misfit(places, values, x, y):
        width = np.diff(places)
        slope = np.diff(values) / width
        # second derivatives at the knots; 0 at both ends
        zero, one = np.zeros(1), np.ones(1)
        lower = np.concatenate([zero, width[:-1], zero])
        upper = np.concatenate([zero, width[1:], zero])
        diagonal = np.concatenate([one, 2.0 * (width[1:] + width[:-1]), one])
        m = library.tridiagonal(
            lower, diagonal, upper, np.concatenate([zero, 6.0 * np.diff(slope), zero])
        )
        k = np.clip(np.searchsorted(places, x) - 1, 0, len(values) - 2)
        left, right = x - places[k], places[k + 1] - x
        h = width[k]
        cubic = (m[k] * right**3 + m[k + 1] * left**3) / (6.0 * h)
        line = (values[k] / h - m[k] * h / 6.0) * right
        line = line + (values[k + 1] / h - m[k + 1] * h / 6.0) * left
        return np.sum((cubic + line - y) ** 2)

    return misfit
