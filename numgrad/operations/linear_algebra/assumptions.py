"""Systems and inverses of matrices of whose structure the caller knows: SciPy's ``assume_a``.

Of what is symmetric one triangle is read, of what is triangular or has few diagonals only these;
gradients go to what is read. ``solve`` and ``inv`` come here with the parameters that only SciPy's
functions have (``Op.wider``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.choice import where
from numgrad.operations.linear_algebra.checks import (
    check_right_side,
    check_square,
    computing_dtype,
    constant,
    identity,
    mirrored,
)
from numgrad.operations.linear_algebra.systems import inv, solve
from numgrad.operations.linear_algebra.triangular import cho_factor, cho_solve, solve_triangular
from numgrad.operations.shape import as_operand

_SHORT = {
    "general": "gen", "symmetric": "sym", "hermitian": "her", "positive definite": "pos",
    "banded": "gen", None: "gen",
}  # fmt: skip
_STRUCTURES = (
    "gen", "sym", "her", "pos", "diagonal", "tridiagonal", "upper triangular", "lower triangular",
)  # fmt: skip


def _structure(operation: str, assume_a: Any) -> str:
    found = _SHORT.get(assume_a, assume_a) if assume_a is None or type(assume_a) is str else None
    if found not in _STRUCTURES:
        known = ", ".join(repr(s) for s in (*_STRUCTURES, "banded"))
        raise NumgradValueError(f"{operation}: assume_a is one of {known}, got {assume_a!r}")
    return found


def _of_diagonals(a: Any, reach: int) -> Any:
    """Diagonals alone, so many beside the main one."""
    n = a.shape[-1].__index__()
    return where(constant(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= reach), a, 0)


def _solved(a: Any, b: Any, structure: str, lower: bool, transposed: bool) -> Any:
    if structure == "pos":
        factor = cho_factor(mirrored(a, lower), lower=True)
        if transposed and a.dtype.kind == "c":  # the transpose is the conjugate
            return np.conj(cho_solve(factor, np.conj(b)))
        return cho_solve(factor, b)
    if structure in ("diagonal", "upper triangular", "lower triangular"):
        a = _of_diagonals(a, 0) if structure == "diagonal" else a
        trans = "T" if transposed else "N"
        return solve_triangular(a, b, trans, structure == "lower triangular")
    if structure in ("sym", "her"):
        a = mirrored(a, lower, structure == "her")
    elif structure == "tridiagonal":
        a = _of_diagonals(a, 1)
    return solve(matrix_transpose(a) if transposed else a, b)


@composite(internal=True, method=False, smooth=True)
def solve_assuming(a, b, *, assume_a=None, lower=False, transposed=False):
    """The ``x`` of ``a @ x = b`` for matrices of a structure, or of their transposes."""
    a, b = as_operand(a), as_operand(b)
    check_square("solve", a)
    check_right_side("solve", a, b)
    return _solved(a, b, _structure("solve", assume_a), bool(lower), bool(transposed))


@composite(internal=True, method=False, smooth=True)
def inv_assuming(a, *, assume_a=None, lower=False):
    """Inverses of matrices of a structure."""
    a = as_operand(a)
    check_square("inv", a)
    structure = _structure("inv", assume_a)
    if structure == "gen":
        return inv(a)
    unit = identity(a.shape[-1], computing_dtype("inv", a))
    return _solved(a, unit, structure, bool(lower), False)


solve.wider, inv.wider = solve_assuming, inv_assuming


def _dominant(x: Any) -> Any:
    return x + 5 * np.eye(x.shape[-1])


solve_assuming.calls = [
    (((3, 3), (3,)), lambda a, b: solve_assuming(_dominant(a), b, assume_a="sym")),
    (((3, 3), (3, 2)), lambda a, b: solve_assuming(_dominant(a), b, assume_a="pos", lower=True)),
    (((2, 3, 3), (3,)), lambda a, b: solve_assuming(_dominant(a), b, assume_a="tridiagonal")),
]
inv_assuming.calls = [
    (((3, 3),), lambda a: inv_assuming(_dominant(a), assume_a="her")),
    (((3, 3),), lambda a: inv_assuming(_dominant(a), assume_a="upper triangular")),
]
