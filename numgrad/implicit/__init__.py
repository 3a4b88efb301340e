"""Solutions that an equation defines, differentiated by the implicit function theorem.

Where ``F(z, a) = 0`` defines ``z``, its derivative is ``dz/da = -(dF/dz)^-1 dF/da``: it depends on
the solution alone, not on how it was found, and takes one linear system. It is recorded like any
operation, so derivatives of any order follow, in reverse and in forward mode.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.implicit.equations": "argmin fixed_point root",
        "numgrad.implicit.solvers": "linear_solve",
    },
)
