"""The square of a number and its derivative."""

from timing import timed

import numgrad as ng


@timed(float, float)
def square(x):
    return x * x


double = timed(float, float)(ng.grad(square.function))
