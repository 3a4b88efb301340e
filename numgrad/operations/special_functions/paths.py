"""Random numbers as functions of their parameters, for the same chance.

Note [Implicit reparameterisation]
----------------------------------
A number ``z`` that was drawn with a parameter has a probability ``F(z; a)`` of smaller ones. Kept
at this, it moves by ``dz / da = -(dF / da) / (dF / dz)`` (Figurnov, Mohamed, Mnih, 2018), whatever
algorithm drew it. Operations here have the number as value, and these derivatives.
"""

from numgrad.operations.special_functions.beta import _density as _beta_density
from numgrad.operations.special_functions.beta import betainc_a, betainc_b
from numgrad.operations.special_functions.declare import derivative
from numgrad.operations.special_functions.distributions import _student_density, _student_slope
from numgrad.operations.special_functions.gamma import _density, gammainc_a


@derivative(scalar=None, domain=(0.5, 4.0))
def gamma_path(a, x):
    """A gamma number of shape ``a`` that was drawn."""
    return x


gamma_path.vjp(a=lambda g, a, x: -g * gammainc_a(a, x) / _density(a, x), x=lambda g: g)


@derivative(scalar=None, domain=(0.15, 0.85))
def beta_path(a, b, x):
    """A beta number that was drawn."""
    return x


beta_path.vjp(
    a=lambda g, a, b, x: -g * betainc_a(a, b, x) / _beta_density(a, b, x),
    b=lambda g, a, b, x: -g * betainc_b(a, b, x) / _beta_density(a, b, x),
    x=lambda g: g,
)


@derivative(scalar=None, domain=(0.5, 4.0))
def student_path(df, t):
    """A number of Student's distribution that was drawn."""
    return t


student_path.vjp(
    df=lambda g, df, t: -g * _student_slope(df, t) / _student_density(df, t), t=lambda g: g
)
