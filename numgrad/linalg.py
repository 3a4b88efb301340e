"""Linear algebra: the functions of ``numpy.linalg``, and of ``scipy.linalg`` with their names.

Matrices are the last two axes, and axes before them stacks. What NumPy's functions of these names
take, these take too: ``np.linalg.solve(a, b)`` of a Tensor is ``ng.linalg.solve(a, b)``. What
SciPy's take besides is taken by name: ``overwrite_a``, ``check_finite`` and others by which results
do not change, ``lower``, ``A``.
"""

import numgrad.operations.linear_algebra.solve as _assumptions  # noqa: F401
from numgrad.core.absent import absent as _absent
from numgrad.core.op import Op
from numgrad.errors import NumgradLinAlgError as LinAlgError
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.linear_algebra.checks import take
from numgrad.operations.linear_algebra.determinants import det, slogdet
from numgrad.operations.linear_algebra.eigenvalues import eig, eigh, eigvals, eigvalsh
from numgrad.operations.linear_algebra.factorizations import (
    householder_product,
    ldl,
    ldl_solve,
    lu,
    lu_factor,
    lu_solve,
    lu_unpack,
    qr,
)
from numgrad.operations.linear_algebra.matrix_equations import (
    solve_continuous_are,
    solve_continuous_lyapunov,
    solve_discrete_are,
    solve_discrete_lyapunov,
)
from numgrad.operations.linear_algebra.matrix_functions import (
    coshm,
    cosm,
    expm,
    fractional_matrix_power,
    logm,
    matrix_power,
    sinhm,
    sinm,
    solve_sylvester,
    sqrtm,
    tanhm,
    tanm,
)
from numgrad.operations.linear_algebra.polar import orthogonal_procrustes, polar, signm
from numgrad.operations.linear_algebra.schur import hessenberg, qz, rsf2csf, schur
from numgrad.operations.linear_algebra.singular_values import (
    cond,
    lstsq,
    matrix_rank,
    null_space,
    orth,
    pinv,
    pinvh,
    svd,
    svdvals,
)
from numgrad.operations.linear_algebra.solve import inv, solve
from numgrad.operations.linear_algebra.structured import (
    block_diag,
    circulant,
    companion,
    eig_banded,
    eigh_tridiagonal,
    eigvals_banded,
    eigvalsh_tridiagonal,
    hankel,
    khatri_rao,
    matmul_toeplitz,
    solve_banded,
    solve_toeplitz,
    solveh_banded,
    toeplitz,
)
from numgrad.operations.linear_algebra.triangular import (
    cho_factor,
    cho_solve,
    cholesky,
    solve_triangular,
)
from numgrad.operations.linear_algebra.vector_products import (
    cross_of_last as cross,
)
from numgrad.operations.linear_algebra.vector_products import (
    diagonal_of_matrices as diagonal,
)
from numgrad.operations.linear_algebra.vector_products import multi_dot, tensorinv, tensorsolve
from numgrad.operations.linear_algebra.vector_products import (
    outer_of_vectors as outer,
)
from numgrad.operations.linear_algebra.vector_products import (
    trace_of_matrices as trace,
)
from numgrad.operations.matmul import kron, matmul, tensordot, vecdot
from numgrad.operations.norm import matrix_norm, norm, vector_norm

__all__ = [
    "LinAlgError", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "cond", "coshm", "cosm", "cross", "det", "diagonal", "eig", "eig_banded", "eigh",
    "eigh_tridiagonal", "eigvals", "eigvals_banded", "eigvalsh", "eigvalsh_tridiagonal", "expm",
    "fractional_matrix_power", "hankel", "hessenberg", "householder_product", "inv", "khatri_rao",
    "kron", "ldl", "ldl_solve", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "lu_unpack",
    "matmul", "matmul_toeplitz", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "null_space", "orth", "orthogonal_procrustes", "outer", "pinv", "pinvh",
    "polar", "qr", "qz", "rsf2csf", "schur", "signm", "sinhm", "sinm", "slogdet", "solve",
    "solve_banded", "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are",
    "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular",
    "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm", "tanm", "tensordot", "tensorinv",
    "tensorsolve", "toeplitz", "trace", "vecdot", "vector_norm",
]  # fmt: skip

take(op for name in __all__ if isinstance(op := globals()[name], Op))


__getattr__ = _absent(
    __name__,
    __all__,
    {
        "cholesky_ex": "cholesky",
        "inv_ex": "inv",
        "solve_ex": "solve",
        "lu_factor_ex": "lu_factor",
        "ldl_factor": "ldl",
        "orgqr": "householder_product",
        "matrix_exp": "expm",
        "vander": "ng.vander",
        "solve_lyapunov": "solve_continuous_lyapunov",
        "cholesky_banded": "solveh_banded, or cholesky of the whole matrix",
    },
)


def __dir__() -> list[str]:
    return __all__
