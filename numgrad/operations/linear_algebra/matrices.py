"""Checks and preparation of stacks of matrices, and parameters that only SciPy's functions have.

Results do not depend on most of them: what is overwritten, how it is computed. What a parameter
asks for that these functions do not do raises, and says what does it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, Meta, Op, broadcast_lengths, conform, state, sum_to_shape
from numgrad.errors import NumgradLinAlgError, NumgradTypeError, NumgradValueError
from numgrad.kernels.matrices import elementary
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import reshape

_BOOL = np.dtype(bool)
_SMALL = 32**3
"""Multiplications of a whole stack up to which NumPy's product is faster, and takes one thread."""
_DTYPES = {np.dtype(name) for name in ("float32", "float64", "complex64", "complex128")}


def computing_dtype(operation: str, *operands: Any) -> np.dtype:
    """The dtype that arrays are computed in: theirs, where integers count as float64."""
    dtype = operands[0].dtype
    if any(x.dtype != dtype for x in operands) or dtype.kind in "biu":
        kinds = [np.float64 if x.dtype.kind in "biu" else x.dtype for x in operands]
        dtype = np.result_type(*kinds)
    if dtype in _DTYPES:
        return dtype
    raise NumgradTypeError(
        f"{operation}: no kernels for dtype {dtype}; convert to one of "
        f"{', '.join(sorted(d.name for d in _DTYPES))}"
    )


def check_matrices(operation: str, a: Any, name: str = "a") -> None:
    """Raise unless there are two axes."""
    if len(a.shape) < 2:
        raise NumgradLinAlgError(
            f"{operation}: {name} of shape {tuple(a.shape)} must be a matrix or a stack of matrices"
        )


def check_square(operation: str, a: Any, name: str = "a") -> None:
    """Raise unless the last two axes have one length."""
    check_matrices(operation, a, name)
    if a.shape[-1] != a.shape[-2]:
        raise NumgradLinAlgError(
            f"{operation}: {name} of shape {tuple(a.shape)} must be square in its last two axes"
        )


def check_right_side(operation: str, a: Any, b: Any) -> tuple[Any, ...]:
    """The shape of the solutions of ``a @ x = b``; ``b`` with one axis is a vector."""
    if not len(b.shape):
        raise NumgradValueError(f"{operation}: b of shape () must be a vector or a matrix")
    vector = len(b.shape) == 1
    if b.shape[-1 if vector else -2] != a.shape[-2]:
        raise NumgradValueError(
            f"{operation}: shapes {tuple(a.shape)} and {tuple(b.shape)}: b must have as many rows "
            f"as a, {a.shape[-2]}"
        )
    if vector:
        return (*a.shape[:-2], a.shape[-1])
    batch = stacks(operation, a.shape[:-2], b.shape[:-2])
    return (*batch, a.shape[-1], b.shape[-1])


def stacks(operation: str, *shapes: Sequence[Any]) -> tuple[Any, ...]:
    """The shape of stacks that are broadcast."""
    result = tuple(shapes[0])
    for shape in shapes[1:]:
        if len(shape) == len(result) == 0:
            continue  # most often by far
        try:
            result = broadcast_lengths(result, tuple(shape))
        except ValueError:
            known = ", ".join(str(tuple(s)) for s in shapes)
            raise NumgradValueError(
                f"{operation}: stacks of matrices, of shapes {known}, do not broadcast"
            ) from None
    return result


def check_nonzero_pivots(operation: str, info: Any, batch: tuple[int, ...]) -> None:
    """Raise for the first matrix of a stack that was found to be singular."""
    if info is not None:
        raise NumgradLinAlgError(f"{operation}: {which(info, batch)} is singular")


class ComplexResultError(NumgradLinAlgError):
    """A real matrix has a complex result only."""


def check_found(
    operation: str, info: Any, batch: tuple[int, ...], missing: str = "solution"
) -> None:
    """Raise for what a kernel of ``matrices`` says of the first matrix that it failed for."""
    if info is None:
        return
    bad = np.flatnonzero(info)
    said, name = int(info[bad[0]]), which(info, batch)
    if said == elementary.NOT_FINITE:
        raise NumgradLinAlgError(f"{operation}: {name} contains infinities or NaNs")
    if said == elementary.NOT_REAL:
        raise ComplexResultError(
            f"{operation}: the result for {name}, which is real, is complex; give a complex "
            "matrix, with a.astype(complex)"
        )
    if said == elementary.SINGULAR:
        raise NumgradLinAlgError(f"{operation}: {name} has no {missing}")
    raise NumgradLinAlgError(f"{operation}: did not converge for {name}")


def check_converged(operation: str, info: Any, batch: tuple[int, ...]) -> None:
    """Raise for the first matrix of a stack of which LAPACK's iteration did not end."""
    if info is not None:
        raise NumgradLinAlgError(
            f"{operation}: did not converge for {which(info, batch)}; are its elements finite?"
        )


def which(info: Any, batch: tuple[int, ...]) -> str:
    """Name the first matrix of a stack with which something went wrong."""
    if not batch:
        return "the matrix"
    index = np.unravel_index(int(np.flatnonzero(info)[0]), batch)
    return f"matrix {tuple(map(int, index))} of a stack of shape {batch}"


