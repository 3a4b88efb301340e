"""Solutions that an equation defines, differentiated by the implicit function theorem.

Where ``F(z, a) = 0`` defines ``z``, its derivative is ``dz/da = -(dF/dz)^-1 dF/da``: it depends on
the solution alone, not on how it was found, and takes one linear system. It is recorded like any
operation, so derivatives of any order follow, in reverse and in forward mode.
"""

from numgrad.implicit.equations import argmin as argmin
from numgrad.implicit.equations import fixed_point as fixed_point
from numgrad.implicit.equations import root as root
from numgrad.implicit.solvers import linear_solve as linear_solve

__all__ = ["argmin", "fixed_point", "linear_solve", "root"]


def __dir__() -> list[str]:
    return __all__
