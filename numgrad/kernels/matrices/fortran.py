"""Calls of LAPACK from kernels, by its names without the letter of the dtype.

SciPy exports LAPACK to compiled code; kernels refer to it by the linker's names: Note [External
functions] in ``linker``. A matrix is column-major there: what is row-major counts as its transpose.
"""

import numpy as np

from numgrad.codegen.device import literal_instruction

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@literal_instruction
def lapack(like, name, *given):
    """Call ``name`` for the dtype ``like``.

    Arrays are given by their addresses, integers by those of copies; a letter is an integer too,
    its code, or a string.
    """


def external(name: str, dtype: np.dtype) -> str:
    """What a kernel that calls ``name`` for a dtype lists among its externals."""
    return f"scipy.linalg.cython_lapack:{LETTERS[dtype.name]}{name}"