def stacked(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A new array (count, rows, columns) of the matrices, row-major."""
    return as_stack(np.array(a, dtype, order="C"), dtype)


def spread(a: np.ndarray, batch: tuple[int, ...], axes: int = 2) -> np.ndarray:
    """A stack of matrices, or of what has so many axes, broadcast to the shape of another."""
    lengths = a.shape[-axes:]
    return a if a.shape[:-axes] == batch else np.broadcast_to(a, (*batch, *lengths))


def is_constant(x: Any) -> bool:
    """Whether nobody can ask for a derivative by an operand: eager, and not recorded."""
    return state.mode in (1, 3) or (state.mode == 2 and not getattr(x, "requires_grad", False))


def as_stack(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The matrices as an array (count, rows, columns), of any strides."""
    if a.dtype != dtype:
        a = a.astype(dtype)
    return a.reshape(prod(a.shape[:-2]), *a.shape[-2:])


def as_vectors(x: np.ndarray) -> np.ndarray:
    """The vectors of the last axis as an array (count, length), of any strides."""
    return x if x.ndim == 2 else x.reshape(prod(x.shape[:-1]), x.shape[-1])


def fitted(value: np.ndarray, meta: Meta) -> np.ndarray:
    """A gradient, a new array, in the dtype of its operand and summed where that was broadcast."""
    if value.shape != meta.shape:
        value = np.array(sum_to_shape(value, meta.shape))
    return value if value.dtype == meta.dtype else conform(value, meta)


def adjoint(x: Any) -> Any:
    """Conjugate transpose of matrices, of an ndarray or a Tensor."""
    x = x.mT if isinstance(x, np.ndarray) else matrix_transpose(x)
    return np.conj(x) if x.dtype.kind == "c" else x


def product(a: Any, b: Any) -> Any:
    """Product of matrices in gradient formulas, of ndarrays or Tensors.

    Large ones are left to the library that factors are computed by: NumPy brings another, and the
    threads of two keep each other from the cores.
    """
    arrays = type(a) is np.ndarray and type(b) is np.ndarray
    if arrays and a.shape[-1] == 1:  # a column and a row
        return a * b
    if arrays and max(a.size * b.shape[-1], b.size * a.shape[-2]) <= _SMALL:
        return np.matmul(a, b)
    # of arrays whoever calls: compiled backwards ask no interpreter
    return matmul.compute((a, b), {}) if arrays else matmul(a, b)


def constant(array: np.ndarray) -> Any:
    """An array that a formula brings, which in a trace is nobody's."""
    made = state.ground.made(array)
    return made if made is array else reshape(made, array.shape)


def identity(n: Any, dtype: np.dtype) -> Any:
    """Ones on the diagonal."""
    return constant(eye(n.__index__(), dtype))


@lru_cache(maxsize=16)
def eye(n: int, dtype: np.dtype) -> np.ndarray:
    """The array of that, not to be written to; what is prepared for a shape holds none itself."""
    ones = np.eye(n, dtype=dtype)
    ones.flags.writeable = False
    return ones


def on_diagonal(w: Any, others: Any) -> Any:
    """Matrices with ``w`` on their diagonals, and other elements of given ones."""
    identity = eye(w.shape[-1].__index__(), _BOOL)
    if type(others) is np.ndarray:
        return np.where(identity, w[..., None, :], others)
    return OPS["where"](constant(identity), w[..., None, :], others)


def hermitian(x: Any) -> Any:
    """The Hermitian part of matrices."""
    return 0.5 * (x + adjoint(x))


def mirrored(a: Any, lower: bool, conjugate: bool = True) -> Any:
    """The whole of Hermitian or symmetric matrices, by one triangle."""
    read = np.tri(a.shape[-1].__index__(), dtype=bool)
    other = adjoint(a) if conjugate else matrix_transpose(a)
    whole = OPS["where"](constant(read if lower else read.T.copy()), a, other)
    return hermitian(whole) if conjugate and a.dtype.kind == "c" else whole  # a real diagonal


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

_INSTEAD = {"return_rank": "; matrix_rank gives the rank"}


def _of(name: str) -> dict[str, Callable[[Any], dict[str, Any]]]:
    """Parameters of SciPy's as one function of ours takes them."""
    entries: dict[str, Callable[[Any], dict[str, Any]]] = {}
    entries |= dict.fromkeys(_PARAMETERS.get(name, "").split(), _nothing)
    entries |= {theirs: _renamed(ours) for theirs, ours in _NAMES.get(name, {}).items()}
    for key, values in _ONE_VALUE.get(name, {}).items():
        entries[key] = _only(name, key, *values, instead=_INSTEAD.get(key, ""))
    if name == "cholesky":
        entries["lower"] = lambda lower: {"upper": not lower}
    if name in ("eigh", "eigvalsh"):
        entries["lower"] = lambda lower: {"UPLO": "L" if lower else "U"}
    return entries


def take(operations: Iterable[Op]) -> None:
    """Let these functions take the parameters of SciPy's of the same names."""
    for op in operations:
        op.stand_ins = _of(op.name) or op.stand_ins
        if op.wider is not None:
            op.wider.stand_ins = op.stand_ins
