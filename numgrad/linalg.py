"""Linear algebra: the functions of ``numpy.linalg``, and of ``scipy.linalg`` with their names.

Matrices are the last two axes, and axes before them stacks. What NumPy's functions of these names
take, these take too: ``np.linalg.solve(a, b)`` of a Tensor is ``ng.linalg.solve(a, b)``. What
SciPy's take besides is taken by name: ``overwrite_a``, ``check_finite`` and others by which results
do not change, ``lower``, ``A``.
"""

from numgrad.core.namespaces import namespace as _namespace
from numgrad.core.op import Op as _Op
from numgrad.operations.linear_algebra.matrices import take as _take

_names = _namespace(
    globals(),
    {
        "numgrad.errors": "LinAlgError=NumgradLinAlgError",
        "numgrad.operations.arrangement": "matrix_transpose",
        "numgrad.operations.linear_algebra.determinants": "det slogdet",
        "numgrad.operations.linear_algebra.eigenvalues": "eig eigh eigvals eigvalsh",
        "numgrad.operations.linear_algebra.factorizations": "householder_product ldl ldl_solve lu "
        "lu_factor lu_solve lu_unpack qr",
        "numgrad.operations.linear_algebra.matrix_equations": "solve_continuous_are "
        "solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov",
        "numgrad.operations.linear_algebra.matrix_functions": "coshm cosm expm "
        "fractional_matrix_power logm matrix_power sinhm sinm solve_sylvester sqrtm tanhm tanm",
        "numgrad.operations.linear_algebra.polar": "orthogonal_procrustes polar signm",
        "numgrad.operations.linear_algebra.schur": "hessenberg qz rsf2csf schur",
        "numgrad.operations.linear_algebra.singular_values": "cond lstsq matrix_rank null_space "
        "orth pinv pinvh svd svdvals",
        "numgrad.operations.linear_algebra.solve": "inv solve",
        "numgrad.operations.linear_algebra.structured": "block_diag circulant companion "
        "eig_banded eigh_tridiagonal eigvals_banded eigvalsh_tridiagonal hankel khatri_rao "
        "matmul_toeplitz solve_banded solve_toeplitz solveh_banded toeplitz",
        "numgrad.operations.linear_algebra.triangular": "cho_factor cho_solve cholesky "
        "solve_triangular",
        "numgrad.operations.linear_algebra.vector_products": "cross=cross_of_last "
        "diagonal=diagonal_of_matrices multi_dot tensorinv tensorsolve outer=outer_of_vectors "
        "trace=trace_of_matrices",
        "numgrad.operations.matmul": "kron matmul tensordot vecdot",
        "numgrad.operations.norm": "matrix_norm norm vector_norm",
    },
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

_take(op for name in _names if isinstance(op := globals()[name], _Op))
