"""LAPACK's and BLAS's functions that kernels call, by name and letter of the dtype.

SciPy exports them to compiled code; kernels refer to them by the linker's names: Note [External
functions] in ``linker``. All arguments are addresses, integers have 32 bits, matrices are
column-major: what kernels give, row-major, counts as its transpose.
"""

from __future__ import annotations

import numpy as np

from numgrad.codegen.device import ExternalFunction
from numgrad.codegen.linker import external_symbol

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_HOMES = {"getrf": ("cython_lapack", 6), "potrf": ("cython_lapack", 5), "trsm": ("cython_blas", 11)}


def external(name: str, dtype: np.dtype) -> str:
    """What a kernel that calls ``name`` for a dtype lists among its externals."""
    return f"scipy.linalg.{_HOMES[name][0]}:{LETTERS[dtype.name]}{name}"


def _declare(name: str, letter: str) -> ExternalFunction:
    home, count = _HOMES[name]
    symbol = external_symbol(f"scipy.linalg.{home}:{letter}{name}")
    # they return nothing; what is read instead is not used
    return ExternalFunction(symbol, f"int32({', '.join(['int64'] * count)})")


sgetrf, dgetrf, cgetrf, zgetrf = (_declare("getrf", letter) for letter in "sdcz")
spotrf, dpotrf, cpotrf, zpotrf = (_declare("potrf", letter) for letter in "sdcz")
strsm, dtrsm, ctrsm, ztrsm = (_declare("trsm", letter) for letter in "sdcz")
