"""Random numbers as functions of their parameters, for the same chance.

Note [Implicit reparameterisation]
----------------------------------
A number ``z`` that was drawn with a parameter has a probability ``F(z; a)`` of smaller ones. Kept
at this, it moves by ``dz / da = -(dF / da) / (dF / dz)`` (Figurnov, Mohamed, Mnih, 2018), whatever
algorithm drew it. Operations here have the number as value, and these derivatives. Formulas say
so of their result and not of the operand, so that in further derivatives it moves as well.
"""

from numgrad.operations.special_functions.beta import beta_density, betainc_a, betainc_b
from numgrad.operations.special_functions.declare import derivative
from numgrad.operations.special_functions.distributions import student_density, student_slope
from numgrad.operations.special_functions.gamma import gamma_density, gammainc_a


@derivative(scalar=None, domain=(0.5, 4.0))
def gamma_path(a, x):
    """A gamma number of shape ``a`` that was drawn."""
    return x


gamma_path.vjp(a=lambda g, a, y: -g * gammainc_a(a, y) / gamma_density(a, y), x=lambda g: g)


@derivative(scalar=None, domain=(0.15, 0.85))
def beta_path(a, b, x):
    """A beta number that was drawn."""
    return x


beta_path.vjp(
    a=lambda g, a, b, y: -g * betainc_a(a, b, y) / beta_density(a, b, y),
    b=lambda g, a, b, y: -g * betainc_b(a, b, y) / beta_density(a, b, y),
    x=lambda g: g,
)


@derivative(scalar=None, domain=(0.5, 4.0))
def student_path(df, t):
    """A number of Student's distribution that was drawn."""
    return t


student_path.vjp(
    df=lambda g, df, y: -g * student_slope(df, y) / student_density(df, y), t=lambda g: g
)
