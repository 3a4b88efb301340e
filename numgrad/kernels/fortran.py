"""Calls of BLAS and LAPACK from kernels, by Fortran's convention.

SciPy exports both to compiled code; kernels refer to them by the linker's names: Note [External
functions] in ``linker``. A matrix is column-major there: what is row-major counts as its transpose.
"""

import numpy as np

from numgrad.codegen.device import instruction

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@instruction
def lapack(like, name, *given):
    """Call ``name`` for the dtype ``like``.

    Arrays are given by their addresses, integers by those of copies; a letter is an integer too,
    its code, or a string.
    """


@instruction
def blas_gemm(like, bits, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    """``blas.gemm`` of row-major matrices by BLAS, whose integers have ``bits``."""


def external(name: str, dtype: np.dtype) -> str:
    """What a kernel that calls ``name`` for a dtype lists among its externals."""
    return f"scipy.linalg.cython_lapack:{LETTERS[dtype.name]}{name}"
