"""Checks of arguments of rows: dtypes that PyTorch refuses, and its classes of errors."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any, Final

import numpy as np

from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import (
    NumgradError,
    NumgradIndexError,
    NumgradLinAlgError,
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTypeError,
)

NUMBERS: Final = (float, int, complex, bool, np.generic)
RAISED: Final = (
    NumgradError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError,
)  # fmt: skip
"""Errors of numgrad, of NumPy and of Python that calls end with where arguments do not fit."""

_REFUSED = {
    "b": "abs addcmul addmm bmm corrcoef cov cumulative_trapezoid inner matmul matrix_power mm "
         "trace trapezoid",
    "bi": "addcdiv cholesky_ex cholesky_inverse cond det dist eig eigh eigvals eigvalsh geqrf inv "
          "inv_ex inverse lerp logaddexp logcumsumexp logdet lstsq lu lu_factor lu_factor_ex "
          "matrix_exp matrix_norm matrix_rank norm pca_lowrank pinv pinverse qr renorm slogdet "
          "solve solve_ex svd svd_lowrank svdvals vecdot vector_norm",
    "c": "amax amin aminmax argsort atan2 clamp clamp_max clamp_min copysign cummax cummin deg2rad "
         "digamma erf erfc erfcx fmax fmin fmod ge gt heaviside isneginf isposinf le log_ndtr "
         "logit lt max maximum min minimum mode msort nansum ndtr polygamma psi rad2deg remainder "
         "sign sort unique unique_consecutive xlog1py xlogy",
    "bc": "argmax argmin bucketize ceil floor kthvalue median mvlgamma nanmedian relu round "
          "searchsorted topk trunc",
    "bfc": "bincount bitwise_left_shift bitwise_right_shift",
    "bic": "frac frexp gammainc gammaincc histc histogram hypot igamma igammac log_softmax "
           "logaddexp2 nanmean nanquantile nextafter quantile softmax",
    "bif": "imag",
    "B": "rsub sub",
}  # fmt: skip
REFUSED: Final = {name: kinds for kinds, names in _REFUSED.items() for name in names.split()}
"""Kinds of dtypes that a function of PyTorch's is not made for: b, i (and u), f, c of the operands
together, B of any of them."""
_AXES = ("dim", "dim0", "dim1", "dim2", "dims", "start_dim", "end_dim", "dimension", "chunks",
         "diagonal", "offset", "k", "n")  # fmt: skip
"""Parameters that take integers, or several."""


SEVERAL: Final = ("tensors", "matrices")
"""Operands that are lists of Tensors."""


def check_dtypes(name: str, given: list[np.dtype[Any]], common: Any, kinds: str) -> None:
    """Raise where a function is not made for operands of some dtypes."""
    for d, kind in [(d, d.kind.upper()) for d in given] + [(common, common.kind)]:
        if ("i" if kind == "u" else kind) in kinds:
            raise NumgradNotImplementedError(
                f"{name}(): not implemented for {d}, as in PyTorch; convert the operand with "
                "x.to(dtype), or of complex numbers take x.real or x.abs()"
            )


class NotTensorError(NumgradTypeError):
    """An argument that is no Tensor."""


class LinAlgError(NumgradRuntimeError, NumgradLinAlgError):
    """A matrix without a factorization or a solution: ``torch.linalg.LinAlgError``."""


def translated(row: Any, error: Exception, given: list[Any], options: dict[str, Any]) -> Any:
    """The error of PyTorch's class for one raised in a call; None where it has that class."""
    if isinstance(error, NumgradLinAlgError):
        return LinAlgError(str(error))
    if isinstance(error, NotTensorError):
        return None
    problem = _misuse(row, given, options)
    if problem is not None:
        return NumgradTypeError(f"{row.name}(): {problem}")
    if isinstance(error, NumgradIndexError) and "indices" in row.flags:
        return NumgradRuntimeError(str(error))
    if isinstance(error, NumgradIndexError | NumgradRuntimeError | NotImplementedError):
        return None
    if isinstance(error, NumgradTypeError):  # a dtype
        return NumgradNotImplementedError(str(error))
    if type(error) is TypeError and " argument" in str(error):  # of a function behind the row
        return NumgradTypeError(str(error))
    text = str(error) if isinstance(error, NumgradError) else f"{row.name}(): {error}"
    return NumgradRuntimeError(text)


def _misuse(row: Any, given: list[Any], options: dict[str, Any]) -> str | None:
    """How a call differs from the signature, if it does."""
    try:
        bound = signature(row.function).bind(*given, **options)
    except TypeError as error:
        return str(error)
    for name, value in bound.arguments.items():
        needed = bound.signature.parameters[name].default is Parameter.empty
        shown = f"argument {name!r} must be {{}}, not {type(value).__name__}"
        if name in row.operands:
            kinds = (Base,) if needed and row.kind == "same" else (Base, *NUMBERS)
            kinds = (Base, list, tuple) if name in SEVERAL else kinds
            if not isinstance(value, kinds) and (needed or value is not None):
                return shown.format("Tensor")
        elif name in _AXES and not _are_integers(value):
            return shown.format("int")
    return None


def _are_integers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_are_integers, value))
    if isinstance(value, Base):
        return value.dtype.kind in "iu"
    return value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool))
