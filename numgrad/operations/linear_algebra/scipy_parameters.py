"""Parameters that functions of ``scipy.linalg`` have beside those of NumPy's of the same names.

Results do not depend on most of them: what is overwritten, how it is computed. What a parameter
asks for that these functions do not do raises, and says what does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numgrad.core.op import Op
from numgrad.errors import NumgradTypeError


def _nothing(value: Any) -> dict[str, Any]:
    return {}


def _renamed(name: str) -> Callable[[Any], dict[str, Any]]:
    return lambda value: {name: value}


def _only(operation: str, name: str, *values: Any, instead: str = "") -> Callable[[Any], dict]:
    """A parameter that has to have a value by which results are what they are here."""

    def check(value: Any) -> dict[str, Any]:
        if not any(value is v or (isinstance(value, str) and value == v) for v in values):
            raise NumgradTypeError(
                f"linalg.{operation}: {name}={value!r} is not taken, but {values[0]!r}{instead}"
            )
        return {}

    return check


_PARAMETERS: dict[str, str] = {
    "cho_factor": "overwrite_a check_finite",
    "cho_solve": "overwrite_b check_finite",
    "cholesky": "overwrite_a check_finite",
    "det": "overwrite_a check_finite",
    "eig": "overwrite_a overwrite_b check_finite",
    "eig_banded": "overwrite_a_band check_finite",
    "eigh_tridiagonal": "check_finite lapack_driver tol",
    "eigvals_banded": "overwrite_a_band check_finite",
    "eigvalsh_tridiagonal": "check_finite lapack_driver tol",
    "orthogonal_procrustes": "check_finite",
    "solveh_banded": "overwrite_ab overwrite_b check_finite",
    "eigh": "overwrite_a overwrite_b check_finite driver",
    "eigvals": "overwrite_a overwrite_b check_finite",
    "eigvalsh": "overwrite_a overwrite_b check_finite driver",
    "hessenberg": "overwrite_a check_finite",
    "inv": "overwrite_a check_finite",
    "ldl": "overwrite_a check_finite",
    "lstsq": "overwrite_a overwrite_b check_finite lapack_driver",
    "lu": "overwrite_a check_finite",
    "lu_factor": "overwrite_a check_finite",
    "lu_solve": "overwrite_b check_finite",
    "matmul_toeplitz": "check_finite workers",
    "norm": "check_finite",
    "null_space": "overwrite_a check_finite lapack_driver",
    "pinv": "check_finite",
    "pinvh": "check_finite",
    "qr": "overwrite_a lwork check_finite",
    "qz": "lwork overwrite_a overwrite_b check_finite",
    "rsf2csf": "check_finite",
    "schur": "lwork overwrite_a check_finite",
    "solve": "overwrite_a overwrite_b check_finite",
    "solve_continuous_are": "balanced",
    "solve_discrete_are": "balanced",
    "solve_banded": "overwrite_ab overwrite_b check_finite",
    "solve_toeplitz": "check_finite",
    "solve_triangular": "overwrite_b check_finite",
    "sqrtm": "blocksize",
    "svd": "overwrite_a check_finite lapack_driver",
    "svdvals": "overwrite_a check_finite",
}
"""Functions -> parameters of SciPy's on which their results do not depend."""

_OF_MATRICES = (
    "expm", "logm", "sqrtm", "signm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm",
    "fractional_matrix_power", "null_space", "orth",
)  # fmt: skip
_NAMES = {
    **{name: {"A": "a"} for name in (*_OF_MATRICES, "ldl")},
    "qz": {"A": "a", "B": "b"}, "orthogonal_procrustes": {"A": "a", "B": "b"},
    "norm": {"a": "x"}, "svdvals": {"a": "x"}, "lstsq": {"cond": "rcond"},
}  # fmt: skip
"""Functions -> names of SciPy's -> names here."""

_SELECT: dict[str, tuple] = {"select": ("a", 0), "select_range": (None,)}
_ONE_VALUE: dict[str, dict[str, tuple]] = {
    "eig": {"b": (None,), "left": (False,), "right": (True,), "homogeneous_eigvals": (False,)},
    "eigvals": {"b": (None,), "homogeneous_eigvals": (False,)},
    "logm": {"disp": (True,)},
    "sqrtm": {"disp": (True,)},
    "signm": {"disp": (True,)},
    "pinv": {"atol": (None,), "return_rank": (False,)},
    "pinvh": {"atol": (None,), "return_rank": (False,)},
    "qr": {"pivoting": (False,)},
    "eig_banded": {**_SELECT, "max_ev": (0,)}, "eigvals_banded": _SELECT,
    "eigh_tridiagonal": _SELECT, "eigvalsh_tridiagonal": _SELECT,
    "solve_continuous_are": {"e": (None,), "s": (None,)},
    "solve_discrete_are": {"e": (None,), "s": (None,)},
}  # fmt: skip
"""Functions -> parameters of SciPy's -> the values that they may have."""

_INSTEAD = {
    "return_rank": "; matrix_rank gives the rank",
}


def _of(name: str) -> dict[str, Callable[[Any], dict[str, Any]]]:
    """What parameters of SciPy's mean for one function."""
    found: dict[str, Callable[[Any], dict[str, Any]]] = {}
    found |= dict.fromkeys(_PARAMETERS.get(name, "").split(), _nothing)
    found |= {theirs: _renamed(ours) for theirs, ours in _NAMES.get(name, {}).items()}
    for key, values in _ONE_VALUE.get(name, {}).items():
        found[key] = _only(name, key, *values, instead=_INSTEAD.get(key, ""))
    if name == "cholesky":
        found["lower"] = lambda lower: {"upper": not lower}
    if name in ("eigh", "eigvalsh"):
        found["lower"] = lambda lower: {"UPLO": "L" if lower else "U"}
    return found


def take(operations: Iterable[Op]) -> None:
    """Let these functions take the parameters of SciPy's of the same names."""
    for op in operations:
        op.stand_ins = _of(op.name) or op.stand_ins
        if op.wider is not None:
            op.wider.stand_ins = op.stand_ins
