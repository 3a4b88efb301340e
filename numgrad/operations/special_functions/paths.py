"""Random numbers as functions of their parameters, for the same chance.

Note [Implicit reparameterisation]
----------------------------------
A number ``z`` that was drawn with a parameter has a probability ``F(z; a)`` of smaller ones. Kept
at this, it moves by ``dz / da = -(dF / da) / (dF / dz)`` (Figurnov, Mohamed, Mnih, 2018), whatever
algorithm drew it. Operations here have the number as value, and these derivatives. Formulas say
so of their result and not of the operand, so that in further derivatives it moves as well.
"""

import math

import numpy as np

from numgrad.operations.special_functions.angles import angle_density, angle_tail_slope
from numgrad.operations.special_functions.beta import beta_density, betainc_a, betainc_b
from numgrad.operations.special_functions.declare import derivative, moved
from numgrad.operations.special_functions.distributions import student_density, student_slope
from numgrad.operations.special_functions.error import erfcx
from numgrad.operations.special_functions.gamma import gamma_density, gammainc_a


@derivative(scalar=None, domain=(0.5, 4.0))
def gamma_path(a, x):
    """A gamma number of shape ``a`` that was drawn."""
    return x


gamma_path.vjp(a=lambda g, a, y: -g * moved(gammainc_a(a, y), gamma_density(a, y)), x=lambda g: g)


@derivative(scalar=None, domain=(0.15, 0.85))
def beta_path(a, b, x):
    """A beta number that was drawn."""
    return x


beta_path.vjp(
    a=lambda g, a, b, y: -g * moved(betainc_a(a, b, y), beta_density(a, b, y)),
    b=lambda g, a, b, y: -g * moved(betainc_b(a, b, y), beta_density(a, b, y)),
    x=lambda g: g,
)


@derivative(scalar=None, domain=(0.5, 4.0))
def student_path(df, t):
    """A number of Student's distribution that was drawn."""
    return t


student_path.vjp(
    df=lambda g, df, y: -g * moved(student_slope(df, y), student_density(df, y)), t=lambda g: g
)


@derivative(scalar=None, domain=(0.3, 3.0))
def angle_path(kappa, x):
    """An angle between -pi and pi that was drawn around 0."""
    return x


def _angle_slope(kappa, y):
    left = y < 0
    size = np.where(left, -y, y)
    found = angle_tail_slope(kappa, size) / angle_density(kappa, size)
    return np.where(left, -found, found)


angle_path.vjp(kappa=lambda g, kappa, y: g * _angle_slope(kappa, y), x=lambda g: g)


@derivative(scalar=None, domain=(0.5, 4.0))
def arrival_path(mean, scale, x):
    """A time of Wald's distribution that was drawn."""
    return x


def _arrival_slope(mean, scale, y):
    """Derivative in the mean; the density's exponential divides that of a normal tail."""
    away = np.sqrt(scale / y) * (y / mean + 1)
    tail = math.sqrt(math.pi / 2) * erfcx(math.sqrt(0.5) * away)
    return 2 * y * np.sqrt(scale * y) * tail / (mean * mean)


arrival_path.vjp(
    mean=lambda g, mean, scale, y: g * _arrival_slope(mean, scale, y),
    # times grow in proportion to both parameters
    scale=lambda g, mean, scale, y: g * (y - mean * _arrival_slope(mean, scale, y)) / scale,
    x=lambda g: g,
)
